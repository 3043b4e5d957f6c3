//! Weights over a real store, with crashes at every step; views in disguise.

mod support;
mod views;
mod weights;
