//! Build a board from raw data: views, manifests, truth halves.
