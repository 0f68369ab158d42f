//! The `adit` program. All commands are in [`adit_commands`], which is compiled for size.

use std::process::ExitCode;

fn main() -> ExitCode {
    adit_commands::main()
}
