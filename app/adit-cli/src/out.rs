//! The standard streams.
//!
//! The reader of standard output may leave: that is the end of the program, as it is of every
//! filter, and nothing to complain about (`adit explain … | head -1`). Each of them may be shared
//! with a program that has made it non-blocking (`patient`).
//!
//! The macros stand in front of the standard library's, which panic.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::process;

#[cfg(unix)]
pub use crate::patient::{stderr, stdin, stdout};
#[cfg(not(unix))]
pub use std::io::{stderr, stdin, stdout};

/// Prints, without the end of a line.
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

/// Prints; ends the program if nobody can read it.
pub fn put(what: fmt::Arguments<'_>) {
    // One call for all of it: lines of several threads do not mix.
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

/// Prints on standard error. Nobody to hear it is no failure.
pub fn tell(what: fmt::Arguments<'_>) {
    let _ = stderr().write_all(what.to_string().as_bytes());
}
