//! What most nodes do not have: one pointer, and memory only once something is written.

use std::ops::{Deref, DerefMut};

use super::{Node, Past, Promotion, PromotionState, Reruns};
use crate::SeedProgram;
use crate::checks::{MechanismActive, ViewState, ViewTrigger};

/// Facts that few nodes have.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Facts {
    pub seed: Option<SeedProgram>,
    pub past: Option<Box<Past>>,
    pub promotion: Promotion,
    pub reruns: Reruns,
    pub refuted: Option<String>,
    /// Result of the control run (ABL-02).
    pub ablation: Option<MechanismActive>,
    pub view: ViewState,
}

/// [`Facts`] of a node; absent = none, which reads as the default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rare(Option<Box<Facts>>);

static NONE: Facts = Facts {
    seed: None,
    past: None,
    promotion: Promotion {
        generation: 0,
        state: PromotionState::Idle,
        lost: (0, 0),
        mean: None,
    },
    reruns: Reruns::new(),
    refuted: None,
    ablation: None,
    view: ViewState {
        verdict: None,
        attempts: 0,
        cuts: 0,
        trigger: ViewTrigger::Sample,
    },
};

impl From<Facts> for Rare {
    fn from(facts: Facts) -> Self {
        Self((facts != NONE).then(|| Box::new(facts)))
    }
}

impl PartialEq for Rare {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Deref for Rare {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Rare {
    fn deref_mut(&mut self) -> &mut Facts {
        self.0.get_or_insert_default()
    }
}

/// A node reads and writes its rare facts like its other fields.
impl Deref for Node {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.rare
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut Facts {
        &mut self.rare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_the_default_until_it_is_written() {
        let mut rare = Rare::from(Facts::default());
        assert_eq!((&*rare, rare.0.is_none()), (&Facts::default(), true));
        rare.promotion.generation = 3;
        assert_eq!(rare.promotion.generation, 3);
        rare.promotion.generation = 0;
        assert_eq!(rare, Rare::default());
    }
}
