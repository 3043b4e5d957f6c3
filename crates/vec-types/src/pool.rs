//! Values that many owners hold alike, kept once.

use std::sync::Arc;

/// Values seen so far. What comes when it is full stays with its owner, so that nothing a model or
/// a candidate names can make it grow without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool<T>(Vec<Arc<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> Pool<T> {
    /// Most values that it keeps. A look-up compares with each, so this bounds its time too.
    pub const LEN_MAX: usize = 256;

    /// Replaces `own` by the equal value that is here, or keeps it for others.
    pub fn share(&mut self, own: &mut Arc<T>) {
        if let Some(shared) = self.0.iter().find(|shared| **shared == *own) {
            *own = Arc::clone(shared);
        } else if self.0.len() < Self::LEN_MAX {
            self.0.push(Arc::clone(own));
        }
    }

    /// Values kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Is none kept?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_takes_nothing_more_in() {
        let mut pool = Pool::default();
        for value in 0..Pool::<usize>::LEN_MAX + 5 {
            pool.share(&mut Arc::new(value));
        }
        assert_eq!(pool.len(), Pool::<usize>::LEN_MAX);
        let (mut one, mut same) = (Arc::new(9_999), Arc::new(9_999));
        pool.share(&mut one);
        pool.share(&mut same);
        assert!(!Arc::ptr_eq(&one, &same));
        let (mut one, mut same) = (Arc::new(7), Arc::new(7));
        pool.share(&mut one);
        pool.share(&mut same);
        assert!(Arc::ptr_eq(&one, &same));
    }
}
