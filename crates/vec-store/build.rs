//! Rebuild when a migration changes: `sqlx::migrate!` embeds the folder.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
