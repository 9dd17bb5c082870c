//! The `schemac` command.

fn main() {}
