//! Copies files over SFTP; shared by `scp` and `sftp`.
//!
//! ```text
//! paths ─▶ glob ─▶ tree: a queue of files and folders │ through ─▶ adit-sftp ─▶ channel
//!                        workers, a channel each                  meter, limit
//! ```
//!
//! A [`Remote`] is one SFTP channel; within a file, many requests are in flight. Whole trees are copied over several
//! channels of one session, so that small files do not wait for each other's round trips.

mod fault;
mod glob;
mod host;
mod local;
mod meter;
mod names;
mod there;
mod through;
mod tree;

use std::cell::Cell;

use adit_sftp::client::TransferOptions;

pub(super) use adit_sftp::SftpSession as Remote;
pub(super) use adit_sftp::client::DirEntry as Entry;
pub(super) use fault::CopyError;
pub(super) use glob::{FolderSource, expand_pattern, unescape};
pub(super) use host::{SftpHost, to_failure};
pub(super) use local::{LocalFolders, local_copy_name, path_bytes, path_from_bytes};
pub(super) use meter::ProgressMeter;
pub(super) use names::{base_name, display_path, join_path};
pub(super) use there::{at_home, rename};
pub(super) use through::copy_through;
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
    /// Returns the options for the transfer of one file.
    pub(super) const fn transfer_options(&self) -> TransferOptions {
        TransferOptions::new()
            .with_resume(self.resume)
            .with_preserve(self.preserve)
    }

    /// Reports an error with a file, and continues.
    ///
    /// # Errors
    /// `fault`, if no further operation is possible.
    pub(super) fn report_and_skip(
        &self,
        name: &str,
        fault: impl Into<CopyError>,
    ) -> Result<(), CopyError> {
        let fault = fault.into();
        if fault.is_fatal() {
            return Err(fault);
        }
        self.any_failed.set(true);
        self.meter.print_message(&format!("{name}: {fault}"));
        Ok(())
    }
}
