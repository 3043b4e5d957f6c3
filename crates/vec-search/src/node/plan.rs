//! Plans as a node keeps them: all texts in one, since empty lists and texts of a [`Plan`] take
//! more room than most of what is written in them.

use std::fmt::Write as _;

use serde::Serialize;
use vec_types::{FamilyId, Plan};

/// A node's plan, read in place. The fields and the JSON form are those of [`Plan`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanView<'a> {
    /// As [`Plan::name`].
    pub name: &'a str,
    /// As [`Plan::motivation`].
    pub motivation: &'a str,
    /// As [`Plan::approach`].
    pub approach: &'a str,
    /// As [`Plan::expected_groups`].
    pub expected_groups: Vec<&'a str>,
    /// As [`Plan::risks`].
    pub risks: Vec<&'a str>,
    /// As [`Plan::family_id`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family_id: Option<&'a FamilyId>,
    /// As [`Plan::mechanism`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<&'a str>,
    /// As [`Plan::ablate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ablate: Option<&'a str>,
}

impl PlanView<'_> {
    /// A plan of its own.
    #[must_use]
    pub fn to_plan(&self) -> Plan {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Plan {
            name: self.name.to_owned(),
            motivation: self.motivation.to_owned(),
            approach: self.approach.to_owned(),
            expected_groups: owned(&self.expected_groups),
            risks: owned(&self.risks),
            family_id: self.family_id.cloned(),
            mechanism: self.mechanism.map(str::to_owned),
            ablate: self.ablate.map(str::to_owned),
        }
    }
}

/// A plan in one text: each text after its length in bytes and `:`, each list after its length. An
/// optional text is a list of none or one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedPlan {
    family_id: Option<FamilyId>,
    texts: Box<str>,
}

impl PackedPlan {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut texts = String::new();
        for text in [&plan.name, &plan.motivation, &plan.approach] {
            put(&mut texts, text);
        }
        put_all(&mut texts, &plan.expected_groups);
        put_all(&mut texts, &plan.risks);
        put_all(&mut texts, plan.mechanism.as_slice());
        put_all(&mut texts, plan.ablate.as_slice());
        Self {
            family_id: plan.family_id.clone(),
            texts: texts.into(),
        }
    }

    pub(crate) const fn family_mut(&mut self) -> &mut Option<FamilyId> {
        &mut self.family_id
    }

    pub(crate) fn view(&self) -> PlanView<'_> {
        let mut rest = Reader(&self.texts);
        PlanView {
            name: rest.text(),
            motivation: rest.text(),
            approach: rest.text(),
            expected_groups: rest.list(),
            risks: rest.list(),
            family_id: self.family_id.as_ref(),
            mechanism: rest.list().pop(),
            ablate: rest.list().pop(),
        }
    }
}

fn put(to: &mut String, text: &str) {
    // Writing to a `String` never fails.
    let _ = write!(to, "{}:{text}", text.len());
}

fn put_all(to: &mut String, texts: &[String]) {
    let _ = write!(to, "{}:", texts.len());
    texts.iter().for_each(|text| put(to, text));
}

/// What is left to read. Only [`PackedPlan::new`] writes, so nothing is ever missing; if it were,
/// it would read as empty.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn number(&mut self) -> usize {
        let (digits, rest) = self.0.split_once(':').unwrap_or_default();
        self.0 = rest;
        digits.parse().unwrap_or(0)
    }

    fn text(&mut self) -> &'a str {
        let len = self.number();
        let (text, rest) = self.0.split_at_checked(len).unwrap_or_default();
        self.0 = rest;
        text
    }

    fn list(&mut self) -> Vec<&'a str> {
        let len = self.number();
        (0..len).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plans() -> impl Strategy<Value = Plan> {
        let text = || "[ab:0-9é\u{0}-]{0,6}";
        let list = || prop::collection::vec(text(), 0..3);
        let optional = || prop::option::of(text());
        let texts = (text(), text(), text(), list(), list());
        let rest = (prop::option::of("[a-z]{1,3}"), optional(), optional());
        (texts, rest).prop_map(|(texts, (family, mechanism, ablate))| Plan {
            name: texts.0,
            motivation: texts.1,
            approach: texts.2,
            expected_groups: texts.3,
            risks: texts.4,
            family_id: family.map(|id| id.parse().expect("word")),
            mechanism,
            ablate,
        })
    }

    proptest! {
        #[test]
        fn a_packed_plan_is_the_plan(plan in plans()) {
            let packed = PackedPlan::new(&plan);
            prop_assert_eq!(&packed.view().to_plan(), &plan);
            let json = |value: &dyn Fn() -> serde_json::Result<String>| value().expect("json");
            prop_assert_eq!(
                json(&|| serde_json::to_string(&packed.view())),
                json(&|| serde_json::to_string(&plan)),
            );
        }
    }
}
