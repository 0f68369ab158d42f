//! Command-line arguments of `adit sftp-server`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct SftpServerArgs {
    /// Serve only this folder: no path and no symbolic link leads out of it
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Deny opening, changing, replacing or linking this file, or anything in this folder; can be
    /// repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) protect: Vec<PathBuf>,
    /// Deny all changes
    #[arg(long, short = 'R')]
    pub(crate) read_only: bool,
    /// The folder that relative paths start in
    #[arg(long, short = 'd', value_name = "DIR")]
    pub(crate) start: Option<PathBuf>,
    /// Permissions that new files do not get, in octal
    #[arg(long, short = 'u', value_name = "MASK", value_parser = mask)]
    pub(crate) umask: Option<u32>,
}

/// Parses permission bits, in octal.
fn mask(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mask| *mask <= 0o777)
        .ok_or_else(|| "expected a mask like `022` or `077`".to_owned())
}
