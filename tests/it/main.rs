//! Real-process scenarios over the built product.

mod kills;
mod refusals;
mod tampering;
mod truth;
mod users;
mod whole_run;
