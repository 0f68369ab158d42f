//! Standard output, whose reader may leave: that is the end of the program, as it is of every
//! filter, and nothing to complain about (`adit explain … | head -1`).
//!
//! The macros stand in front of the standard library's, which panic.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process;

/// Prints, without the end of a line.
macro_rules! print {
    ($($what:tt)*) => { $crate::out::put(format_args!($($what)*)) };
}

/// Prints a line.
macro_rules! println {
    () => { $crate::out::put(format_args!("\n")) };
    ($($what:tt)*) => { $crate::out::put(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints; ends the program if nobody can read it.
pub(crate) fn put(what: fmt::Arguments<'_>) {
    match io::stdout().write_fmt(what) {
        Ok(()) => {}
        Err(why) if why.kind() == ErrorKind::BrokenPipe => process::exit(0),
        Err(why) => {
            eprintln!("error: standard output: {why}");
            process::exit(1);
        }
    }
}
