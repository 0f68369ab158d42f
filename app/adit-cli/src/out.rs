//! The standard streams.
//!
//! If the reader of standard output closes it, the program ends without an error, like any filter
//! (`adit explain … | head -1`). Each stream may be shared with a program that has made it non-blocking
//! (see `blocking_stream`).
//!
//! The macros shadow those of the standard library, which panic.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::process;

#[cfg(unix)]
pub use crate::blocking_stream::{stderr, stdin, stdout};
#[cfg(not(unix))]
pub use std::io::{stderr, stdin, stdout};

/// Prints without a line end.
#[macro_export]
macro_rules! print {
    ($($what:tt)*) => { $crate::out::put(format_args!($($what)*)) };
}

/// Prints a line.
#[macro_export]
macro_rules! println {
    () => { $crate::out::put(format_args!("\n")) };
    ($($what:tt)*) => { $crate::out::put(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints a line on standard error.
#[macro_export]
macro_rules! eprintln {
    ($($what:tt)*) => { $crate::out::tell(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints to standard output. Ends the program if that fails: with 0 if the reader has closed it, otherwise with
/// 1.
pub fn put(what: fmt::Arguments<'_>) {
    // A single write, so that lines of several threads do not mix.
    let text = what.to_string();
    let mut out = stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(why) if why.kind() == ErrorKind::BrokenPipe => process::exit(0),
        Err(why) => {
            eprintln!("error: standard output: {why}");
            process::exit(1);
        }
    }
}

/// Prints to standard error. Errors are ignored.
pub fn tell(what: fmt::Arguments<'_>) {
    let _ = stderr().write_all(what.to_string().as_bytes());
}
