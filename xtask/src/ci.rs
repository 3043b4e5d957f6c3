//! `cargo xtask ci`: the whole gate, the same here as on the build machine. One cargo profile.

use anyhow::Result;

use crate::attack::{AttackArguments, attack};
use crate::demo::{DemoArguments, demo};
use crate::shell::{cargo, headline, run};
use crate::sim::{SimArguments, sim};
use crate::{tests, tidy};

/// Everything that must hold before a change lands.
pub(crate) fn ci() -> Result<()> {
    headline("format");
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    headline("house rules");
    tidy::tidy()?;
    headline("clippy");
    run(&mut cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    headline("generated code");
    codegen(true)?;
    headline("documentation");
    run(cargo(&[
        "doc",
        "--quiet",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ])
    .env("RUSTDOCFLAGS", "-D warnings"))?;
    sim(&SimArguments::ci(false))?;
    sim(&SimArguments::ci(true))?;
    attack(&AttackArguments::ci())?;
    headline("a short demo");
    demo(&DemoArguments::short())?;
    headline("tests");
    tests::test(&[])
}

/// Regenerates or compares the committed gRPC code.
pub(crate) fn codegen(check: bool) -> Result<()> {
    let mut arguments = vec!["run", "--quiet", "--package", "vec-codegen", "--"];
    if check {
        arguments.push("--check");
    }
    run(&mut cargo(&arguments))
}
