//! Package a closed run as evidence.
