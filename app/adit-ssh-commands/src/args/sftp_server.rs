//! What may be typed behind `adit sftp-server`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct SftpServer {
    /// Serve this folder alone: no path and no symbolic link leads out of it
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Let nobody open, change, replace or link this file, or anything in this folder; can be
    /// repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) protect: Vec<PathBuf>,
    /// Let nothing be changed
    #[arg(long, short = 'R')]
    pub(crate) read_only: bool,
    /// Where relative paths begin
    #[arg(long, short = 'd', value_name = "DIR")]
    pub(crate) start: Option<PathBuf>,
    /// Permissions that new files do not get, in octal
    #[arg(long, short = 'u', value_name = "MASK", value_parser = mask)]
    pub(crate) umask: Option<u32>,
}

/// Bits of permissions, in octal.
fn mask(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mask| *mask <= 0o777)
        .ok_or_else(|| "expected a mask like `022` or `077`".to_owned())
}
