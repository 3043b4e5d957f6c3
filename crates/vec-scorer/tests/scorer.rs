//! The scorer in-process over temporary Unix sockets, with real parser processes.

mod scorer {
    mod clients;
    mod daemon;
    mod parser;
    mod prebuild;
    mod scoring;
    pub(crate) mod stage;
}
