//! The `adit` program. All commands are in [`adit_commands`], which is compiled for size.

#[cfg(all(target_env = "musl", target_pointer_width = "64"))]
mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    adit_commands::main()
}
