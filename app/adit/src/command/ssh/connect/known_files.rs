//! The files of known hosts: read before, written after.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use adit_config::ssh_config::SshSettings;
use adit_net::ambient::SystemChance;
use adit_net::keep;
use adit_ssh::key::{HostName, KnownHosts, PublicKey};
use adit_wire::Entropy;
use tracing::debug;

use crate::report::{Code, Failure};

/// What the files know, and where a new host is written to.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) hosts: KnownHosts,
    /// The host that is meant.
    pub(super) name: HostName,
    file: Option<PathBuf>,
    hashed: bool,
}

impl Known {
    /// Reads the files of a host's settings; those that are missing know nothing.
    pub(super) fn read(settings: &SshSettings) -> Result<Self, Failure> {
        let name = HostName::new(&settings.host_name, settings.port).ok_or_else(|| {
            let what = format!("`{}` is no name of a host", settings.host_name);
            Failure::new(Code::Usage, what)
        })?;
        let mut hosts = KnownHosts::default();
        for file in settings
            .user_known_hosts
            .iter()
            .chain(&settings.global_known_hosts)
        {
            let text = match fs::read(file) {
                Ok(text) => text,
                Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
                Err(why) => return Err(unreadable(file, &why)),
            };
            let problems = hosts
                .read(&file.to_string_lossy(), &text)
                .map_err(|why| unreadable(file, &why))?;
            for problem in problems {
                debug!("{problem}");
            }
        }
        Ok(Self {
            hosts,
            name,
            file: settings.user_known_hosts.first().cloned(),
            hashed: settings.hash_known_hosts,
        })
    }

    /// Where a new host is written to.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Makes the key known.
    pub(super) fn learn(&self, key: &PublicKey) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        keep::append_line(file, &self.line(key))
    }

    /// The line that makes the key known.
    pub(super) fn line(&self, key: &PublicKey) -> String {
        let salt = self.hashed.then(|| {
            let mut salt = [0; 20];
            SystemChance.fill(&mut salt);
            salt
        });
        self.name.line(key, salt)
    }
}

fn unreadable(file: &Path, why: &dyn std::fmt::Display) -> Failure {
    // Without it a host that is known would look new.
    Failure::new(
        Code::Config,
        format!("known hosts: {}: {why}", file.display()),
    )
    .hint("mend it, or name another one: -o UserKnownHostsFile=FILE")
}
