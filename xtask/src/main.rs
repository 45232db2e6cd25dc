//! The house's own chores, run as `cargo xtask CHORE`.

fn main() {}
