//! The developers' door: `cargo xtask help`.
fn main() {}
