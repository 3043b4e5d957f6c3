//! Whole runs over fake effects and virtual time: rules one by one, and seeded simulations with
//! faults, crashes, stops and clock jumps whose invariants are checked after every event.

mod drafts;
mod driver;
mod epochs;
mod failure;
mod finale;
mod fixture;
mod imports;
mod invariants;
mod lifecycle;
mod random;
mod refusals;
mod reserve;
mod selection;
mod sim;
mod world;
