//! Packages of small runs written by the real store.

#[path = "../../../vec-verify/tests/it/fixture.rs"]
mod fixture;
#[path = "../../../vec-verify/tests/it/lock.rs"]
mod lock;
mod package;
