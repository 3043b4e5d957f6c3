"""Entry: `probe.py NAME ARGS...`, inside a sandbox."""

import common
import files
import network
import processes

_ = (files, network, processes)
common.main()
