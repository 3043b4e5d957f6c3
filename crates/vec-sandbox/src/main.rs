//! The sandbox helper program; everything is in [`vec_sandbox::helper`].

fn main() -> std::process::ExitCode {
    vec_sandbox::helper::main()
}
