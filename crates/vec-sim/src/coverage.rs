//! The order in which drafts cover families (DRF-02), by index arithmetic instead of rotation: the
//! k-th pick of a turn goes to category (k + seed) mod categories.

use vec_search::Family;
use vec_types::FamilyId;

/// Categories in order of appearance, each turn one family of each; both lists begin at `seed`.
#[must_use]
pub(crate) fn order(families: &[Family], seed: u32) -> Vec<FamilyId> {
    let seed = usize::try_from(seed).unwrap_or_default();
    let mut categories: Vec<Option<&str>> = Vec::new();
    for family in families {
        if !categories.contains(&family.category.as_deref()) {
            categories.push(family.category.as_deref());
        }
    }
    let mut order = Vec::new();
    for turn in 0..families.len() {
        for pick in 0..categories.len() {
            let category = categories[(pick + seed) % categories.len()];
            let of_category = families
                .iter()
                .filter(|f| f.category.as_deref() == category);
            let members: Vec<&Family> = of_category.collect();
            if turn < members.len() {
                order.push(members[(turn + seed) % members.len()].id.clone());
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::family;

    #[test]
    fn three_categories_interleave_from_the_seed_on() {
        let library = [
            family("a1", Some("a")),
            family("b1", Some("b")),
            family("a2", Some("a")),
            family("c1", Some("c")),
            family("a3", Some("a")),
            family("b2", Some("b")),
        ];
        let words = |seed| -> Vec<String> {
            let order = order(&library, seed);
            order.iter().map(ToString::to_string).collect()
        };
        assert_eq!(words(0), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert_eq!(words(1), ["b2", "c1", "a2", "b1", "a3", "a1"]);
        assert_eq!(words(3), ["a1", "b2", "c1", "a2", "b1", "a3"]);
        assert_eq!(order(&[], 7), Vec::<FamilyId>::new());
    }
}
