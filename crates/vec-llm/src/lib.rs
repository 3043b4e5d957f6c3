//! Chat seam and wire formats over the model gateway's socket.
