//! Model gateway: checks, counts, bounds and logs every model call.
fn main() {}
