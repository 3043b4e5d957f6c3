//! Launch, resume, stop, status; starts and re-adopts run groups.
