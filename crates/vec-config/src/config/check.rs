//! Written configuration → [`Config`], by exhaustive destructuring: a new key that is not
//! checked here does not compile.

mod models;
mod numbers;
mod search;
mod seeds;

use std::path::PathBuf;

use vec_types::ProgramSeed;

use super::written::{WrittenConfig, WrittenFault};
use super::{Config, Fault, FaultPoint, Mode, Timeline};
use crate::ConfigError;
use crate::load::{Checker, Layers};

/// Kills in one run that fault injection may ask for.
const KILLS_MAX: usize = 200;

pub(super) fn validate(written: WrittenConfig, layers: &Layers) -> Result<Config, ConfigError> {
    let mut check = Checker::new(layers);
    let config = convert(written, &mut check);
    if let Some(config) = &config {
        across(config, &mut check);
    }
    check.finish(config)
}

fn convert(written: WrittenConfig, check: &mut Checker<'_>) -> Option<Config> {
    let WrittenConfig {
        mode,
        board,
        search_seed,
        concurrency,
        draft,
        debug,
        tune,
        select,
        plateau,
        seed_states,
        budget,
        final_selection,
        promotion,
        guard,
        scoring,
        execution,
        ablation,
        viewcheck,
        gpu,
        engineer,
        engineer_stall,
        models,
        playbook,
        restarts,
        fault,
        purpose,
        hypothesis,
    } = written;
    let models = models::models(models, check);
    let config = |models| Config {
        mode: mode_of(mode, check),
        board: board_path(board, check),
        search_seed: numbers::search_seed(search_seed, check),
        concurrency: numbers::concurrency(concurrency, check),
        draft: search::draft(draft, check),
        debug: search::debug(debug, check),
        tune: search::tune(tune, check),
        select: search::select(select, check),
        plateau: search::plateau(plateau, check),
        seed_states: numbers::seed_states(seed_states, check),
        budget: numbers::budget(budget, check),
        final_selection: numbers::final_selection(final_selection, check),
        promotion: seeds::promotion(promotion, check),
        guard: seeds::guard(guard, check),
        scoring: numbers::scoring(scoring, check),
        execution: numbers::execution(execution, check),
        ablation: numbers::ablation(ablation),
        viewcheck: numbers::viewcheck(viewcheck, check),
        gpu: numbers::gpu(gpu, check),
        engineer: numbers::engineer(engineer, check),
        engineer_stall: numbers::engineer_stall(engineer_stall, check),
        models,
        playbook: numbers::playbook(playbook, check),
        restarts: numbers::restarts(restarts, check),
        fault: fault_points(fault, check),
        purpose: check.text("purpose", purpose),
        hypothesis: check.text("hypothesis", hypothesis),
    };
    // The closure runs in any case, so that every key is checked.
    let refused = models.is_none();
    let config = config(models.unwrap_or_else(models::nothing));
    (!refused).then_some(config)
}

fn mode_of(written: Option<Mode>, check: &mut Checker<'_>) -> Mode {
    let what = "`mode: search`; without it a config means an agent run, which does not exist yet";
    check
        .required("mode", written, what)
        .unwrap_or(Mode::Search)
}

fn board_path(written: Option<String>, check: &mut Checker<'_>) -> PathBuf {
    let written = check.required("board", written, "the path of a board definition");
    check.layers().resolve(&written.unwrap_or_default())
}

fn fault_points(written: Option<WrittenFault>, check: &mut Checker<'_>) -> Fault {
    let WrittenFault { kill_controller } = Checker::block(written);
    let key = "fault.kill_controller";
    let written = kill_controller.unwrap_or_default();
    if written.len() > KILLS_MAX {
        check.refuse(key, format!("at most {KILLS_MAX} kills"));
    }
    let mut points = Vec::new();
    for text in written.into_iter().take(KILLS_MAX) {
        match FaultPoint::try_from(text) {
            Ok(point) => points.push(point),
            Err(message) => check.refuse(key, message),
        }
    }
    Fault {
        kill_controller: points,
    }
}

// Rules that join keys. They look only at values that passed by themselves.
fn across(config: &Config, check: &mut Checker<'_>) {
    if !check.is_clean() {
        return;
    }
    let (draft, debug, tune) = (config.draft.p, config.debug.p, config.tune.p);
    if draft + debug + tune > 1.0 {
        check.refuse(
            "draft.p",
            format!("draft.p {draft} + debug.p {debug} + tune.p {tune} must be at most 1"),
        );
    }
    guard_seeds_are_fresh(config, check);
    if config.playbook.trials > config.scoring.client_quota {
        check.refuse(
            "playbook.trials",
            format!(
                "{} trials need as many queries; scoring.client_quota is {}",
                config.playbook.trials, config.scoring.client_quota
            ),
        );
    }
    let timeline = Timeline::new(&config.budget, &config.execution, &config.final_selection);
    if let Some((key, message)) = timeline.broken_rule() {
        check.refuse(key, message);
    }
    if config.budget.max_cost_usd.is_some() {
        let unpriced: Vec<&str> = config.models.used().into_keys().collect();
        check.refuse(
            "budget.max_cost_usd",
            format!(
                "with a cap every model needs a price, and playbook models have none ({}); leave \
                 the cap out",
                unpriced.join(", ")
            ),
        );
    }
}

fn guard_seeds_are_fresh(config: &Config, check: &mut Checker<'_>) {
    let key = "guard.fresh_seeds";
    let fresh = &config.guard.fresh_seeds;
    let used = |seed: &&ProgramSeed| seed.0 == 0 || config.promotion.seeds.contains(seed);
    if let Some(seed) = fresh.iter().find(used) {
        check.refuse(
            key,
            format!(
                "seed {seed} is also a search seed (0) or one of promotion.seeds; the guard needs \
                 seeds that selection has not used"
            ),
        );
    }
    let tuned = |seed: &&ProgramSeed| config.tune.seeds.contains(seed);
    if let Some(seed) = fresh.iter().find(tuned) {
        check.refuse(
            key,
            format!(
                "seed {seed} is also one of tune.seeds; the guard needs seeds that tuning has not \
                 used"
            ),
        );
    }
}
