//! The configuration of OpenSSH's client (`ssh_config(5)`), the part that has a meaning here.
//!
//! A question, "how is this host reached", goes through the options of the command line, the
//! user's file and the system's, in this order; the first value of each keyword counts
//! ([`SshSettings::resolve`]). Line by line: `words` splits, `reader` decides whether the
//! block is meant (`Host`, `Match`, `Include`), `table` knows the keywords, `collected` holds what
//! was said, and in the end `~` and `%h` are replaced (`expand`).
//!
//! What is not known, or known and of no effect here, becomes a warning; a value that cannot be
//! is an error. `Match exec` is never run, and does not match.

mod algorithms;
mod collected;
mod condition;
mod expand;
mod forward;
mod glob;
mod jump;
mod pattern;
mod reader;
mod settings;
mod table;
mod value;
mod words;

use std::io;
use std::path::{Path, PathBuf};

use adit_config::text::{MemorySources, Sources, SystemSources, list_file_names};

pub use algorithms::AlgorithmList;
pub use forward::{SshBind, SshDestination, SshForward};
pub use jump::SshJump;
pub use settings::{
    AddressFamily, CheckHostKey, ForwardAgent, IdentityAgent, RekeyLimit, RequestTty, SshLogLevel,
    SshSettings, UpdateHostKeys,
};

/// [`Sources`] that can tell which files a folder has, for `Include` with `*`.
pub trait SshSources: Sources {
    /// The names in a folder, in any order.
    ///
    /// # Errors
    /// Those of the file system.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;
}

impl SshSources for MemorySources {
    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        Ok(self.file_names_in(folder).map(str::to_owned).collect())
    }
}

impl SshSources for SystemSources {
    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        list_file_names(folder)
    }
}

/// What is asked, and by whom.
#[derive(Debug, Clone)]
pub struct SshQuestion {
    /// The host as it was typed, without user and port.
    pub host: String,
    /// The user that was typed with it.
    pub user: Option<String>,
    /// The port that was typed with it.
    pub port: Option<u16>,
    /// Options of the command line, `Keyword=value` or `Keyword value`, in their order.
    pub options: Vec<String>,
    /// Which files are read.
    pub files: SshFiles,
    /// The name of the user who asks.
    pub local_user: String,
    /// His home.
    pub home: PathBuf,
    /// The name of this machine.
    pub local_host: String,
}

/// Which files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshFiles {
    /// `~/.ssh/config`, then `/etc/ssh/ssh_config`; either may be missing.
    Usual,
    /// This one, which must be there.
    Only(PathBuf),
    /// None.
    None,
}
