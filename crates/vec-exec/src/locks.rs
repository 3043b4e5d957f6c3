//! Training locks: one per key, in this process (nobody else executes: `decisions.md`).
//!
//! Invariants: a lock is held from the look-up that found nothing until the registration is in the
//! ledger, so that the next holder finds it. Waiters come to their turn in order. Views are worked
//! through in one order by every execution, so two executions of a program cannot wait for each
//! other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use vec_types::Digest;

use crate::ExecError;

/// Every key that somebody holds or waits for.
#[derive(Debug, Clone, Default)]
pub struct TrainingLocks {
    keys: Arc<Mutex<HashMap<Digest, Weak<AsyncMutex<()>>>>>,
}

/// The right to train one key, until dropped.
#[derive(Debug)]
pub struct TrainingLock {
    _guard: OwnedMutexGuard<()>,
}

impl TrainingLocks {
    /// Waits for the key, at most `within` (what is left until the execution's deadline).
    /// Dropping the future gives the place in the queue up.
    ///
    /// # Errors
    /// [`ExecError::LockTimeout`], never to be taken for damaged weights (EXE-11).
    pub async fn lock(&self, key: Digest, within: Duration) -> Result<TrainingLock, ExecError> {
        let waiting = self.of(key).lock_owned();
        match tokio::time::timeout(within, waiting).await {
            Ok(guard) => Ok(TrainingLock { _guard: guard }),
            Err(_) => Err(ExecError::LockTimeout { key }),
        }
    }

    /// Keys that are held or waited for.
    #[must_use]
    pub fn in_use(&self) -> usize {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, lock| lock.strong_count() > 0);
        keys.len()
    }

    fn of(&self, key: Digest) -> Arc<AsyncMutex<()>> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = keys.get(&key).and_then(Weak::upgrade) {
            return lock;
        }
        keys.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(AsyncMutex::new(()));
        keys.insert(key, Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_key_has_one_holder_and_other_keys_are_free() {
        let locks = TrainingLocks::default();
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let held = locks.lock(a, LONG).await.expect("free");
        let other = locks.lock(b, LONG).await.expect("free");
        let late = locks.lock(a, Duration::ZERO).await.expect_err("held");
        assert!(late.is_budget_cut() && !late.is_candidates(), "{late}");
        assert_eq!(locks.in_use(), 2);
        drop(held);
        let again = locks.lock(a, LONG).await.expect("free again");
        drop((other, again));
        assert_eq!(locks.in_use(), 0, "nothing is kept");
    }

    #[tokio::test]
    async fn waiters_come_to_their_turn() {
        let locks = TrainingLocks::default();
        let key = Digest::of(b"a");
        let held = locks.lock(key, LONG).await.expect("free");
        let waiting = locks.lock(key, LONG);
        tokio::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(5), &mut waiting).await;
        assert!(early.is_err(), "must wait");
        drop(held);
        let _lock = waiting.await.expect("its turn");
    }
}
