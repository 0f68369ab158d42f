//! Files to and from other machines by SFTP: what `scp` and `sftp` have in common.
//!
//! ```text
//! paths ─▶ glob ─▶ tree: a queue of files and folders │ through ─▶ adit-sftp ─▶ channel
//!                        workers, a channel each                  meter, limit
//! ```
//!
//! A [`Remote`] is one SFTP channel; within a file many requests are in flight. Whole trees are carried over several channels of one session, so that
//! small files do not wait for each other's round trips.

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
pub(super) use fault::Fault;
pub(super) use glob::{Folders, expand, plain};
pub(super) use host::{Host, failure};
pub(super) use local::{Local, name_here, native, octets};
pub(super) use meter::Meter;
pub(super) use names::{base, join, shown};
pub(super) use there::{at_home, rename};
pub(super) use through::through;
pub(super) use tree::{Job, carry};

/// How files are carried.
#[derive(Debug)]
pub(super) struct How {
    /// Folders too, with what is in them.
    pub(super) recursive: bool,
    /// Times and all permissions as well.
    pub(super) preserve: bool,
    /// Go on where a copy was cut.
    pub(super) resume: bool,
    /// What is shown, and how fast it may be.
    pub(super) meter: Meter,
    /// Something was not carried; it was told.
    pub(super) failed: Cell<bool>,
}

impl How {
    /// The options of one file's transfer.
    pub(super) const fn options(&self) -> TransferOptions {
        TransferOptions::new()
            .with_resume(self.resume)
            .with_preserve(self.preserve)
    }

    /// Tells what went wrong with a file, and goes on.
    ///
    /// # Errors
    /// `fault`, if nothing can go on after it.
    pub(super) fn skip(&self, name: &str, fault: impl Into<Fault>) -> Result<(), Fault> {
        let fault = fault.into();
        if fault.is_end() {
            return Err(fault);
        }
        self.failed.set(true);
        self.meter.say(&format!("{name}: {fault}"));
        Ok(())
    }
}
