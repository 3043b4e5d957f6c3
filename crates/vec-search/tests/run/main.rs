//! Whole runs over fake effects and virtual time: rules one by one, and seeded simulations with
//! faults, crashes, stops and clock jumps whose invariants are checked after every event.

mod driver;
mod failure;
mod finale;
mod fixture;
mod invariants;
mod lifecycle;
mod random;
mod refusals;
mod selection;
mod sim;
mod world;
