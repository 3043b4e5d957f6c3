//! The run directory: layout, archive, ledger, artifacts.
