//! Real-process scenarios over the built product.

mod blindness;
mod kills;
mod refusals;
mod supervisors;
mod tampering;
mod truth;
mod users;
mod weights;
mod whole_run;
