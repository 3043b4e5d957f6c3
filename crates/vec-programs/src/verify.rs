//! Checking all of programs.git: every object's bytes give its id, every ref leads to a whole
//! program. Read-only.

use std::collections::BTreeMap;

use gix::Repository;
use gix::objs::Kind;
use vec_types::NodeId;

use crate::{Committed, Programs, ProgramsError};

/// Something in programs.git that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramsFault {
    /// Object id or ref name.
    pub item: String,
    /// What is wrong with it.
    pub what: String,
}

/// What is in programs.git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramsReport {
    /// Objects re-hashed.
    pub objects: usize,
    /// Programs by node.
    pub nodes: BTreeMap<NodeId, Committed>,
    /// What does not hold; empty = all well.
    pub faults: Vec<ProgramsFault>,
}

impl Programs {
    /// Re-hashes every object and follows every ref.
    ///
    /// # Errors
    /// Only when the repository cannot be listed at all; everything else is a fault in the report.
    pub fn verify_all(&self) -> Result<ProgramsReport, ProgramsError> {
        let repo = self.local();
        let mut report = ProgramsReport::default();
        self.verify_objects(&repo, &mut report)?;
        self.verify_refs(&repo, &mut report)?;
        Ok(report)
    }

    fn verify_objects(
        &self,
        repo: &Repository,
        report: &mut ProgramsReport,
    ) -> Result<(), ProgramsError> {
        let list = ProgramsError::git("list the objects of", &self.path);
        for id in repo.objects.iter().map_err(list)? {
            let id = match id {
                Ok(id) => id,
                Err(error) => {
                    report.fault("objects", error.to_string());
                    continue;
                }
            };
            report.objects += 1;
            let found = repo.find_object(id).and_then(|object| {
                gix::objs::compute_hash(repo.object_hash(), object.kind, &object.data)
            });
            match found {
                Ok(found) if found == id => {}
                Ok(found) => report.fault(&id.to_string(), format!("its bytes give {found}")),
                Err(error) => report.fault(&id.to_string(), format!("cannot be read: {error}")),
            }
        }
        Ok(())
    }

    fn verify_refs(
        &self,
        repo: &Repository,
        report: &mut ProgramsReport,
    ) -> Result<(), ProgramsError> {
        let list = || ProgramsError::git("list the refs of", &self.path);
        let platform = repo.references().map_err(list())?;
        for found in platform.all().map_err(list())? {
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    report.fault("refs", error.to_string());
                    continue;
                }
            };
            let name = found.name().as_bstr().to_string();
            let node = name
                .strip_prefix("refs/nodes/")
                .and_then(|n| n.parse::<NodeId>().ok());
            let (Some(node), Ok(id)) = (node, found.inner.target.try_into_id()) else {
                report.fault(&name, "is not a ref of a node".to_owned());
                continue;
            };
            match self.whole(repo, id) {
                Ok(program) => {
                    report.nodes.insert(node, program);
                }
                Err(error) => report.fault(&name, describe(&error)),
            }
        }
        Ok(())
    }

    fn whole(&self, repo: &Repository, id: gix::ObjectId) -> Result<Committed, ProgramsError> {
        let (tree, parents, _) = self.commit_parts(repo, id)?;
        for parent in parents {
            self.object(repo, parent, Kind::Commit)?;
        }
        let mut leaves = BTreeMap::new();
        self.walk(repo, tree, "", 0, &mut leaves)?;
        for (blob, _) in leaves.into_values() {
            self.object(repo, blob, Kind::Blob)?;
        }
        self.describe(repo, id)
    }
}

impl ProgramsReport {
    fn fault(&mut self, item: &str, what: String) {
        self.faults.push(ProgramsFault {
            item: item.to_owned(),
            what,
        });
    }
}

fn describe(error: &ProgramsError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
