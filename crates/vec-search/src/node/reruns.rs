//! Further executions of one node by name, as a sorted list without room to spare: most nodes that
//! have any have two.

use vec_types::ExecName;

use super::Rerun;

/// A small map; entries are never removed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reruns(Vec<(ExecName, Rerun)>);

impl Reruns {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Puts in one that nobody has started, if there is none of this name.
    pub(crate) fn add(&mut self, exec: ExecName) {
        if !self.contains_key(&exec) {
            self.insert(exec, Rerun::new());
        }
    }

    pub(crate) fn insert(&mut self, exec: ExecName, rerun: Rerun) {
        match self.find(&exec) {
            Ok(at) => self.0[at].1 = rerun,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (exec, rerun));
            }
        }
    }

    pub(crate) fn get(&self, exec: &ExecName) -> Option<&Rerun> {
        let at = self.find(exec).ok()?;
        Some(&self.0[at].1)
    }

    pub(crate) fn get_mut(&mut self, exec: &ExecName) -> Option<&mut Rerun> {
        let at = self.find(exec).ok()?;
        Some(&mut self.0[at].1)
    }

    pub(crate) fn contains_key(&self, exec: &ExecName) -> bool {
        self.find(exec).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ExecName, &Rerun)> {
        self.0.iter().map(|(exec, rerun)| (exec, rerun))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &ExecName> {
        self.iter().map(|(exec, _)| exec)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Rerun> {
        self.iter().map(|(_, rerun)| rerun)
    }

    fn find(&self, exec: &ExecName) -> Result<usize, usize> {
        self.0.binary_search_by_key(exec, |(own, _)| *own)
    }
}

#[cfg(test)]
mod tests {
    use vec_types::ProgramSeed;

    use super::*;

    #[test]
    fn entries_stand_in_order_and_are_put_in_once() {
        let (first, second, last) = (
            ExecName::Seed(ProgramSeed(1)),
            ExecName::Seed(ProgramSeed(2)),
            ExecName::Final,
        );
        let mut reruns = Reruns::new();
        for exec in [last, second, first] {
            reruns.add(exec);
        }
        let epoch = Some(7);
        if let Some(rerun) = reruns.get_mut(&second) {
            rerun.epoch = epoch;
        }
        reruns.add(second);
        assert!(reruns.keys().eq(&[first, second, last]));
        assert_eq!(reruns.get(&second).and_then(|rerun| rerun.epoch), epoch);
        assert_eq!(reruns.values().count(), 3);
        assert!(!reruns.contains_key(&ExecName::Seed(ProgramSeed(9))));
    }
}
