//! What a simulated program is like: drawn once from the world's seed and the program, so that every
//! execution of it tells the same story, and what its checks must then find (ABL, VCK).

use vec_search::{MechanismActive, ViewVerdict};
use vec_types::{Digest, ExecName};

use crate::Invariant::Nature as Consistent;
use crate::must;
use crate::random::Random;

/// The nature of one program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// Its output does not depend on how a view is dressed.
    pub is_blind: bool,
    /// The same output whenever it sees the same.
    pub is_deterministic: bool,
    /// Its output changes with its mechanism switched off.
    pub has_effect: bool,
    /// Its output changes with new data.
    pub uses_data: bool,
    /// It never crashes in a check.
    pub is_sturdy: bool,
    /// Its output is one that others have too.
    pub is_common: bool,
}

impl Nature {
    /// Of a program in the world of a seed.
    #[must_use]
    pub fn of(world: u64, program: &str) -> Self {
        let digest = Digest::of(program.as_bytes());
        let head = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        let mut random = Random::new(world ^ u64::from_le_bytes(head));
        Self {
            is_blind: random.hits(75),
            is_deterministic: random.hits(80),
            has_effect: random.hits(50),
            uses_data: random.hits(60),
            is_sturdy: random.hits(70),
            is_common: random.hits(15),
        }
    }

    /// The nature that no rule has anything to say about.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            is_blind: true,
            is_deterministic: true,
            has_effect: false,
            uses_data: false,
            is_sturdy: true,
            is_common: false,
        }
    }

    /// The text behind the output of an execution that begins in this data epoch.
    #[must_use]
    pub fn output(&self, program: &str, exec: ExecName, epoch: u32, random: &mut Random) -> String {
        let base = if self.is_common { "common" } else { program };
        let mut text = format!("{base}/seed{}", exec.program_seed().0);
        if self.uses_data && epoch > 0 {
            text.push_str(&format!("/data{epoch}"));
        }
        if self.is_dressed(exec) {
            text.push_str("/disguised");
        }
        if self.is_off(exec) {
            text.push_str("/off");
        }
        if !self.is_deterministic {
            text.push_str(&format!("/{}", random.bits()));
        }
        text
    }

    const fn is_dressed(&self, exec: ExecName) -> bool {
        !self.is_blind && matches!(exec, ExecName::ViewCheck { .. })
    }

    const fn is_off(&self, exec: ExecName) -> bool {
        self.has_effect && matches!(exec, ExecName::Ablate)
    }

    /// Does a check find seed 0's output, if `is_same_data`?
    #[must_use]
    pub const fn repeats(&self, exec: ExecName, is_same_data: bool) -> bool {
        let sees_same = is_same_data || !self.uses_data;
        self.is_deterministic && sees_same && !self.is_dressed(exec) && !self.is_off(exec)
    }

    /// What a view check may say of it. One without a result says nothing.
    ///
    /// # Panics
    /// When the verdict contradicts it.
    pub(crate) fn bears_verdict(&self, verdict: ViewVerdict, what: impl FnOnce() -> String) {
        let due = match (self.is_deterministic, self.is_blind) {
            (false, _) => ViewVerdict::Nondeterministic,
            (true, true) => ViewVerdict::Same,
            (true, false) => ViewVerdict::ViewDependent,
        };
        let fits = verdict == due || verdict == ViewVerdict::Unknown || !self.is_sturdy;
        must(fits, Consistent, || {
            format!("{} is {self:?}, its view check says {verdict:?}", what())
        });
    }

    /// What a control run may say of it.
    ///
    /// # Panics
    /// As [`Nature::bears_verdict`].
    pub(crate) fn bears_mechanism(&self, found: MechanismActive, what: impl FnOnce() -> String) {
        let is_active = self.has_effect || !self.is_deterministic;
        let due = if is_active {
            MechanismActive::Yes
        } else {
            MechanismActive::No
        };
        let fits = found == due || found == MechanismActive::Unclear;
        must(fits, Consistent, || {
            format!("{} is {self:?}, its control run says {found:?}", what())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::tests::raised;

    const CHECK: ExecName = ExecName::ViewCheck { attempt: 0 };
    const CONFIRM: ExecName = ExecName::ViewCheckConfirm { attempt: 0 };
    const SEED_0: ExecName = ExecName::Seed(vec_types::ProgramSeed(0));

    fn output(nature: Nature, exec: ExecName, epoch: u32) -> String {
        nature.output("p", exec, epoch, &mut Random::new(1))
    }

    #[test]
    fn a_nature_is_drawn_once_and_all_kinds_exist() {
        assert_eq!(Nature::of(3, "p"), Nature::of(3, "p"));
        let kinds = (0..200).map(|world| Nature::of(world, "p"));
        let kinds: Vec<Nature> = kinds.collect();
        let parts: [fn(&Nature) -> bool; 6] = [
            |one| one.is_blind,
            |one| one.is_deterministic,
            |one| one.has_effect,
            |one| one.uses_data,
            |one| one.is_sturdy,
            |one| one.is_common,
        ];
        for part in parts {
            let count = kinds.iter().filter(|one| part(one)).count();
            assert!((10..190).contains(&count), "{count}");
        }
    }

    #[test]
    fn outputs_follow_the_nature() {
        let plain = Nature::plain();
        for exec in [CHECK, CONFIRM, ExecName::Ablate] {
            assert_eq!(output(plain, exec, 3), output(plain, SEED_0, 0));
            assert!(plain.repeats(exec, false));
        }
        let looking = Nature {
            is_blind: false,
            has_effect: true,
            uses_data: true,
            ..plain
        };
        let seed_0 = output(looking, SEED_0, 0);
        assert_ne!(output(looking, CHECK, 0), seed_0);
        assert_eq!(output(looking, CONFIRM, 0), seed_0);
        assert_ne!(output(looking, CONFIRM, 1), seed_0);
        assert_ne!(output(looking, ExecName::Ablate, 0), seed_0);
        assert!(looking.repeats(CONFIRM, true) && !looking.repeats(CONFIRM, false));
    }

    #[test]
    fn what_contradicts_a_nature_is_a_breach() {
        let nature = Nature::plain();
        let verdict = |verdict| raised(|| nature.bears_verdict(verdict, || "p".to_owned()));
        assert_eq!(verdict(ViewVerdict::Same), None);
        assert_eq!(verdict(ViewVerdict::Unknown), None);
        assert_eq!(verdict(ViewVerdict::ViewDependent), Some(Consistent));
        let mechanism = |found| raised(|| nature.bears_mechanism(found, || "p".to_owned()));
        assert_eq!(mechanism(MechanismActive::No), None);
        assert_eq!(mechanism(MechanismActive::Yes), Some(Consistent));
    }
}
