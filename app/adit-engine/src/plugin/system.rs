//! The differences between systems: program files, the environment that programs need, exit statuses.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{
    NOT_IN_NAMES, describe_exit, is_inherited_variable, is_program, with_extension,
};
#[cfg(windows)]
pub(super) use windows::{
    NOT_IN_NAMES, describe_exit, is_inherited_variable, is_program, with_extension,
};
