//! Generated gRPC code, conversions, clients over Unix sockets, one retry table.
