//! The configured known hosts files.

use crate::ssh_config::SshSettings;
use adit_cli::{Failure, FailureCode};
use adit_ssh::client::{KnownHost, KnownHostsFiles};
use adit_ssh_proto::key::HostName;
use tracing::debug;

/// Reads the entries of the host in the user's and the system's files.
pub(super) fn read_all_known_hosts(settings: &SshSettings) -> Result<KnownHost, Failure> {
    read_known_hosts(settings, true)
}

/// Reads the entries of the host in the user's files.
pub(super) fn read_user_known_hosts(settings: &SshSettings) -> Result<KnownHost, Failure> {
    read_known_hosts(settings, false)
}

/// Reads the entries of the host; `global` includes the system's files.
fn read_known_hosts(settings: &SshSettings, global: bool) -> Result<KnownHost, Failure> {
    let name = HostName::new(&settings.host_name, settings.port).ok_or_else(|| {
        let what = format!("`{}` is not a valid host name", settings.host_name);
        Failure::new(FailureCode::Usage, what)
    })?;
    let mut paths = settings.user_known_hosts.clone();
    if global {
        paths.extend(settings.global_known_hosts.iter().cloned());
    }
    let mut files = KnownHostsFiles::new(paths);
    files.hashed = settings.hash_known_hosts;
    let known = KnownHost::read_files(name, &files).map_err(|why| {
        Failure::new(FailureCode::Config, format!("known hosts: {why}"))
            .with_hint("repair the file, or use another: -o UserKnownHostsFile=FILE")
    })?;
    for problem in known.skipped_lines() {
        debug!("{problem}");
    }
    Ok(known)
}
