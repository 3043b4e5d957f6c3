//! Supervisors: start, adopt, account and end whole process trees.
