//! Coverage order, bandit and round robin (DRF), and what a plateau changes (PLT).

use vec_search::{Draft, DraftMode, Event, Family, Policy, SelectReason};
use vec_types::{CandidateFault, FamilyId, NodeId, SearchSeed, SeedState};

use crate::driver::Driver;
use crate::fixture::{family, fault, policy, seed_program};
use crate::world::Script;

const T1: [(&str, &str); 11] = [
    ("ot_cfm", "continuous_dynamics"),
    ("manifold_ode", "continuous_dynamics"),
    ("velocity_field", "continuous_dynamics"),
    ("latent_sde", "continuous_dynamics"),
    ("local_ot", "fate_branching"),
    ("growth_branching", "fate_branching"),
    ("lineage_markov", "fate_branching"),
    ("birth_death", "fate_branching"),
    ("composition_program", "distribution_structure"),
    ("covariance_program", "distribution_structure"),
    ("quantile_flow", "distribution_structure"),
];

fn t1() -> Vec<Family> {
    T1.iter()
        .map(|(id, category)| family(id, Some(category)))
        .collect()
}

/// Only drafts, an anchor, coverage and bandit.
fn drafts_only(families: Vec<Family>, max_nodes: u32) -> Policy {
    let mut policy = policy();
    policy.search_seed = SearchSeed(0);
    policy.draft_p = 1.0;
    policy.debug_p = 0.0;
    policy.seed_programs.truncate(1);
    policy.families = families;
    policy.draft = Draft::CoverageBandit {
        failed_cap: 2,
        min_explore: 0.25,
    };
    policy.promotion_top_k = 0;
    policy.budget.max_nodes = max_nodes;
    policy
}

fn picks(driver: &Driver<Script>) -> Vec<(String, DraftMode)> {
    driver
        .events()
        .filter_map(|event| match event {
            Event::DraftPick { family, mode, .. } => Some((family.to_string(), *mode)),
            _ => None,
        })
        .collect()
}

fn ended(script: Script, policy: &Policy) -> Driver<Script> {
    let mut driver = script.start(policy);
    driver.run_to_end();
    driver
}

fn order(search_seed: u32) -> Vec<String> {
    let mut policy = drafts_only(t1(), 1);
    policy.search_seed = SearchSeed(search_seed);
    let driver = Script::default().start(&policy);
    let order = driver.state.coverage_order();
    order.into_iter().map(FamilyId::to_string).collect()
}

#[test]
fn coverage_interleaves_rotated_categories() {
    assert_eq!(
        order(0),
        [
            "ot_cfm",
            "local_ot",
            "composition_program",
            "manifold_ode",
            "growth_branching",
            "covariance_program",
            "velocity_field",
            "lineage_markov",
            "quantile_flow",
            "latent_sde",
            "birth_death",
        ]
    );
    // Categories rotate by one, four families by one, three families by one.
    assert_eq!(
        order(1)[..4],
        [
            "growth_branching",
            "covariance_program",
            "manifold_ode",
            "lineage_markov"
        ]
    );
    // 12 is a multiple of 3 and of 4: as without rotation.
    assert_eq!(order(12), order(0));
}

#[test]
fn every_family_is_covered_once_in_order() {
    let driver = ended(Script::default(), &drafts_only(t1(), 11));
    let found = picks(&driver);
    assert!(found.iter().all(|(_, mode)| *mode == DraftMode::Coverage));
    let families: Vec<String> = found.into_iter().map(|(family, _)| family).collect();
    assert_eq!(families, order(0));
}

#[test]
fn a_seed_covers_its_family_unless_it_repeats_the_baseline() {
    let mut policy = drafts_only(vec![family("linear", None), family("trees", None)], 1);
    policy
        .seed_programs
        .push(seed_program("ols", SeedState::Exploration));
    assert_eq!(picks(&ended(Script::default(), &policy))[0].0, "trees");
    // With the baseline's output it covers nothing (SED-07).
    let exec = vec_types::ExecName::Seed(vec_types::ProgramSeed(0));
    let same = crate::fixture::done(&policy, exec, "0/seed0", 10);
    let script = Script::default().with("execute-1-seed0", same);
    assert_eq!(picks(&ended(script, &policy))[0].0, "linear");
}

#[test]
fn failed_drafts_come_again_until_the_cap() {
    let policy = drafts_only(vec![family("a", None), family("b", None)], 4);
    let mut script = Script::default();
    for node in [1, 2] {
        script = script.with(
            &format!("execute-{node}-seed0"),
            fault(CandidateFault::Hung),
        );
    }
    let found = picks(&ended(script, &policy));
    let families: Vec<&str> = found.iter().map(|(family, _)| family.as_str()).collect();
    // a fails twice and is given up, b is covered; then the bandit, with nothing gained: fewest
    // drafts, b.
    assert_eq!(families, ["a", "a", "b", "b"]);
    assert_eq!(found[3].1, DraftMode::Explore);
}

