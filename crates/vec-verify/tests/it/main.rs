//! vec-verify on small runs written by the real store: the clean run verifies, every change is
//! found and named, and checking changes nothing.

mod clean;
mod eventful;
mod fixture;
mod flips;
mod lock;
mod replay;
mod tamper;
