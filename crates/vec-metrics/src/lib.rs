//! Ranked metrics, skill and board score; no I/O.
