//! What the commands of `adit` have in common: how they fail, with which exit code, the standard
//! streams, signals and the runtime.
//!
//! A command returns [`Done`]; what went wrong is a [`Failure`], which the program reports at its end.
//! The macros `print!`, `println!` and `eprintln!` take the place of the standard library's, which
//! panic where a reader has left.

#[macro_use]
pub mod out;

#[cfg(unix)]
pub mod background;
mod folder;
#[cfg(unix)]
pub mod patient;
mod report;
mod runtime;
mod signals;
mod time;

pub use folder::state_folder;
pub use report::{Code, Failure};
pub use runtime::{block_on, block_on_within};
pub use signals::Signals;
pub use time::read_time;

/// The end of a command.
pub type Done = Result<(), Failure>;
