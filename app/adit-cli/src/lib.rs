//! Common parts of the commands of `adit`: failures and exit codes, standard streams, signals and the
//! runtime.
//!
//! A command returns [`CommandResult`]; an error is a [`Failure`], which the program reports before it exits. The macros
//! `print!`, `println!` and `eprintln!` replace those of the standard library, which panic if the reader has
//! closed the stream.

#[macro_use]
pub mod out;

#[cfg(unix)]
pub mod background;
#[cfg(unix)]
pub mod blocking_stream;
mod file_watch;
mod folder;
mod report;
mod runtime;
mod service_manager;
mod signals;
mod time;

pub use file_watch::{FileVersions, FileWatch};
pub use folder::state_folder;
pub use report::{Failure, FailureCode};
pub use runtime::{block_on, block_on_with_nofile};
pub use service_manager::{notify_service_manager, reloading_state, stopping_state};
pub use signals::{EndRequest, SignalRequest, Signals, result_of_end};
pub use time::parse_time;

/// The result of a command.
pub type CommandResult = Result<(), Failure>;
