//! `solution/EXECUTION.json`: which seed trains (CTR-02).

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use vec_types::ProgramSeed;

use crate::ExecError;
use crate::artifacts::read_declaration;

/// Name of the declaration below `solution/`.
pub const EXECUTION_FILE: &str = "EXECUTION.json";

/// Which seed a program trains with: `train_seed` (default 0), or its `--seed` where
/// `seed_affects_training` is true.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingRules {
    /// The training seed.
    pub train_seed: u32,
    /// The program seed trains instead.
    pub seed_affects_training: bool,
}

impl TrainingRules {
    /// Reads the declaration of a program's directory; no file = the defaults.
    ///
    /// # Errors
    /// [`ExecError::Execution`] with what is wrong; [`ExecError::Io`].
    pub fn read(solution: &Path) -> Result<Self, ExecError> {
        match read_declaration(&solution.join(EXECUTION_FILE))? {
            Some(bytes) => Self::parse(&bytes),
            None => Ok(Self::default()),
        }
    }

    /// Parses a declaration.
    ///
    /// # Errors
    /// [`ExecError::Execution`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ExecError> {
        // An object: serde would take a list for one, too.
        let object: Result<Map<String, Value>, _> = serde_json::from_slice(bytes);
        let rules = object.and_then(|object| serde_json::from_value(Value::Object(object)));
        rules.map_err(|error| {
            ExecError::Execution(format!(
                "is not {{\"train_seed\": 0.., \"seed_affects_training\": true|false}}: {error}"
            ))
        })
    }

    /// The training seed of a call with this program seed.
    #[must_use]
    pub const fn seed(self, program: ProgramSeed) -> u32 {
        if self.seed_affects_training {
            program.0
        } else {
            self.train_seed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_follow_the_declaration() {
        for (text, program, seed) in [
            ("{}", 2, 0),
            (r#"{"train_seed":7}"#, 2, 7),
            (r#"{"seed_affects_training":true}"#, 2, 2),
            (r#"{"train_seed":7,"seed_affects_training":true}"#, 1, 1),
        ] {
            let rules = TrainingRules::parse(text.as_bytes()).expect("good");
            assert_eq!(rules.seed(ProgramSeed(program)), seed, "{text}");
        }
        for bad in [
            "",
            "[]",
            r#"{"train_seed":-1}"#,
            r#"{"trainseed":1}"#,
            r#"{"train_seed":"1"}"#,
        ] {
            let error = TrainingRules::parse(bad.as_bytes()).expect_err(bad);
            assert!(error.is_candidates() && error.to_string().starts_with("EXECUTION.json: "));
        }
    }
}
