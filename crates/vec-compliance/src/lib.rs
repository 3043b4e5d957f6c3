//! Pattern pass of the Compliance role.
