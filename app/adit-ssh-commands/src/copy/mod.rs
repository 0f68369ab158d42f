//! Files to and from other machines by SFTP: what `scp` and `sftp` have in common.
//!
//! ```text
//! paths ─▶ glob ─▶ tree: a queue of files and folders ─▶ get │ put │ through ─▶ Remote ─▶ channel
//!                        workers, a channel each                  meter, limit
//! ```
//!
//! A [`Remote`] is one SFTP channel, used by one piece of work at a time; within a file many
//! requests are in flight. Whole trees are carried over several channels of one session, so that
//! small files do not wait for each other's round trips.

mod fault;
mod files;
mod get;
mod glob;
mod host;
mod local;
mod meter;
mod names;
mod put;
mod remote;
mod through;
mod tree;

use std::cell::Cell;

pub(super) use fault::CopyError;
pub(super) use files::Entry;
pub(super) use glob::{FolderSource, expand_pattern, unescape};
pub(super) use host::{SftpHost, to_failure};
pub(super) use local::{LocalFolders, local_copy_name, path_bytes, path_from_bytes};
pub(super) use meter::ProgressMeter;
pub(super) use names::{base, join, shown};
pub(super) use remote::Remote;
pub(super) use through::through;
pub(super) use tree::{CopyJob, run_jobs};

/// Options for copying, and the state of the whole copy.
#[derive(Debug)]
pub(super) struct CopyOptions {
    /// True to copy folders recursively.
    pub(super) recursive: bool,
    /// True to preserve times and all permissions.
    pub(super) preserve: bool,
    /// True to resume interrupted copies.
    pub(super) resume: bool,
    /// Progress display and bandwidth limit.
    pub(super) meter: ProgressMeter,
    /// True once a file was skipped and reported.
    pub(super) any_failed: Cell<bool>,
}

impl CopyOptions {
    /// Tells what went wrong with a file, and goes on.
    ///
    /// # Errors
    /// `fault`, if nothing can go on after it.
    pub(super) fn report_and_skip(&self, name: &str, fault: CopyError) -> Result<(), CopyError> {
        if fault.is_fatal() {
            return Err(fault);
        }
        self.any_failed.set(true);
        self.meter.print_message(&format!("{name}: {fault}"));
        Ok(())
    }
}
