//! Work directories of the attackers' plans.

use vec_sandbox_lifted::{TmpfsSize, WorkKind};

/// 64 MiB and 4,096 files: small enough that filling it takes no time.
pub(crate) fn work() -> WorkKind {
    WorkKind::Memory {
        size: TmpfsSize {
            bytes: 64 << 20,
            inodes: 4_096,
        },
        fill: None,
    }
}
