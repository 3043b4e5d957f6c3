//! Holds truth halves A and B; scores predictions.
