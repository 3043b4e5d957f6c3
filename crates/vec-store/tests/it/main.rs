//! The store against crashes, full disks, second writers and readers.

mod commit;
mod crash;
mod full_disk;
mod shortened;
mod support;
