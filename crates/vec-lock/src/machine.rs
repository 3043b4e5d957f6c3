//! Facts of the machine that may change what a program computes.

use std::path::Path;

/// What is said where the system says nothing.
const UNAVAILABLE: &str = "unavailable";

/// Model name of the CPU; `unavailable` where the system does not say.
#[must_use]
pub fn cpu_model() -> String {
    let text = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    parse(&text)
}

// x86-64 names the model; Arm gives numbers of maker and design, which identify it as well.
fn parse(cpuinfo: &str) -> String {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    let arm = || {
        let (maker, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("implementer {maker} part {part}"))
    };
    field("model name")
        .or_else(arm)
        .unwrap_or_else(|| UNAVAILABLE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_machines_and_none() {
        let intel = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(parse(intel), "Some CPU @ 2 GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd8e\n";
        assert_eq!(parse(arm), "implementer 0x41 part 0xd8e");
        assert_eq!(parse(""), UNAVAILABLE);
    }
}