#[test]
fn the_bandit_explores_its_share_and_follows_gains() {
    let mut policy = drafts_only(vec![family("a", None), family("b", None)], 10);
    policy.promotion_top_k = 1;
    // Node 2, of family b, is promoted first and keeps the top.
    let mut script = Script::default()
        .score(0, 50.0)
        .score(1, 49.0)
        .score(2, 90.0);
    for node in 3..12 {
        script = script.score(node, 40.0 + f64::from(node) * 0.01);
    }
    let found = picks(&ended(script, &policy));
    let modes: Vec<DraftMode> = found.iter().skip(2).map(|(_, mode)| *mode).collect();
    use DraftMode::{Exploit, Explore};
    // floor((k + 1) / 4) > floor(k / 4) for k = 3 and 7.
    assert_eq!(
        modes,
        [
            Exploit, Exploit, Exploit, Explore, Exploit, Exploit, Exploit, Explore
        ]
    );
    for (family, mode) in &found[2..] {
        let expected = if *mode == Exploit { "b" } else { "a" };
        assert_eq!(family, expected, "b gained, a has fewer drafts");
    }
}

#[test]
fn without_a_gain_the_bandit_explores() {
    let mut policy = drafts_only(vec![family("a", None), family("b", None)], 5);
    policy.promotion_top_k = 1;
    let script = Script::default().score(0, 90.0);
    let found = picks(&ended(script, &policy));
    assert!(
        found[2..]
            .iter()
            .all(|(_, mode)| *mode == DraftMode::Explore),
        "{found:?}"
    );
}

#[test]
fn round_robin_takes_library_order() {
    let mut policy = drafts_only(vec![family("a", None), family("b", None)], 5);
    policy.draft = Draft::RoundRobin;
    let script = Script::default().with("execute-1-seed0", fault(CandidateFault::Crash));
    let found = picks(&ended(script, &policy));
    let families: Vec<&str> = found.iter().map(|(family, _)| family.as_str()).collect();
    assert_eq!(families, ["a", "b", "a", "b", "a"]);
}

/// Improves of an anchor that nothing beats; the top is 2, the window 3.
fn plateau_policy(max_nodes: u32) -> Policy {
    let mut policy = drafts_only(vec![family("a", None), family("b", None)], max_nodes);
    policy.draft_p = 0.0;
    policy.plateau.enabled = true;
    policy.plateau.window = 3;
    policy.plateau.top_k = 2;
    policy.plateau.draft_p = 1.0;
    policy
}

fn falling(nodes: u32) -> Script {
    (0..=nodes).fold(Script::default(), |script, node| {
        script.score(node, 90.0 - f64::from(node))
    })
}

#[test]
fn a_plateau_begins_after_the_window_and_raises_drafts() {
    let driver = ended(falling(8), &plateau_policy(6));
    // Node 1 is the second ever and refreshes; 2, 3 and 4 do not.
    let created = |node: u32| move |event: &Event| matches!(event, Event::NodeCreated { node: n, .. } if n.0 == node);
    let begins = driver.position(|event| matches!(event, Event::Plateau { active: true, .. }));
    assert!(begins > driver.position(created(4)) && begins < driver.position(created(5)));
    let draw = driver.events().find_map(|event| match event {
        Event::Draw {
            node,
            draft_p,
            plateau,
            ..
        } if node.0 == 5 => Some((*draft_p, *plateau)),
        _ => None,
    });
    assert_eq!(draw, Some((1.0, true)));
    assert_eq!(picks(&driver)[0], ("a".to_owned(), DraftMode::Plateau));
    let mut policy = plateau_policy(6);
    policy.plateau.enabled = false;
    assert!(picks(&ended(falling(8), &policy)).is_empty());
}

#[test]
fn a_refreshed_top_ends_the_plateau() {
    let driver = ended(falling(8).score(5, 99.0), &plateau_policy(7));
    let changes: Vec<bool> = driver
        .events()
        .filter_map(|event| match event {
            Event::Plateau { active, .. } => Some(*active),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [true, false]);
}

#[test]
fn the_raise_leaves_debug_its_share() {
    let mut policy = plateau_policy(6);
    policy.debug_p = 0.25;
    let driver = ended(falling(8), &policy);
    let raised = driver.events().find_map(|event| match event {
        Event::Draw {
            draft_p,
            plateau: true,
            ..
        } => Some(*draft_p),
        _ => None,
    });
    assert_eq!(raised, Some(0.75));
}

#[test]
fn a_plateau_lets_capped_seeds_in_again() {
    let mut policy = plateau_policy(8);
    policy.plateau.draft_p = 0.0;
    policy
        .seed_programs
        .push(seed_program("ols", SeedState::Exploration));
    policy.seed_max_children = 1;
    policy.select.c_puct = 0.01;
    // The seed is the best by far, so it is the parent whenever it may be.
    let driver = ended(falling(12).score(0, 10.0).score(1, 95.0), &policy);
    let parents: Vec<(NodeId, bool, SelectReason)> = driver
        .events()
        .filter_map(|event| match event {
            Event::Select {
                parent,
                plateau,
                reason,
                ..
            } => Some((*parent, *plateau, *reason)),
            _ => None,
        })
        .collect();
    let of_seed: Vec<bool> = parents
        .iter()
        .filter(|(parent, ..)| *parent == NodeId(1))
        .map(|(_, plateau, _)| *plateau)
        .collect();
    assert!(!of_seed[0], "the first child needs no plateau");
    assert!(
        of_seed.len() > 1 && of_seed[1..].iter().all(|plateau| *plateau),
        "{parents:?}"
    );
}
