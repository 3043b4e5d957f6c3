//! Regenerates the committed gRPC code from `proto/` without protoc.
//!
//! `vec-codegen` writes `crates/vec-proto/src/pb/`; `vec-codegen --check` compares and exits 1 on
//! a difference.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

const PROTOS: [&str; 3] = [
    "vec/scorer/v1/scorer.proto",
    "vec/controller/v1/controller.proto",
    "vec/launcher/v1/launcher.proto",
];

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("codegen: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(mode: Option<&str>) -> Result<()> {
    let root = workspace_root()?;
    let committed = root.join("crates/vec-proto/src/pb");
    let fresh = tempfile::tempdir().context("make a temporary directory")?;
    generate(&root, fresh.path())?;
    match mode {
        None => replace(fresh.path(), &committed),
        Some("--check") => compare(fresh.path(), &committed),
        Some(other) => anyhow::bail!("unknown argument {other:?}; give none, or --check"),
    }
}

fn workspace_root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here
        .ancestors()
        .nth(2)
        .context("workspace root")?
        .to_owned())
}

fn generate(root: &Path, out: &Path) -> Result<()> {
    let descriptors =
        protox::compile(PROTOS, [root.join("proto")]).context("compile the .proto files")?;
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(out)
        .compile_fds(descriptors)
        .context("generate code")
}

fn files(dir: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn replace(fresh: &Path, committed: &Path) -> Result<()> {
    std::fs::create_dir_all(committed)?;
    for name in files(committed)? {
        std::fs::remove_file(committed.join(name))?;
    }
    for name in files(fresh)? {
        std::fs::copy(fresh.join(&name), committed.join(&name))?;
    }
    Ok(())
}

fn compare(fresh: &Path, committed: &Path) -> Result<()> {
    let names = files(fresh)?;
    ensure!(
        names == files(committed)?,
        "other files than committed: {names:?}"
    );
    for name in names {
        let same = std::fs::read(fresh.join(&name))? == std::fs::read(committed.join(&name))?;
        ensure!(
            same,
            "{name} differs from proto/; run `cargo xtask codegen`"
        );
    }
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "a command line tool reports to its caller"
)]
fn report(text: &str) {
    eprintln!("{text}");
}
