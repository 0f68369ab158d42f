//! The configuration of OpenSSH's client (`ssh_config(5)`), as far as adit supports it.
//!
//! To find the settings of a host, the options of the command line, the user's file and the system's are read
//! in this order; the first value of each keyword counts ([`SshSettings::resolve`]). For each line, `words`
//! splits it, `reader` decides whether its block applies (`Host`, `Match`, `Include`) and `keyword_table` maps
//! the keyword; `collected` holds the values read so far. At the end, `expand` replaces `~` and `%h`.
//!
//! Unknown keywords, and known ones without effect in adit, cause warnings; invalid values are errors. `Match
//! exec` is never run and does not match.

mod algorithms;
mod collected;
mod condition;
mod expand;
mod forward;
mod include_glob;
mod jump;
mod keyword_table;
mod pattern;
mod reader;
mod settings;
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

/// [`Sources`] that can list the files in a folder, for `Include` with `*`.
pub trait SshConfigSources: Sources {
    /// Returns the names in a folder, in any order.
    ///
    /// # Errors
    /// The error of the file system.
    fn file_names(&self, folder: &Path) -> io::Result<Vec<String>>;
}

impl SshConfigSources for MemorySources {
    fn file_names(&self, folder: &Path) -> io::Result<Vec<String>> {
        Ok(self.file_names_in(folder).map(str::to_owned).collect())
    }
}

impl SshConfigSources for SystemSources {
    fn file_names(&self, folder: &Path) -> io::Result<Vec<String>> {
        list_file_names(folder)
    }
}

/// The host whose settings are requested, and the user who requests them.
#[derive(Debug, Clone)]
pub struct SshConfigQuery {
    /// The host as typed, without user and port.
    pub host: String,
    /// The user typed with the host, if any.
    pub user: Option<String>,
    /// The port typed with the host, if any.
    pub port: Option<u16>,
    /// Command-line options, `Keyword=value` or `Keyword value`, in order.
    pub options: Vec<String>,
    /// The files to read.
    pub files: SshConfigFiles,
    /// Name of the local user.
    pub local_user: String,
    /// Home folder of the local user.
    pub home: PathBuf,
    /// Name of this machine.
    pub local_host: String,
}

/// The configuration files to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshConfigFiles {
    /// `~/.ssh/config`, then `/etc/ssh/ssh_config` (on Windows in `%ProgramData%\ssh`); either may be missing.
    Default,
    /// Only this file, which must exist.
    Only(PathBuf),
    /// No files.
    None,
}
