//! Whole runs over fake effects and virtual time, rule by rule. The driver and its fixtures are
//! those of `vec-sim`, which runs the same in seeded worlds.

mod checks;
mod drafts;
mod epochs;
mod failure;
mod finale;
mod imports;
mod lifecycle;
mod refusals;
mod reserve;
mod retries;
mod selection;
mod world;

use vec_sim::{fixture, random};

mod driver {
    //! The driver under the name that the scenarios use.
    pub(crate) use vec_sim::{Driver, World, replay};
}
