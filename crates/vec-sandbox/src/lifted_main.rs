//! The attack suite's helper program: the same with protections that a plan can lift.

fn main() -> std::process::ExitCode {
    vec_sandbox_lifted::helper::main()
}
