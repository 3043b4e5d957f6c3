//! The prompt texts of a run: files of `prompts/` in its code snapshot, read by the caller.

/// Longest accepted prompt file in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A prompt file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TextError<E: std::error::Error + 'static> {
    /// It could not be read.
    #[error("read prompt file {file}")]
    Read {
        /// File name below `prompts/`.
        file: &'static str,
        /// The reader's error.
        #[source]
        source: E,
    },
    /// It is empty or too long.
    #[error("prompt file {file} has {bytes} bytes; 1 to {TEXT_BYTES_MAX} are accepted")]
    Size {
        /// File name below `prompts/`.
        file: &'static str,
        /// Its size.
        bytes: usize,
    },
}

/// The texts of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleTexts {
    /// How a Researcher works and replies.
    pub researcher_spec: String,
    /// How an Analyst works and replies.
    pub analyst_spec: String,
    /// How a Reviewer works and replies.
    pub reviewer_spec: String,
    /// Rules of the search that Researcher, Analyst and Engineer share (REF-04, CTR-06).
    pub search_spec: String,
    /// The candidate contract (CTR-09).
    pub contract: String,
}

impl RoleTexts {
    /// File names below `prompts/`.
    pub const FILES: [&'static str; 5] = [
        "researcher_spec.md",
        "analyst_spec.md",
        "reviewer_spec.md",
        "search_spec.md",
        "CONTRACT.md",
    ];

    /// Reads every file of [`Self::FILES`] with `read`.
    ///
    /// # Errors
    /// [`TextError`] naming the file that cannot be read, is empty or too long.
    pub fn load<E: std::error::Error + 'static>(
        mut read: impl FnMut(&'static str) -> Result<String, E>,
    ) -> Result<Self, TextError<E>> {
        let mut text = |file: &'static str| {
            let text = read(file).map_err(|source| TextError::Read { file, source })?;
            if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX {
                let bytes = text.len();
                return Err(TextError::Size { file, bytes });
            }
            Ok(text)
        };
        let [researcher, analyst, reviewer, search, contract] = Self::FILES;
        Ok(Self {
            researcher_spec: text(researcher)?,
            analyst_spec: text(analyst)?,
            reviewer_spec: text(reviewer)?,
            search_spec: text(search)?,
            contract: text(contract)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_checked() {
        let texts = RoleTexts::load(|file| Ok::<_, std::io::Error>(format!("text of {file}")))
            .expect("loads");
        assert_eq!(texts.contract, "text of CONTRACT.md");
        assert_eq!(texts.reviewer_spec, "text of reviewer_spec.md");
        for broken in RoleTexts::FILES {
            let long = "x".repeat(TEXT_BYTES_MAX + 1);
            for bad in ["", " \n", long.as_str()] {
                let error = RoleTexts::load(|file| {
                    Ok::<_, std::io::Error>(if file == broken {
                        bad.into()
                    } else {
                        "x".into()
                    })
                })
                .expect_err("refused");
                assert!(error.to_string().contains(broken), "{error}");
            }
            let error = RoleTexts::load(|file| match file == broken {
                true => Err(std::io::Error::other("gone")),
                false => Ok("x".to_owned()),
            })
            .expect_err("refused");
            assert!(error.to_string().contains(broken), "{error}");
        }
    }
}
