//! Verification of a server's host key.

use std::sync::Arc;

use adit_config::HostTrust;
use adit_ssh::client::{HostKey, HostKeyPolicy, KnownHost, KnownHostsFiles};
use adit_ssh::{BoxFuture, HostKeyRefused};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{HostKeyVerdict, HostName};
use adit_wire::{Host, Target};
use tokio::task::spawn_blocking;
use tracing::{debug, info};

use super::SshPlanError;

/// The host key settings of one server.
#[derive(Debug, Clone)]
pub(super) struct HostTrustRule {
    host: HostName,
    rule: TrustRule,
}

#[derive(Debug, Clone)]
enum TrustRule {
    Pinned(Vec<String>),
    Files {
        files: KnownHostsFiles,
        /// True if unknown hosts are accepted and added to the first file.
        accept_new: bool,
    },
}

/// The rule for one connection, with the files as read at its start.
#[derive(Debug)]
pub(super) struct HostKeyVerifier(Arc<LoadedRule>);

#[derive(Debug)]
enum LoadedRule {
    Pinned(Vec<String>),
    Files { host: KnownHost, accept_new: bool },
}

impl HostTrustRule {
    pub(super) fn new(server: &Target, trust: &HostTrust) -> Result<Self, SshPlanError> {
        let name = match &server.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.as_str().to_owned(),
        };
        let host = HostName::new(&name, server.port).ok_or(SshPlanError::Host(name))?;
        let rule = match trust {
            HostTrust::Pinned(pins) => TrustRule::Pinned(pins.clone()),
            HostTrust::Known { files, accept_new } => TrustRule::Files {
                files: KnownHostsFiles::new(files.clone()),
                accept_new: *accept_new,
            },
        };
        Ok(Self { host, rule })
    }

    /// Reads the files on a blocking thread. Also returns `offered` with the algorithms of the server's known
    /// keys first.
    ///
    /// # Errors
    ///
    /// Returns [`HostKeyRefused`] if a file cannot be read, because then no key can be verified.
    pub(super) async fn load_for_connection(
        &self,
        offered: Vec<KeyAlgorithm>,
    ) -> Result<(HostKeyVerifier, Vec<KeyAlgorithm>), HostKeyRefused> {
        let trust = self.clone();
        let read = spawn_blocking(move || trust.read_files(offered)).await;
        read.unwrap_or_else(|why| Err(HostKeyRefused(why.to_string())))
    }

    fn read_files(
        self,
        offered: Vec<KeyAlgorithm>,
    ) -> Result<(HostKeyVerifier, Vec<KeyAlgorithm>), HostKeyRefused> {
        let (files, accept_new) = match self.rule {
            TrustRule::Pinned(pins) => {
                return Ok((HostKeyVerifier(Arc::new(LoadedRule::Pinned(pins))), offered));
            }
            TrustRule::Files { files, accept_new } => (files, accept_new),
        };
        let host = KnownHost::read_files(self.host, &files)
            .map_err(|why| HostKeyRefused(format!("cannot read known hosts: {why}")))?;
        for problem in host.skipped_lines() {
            debug!("known hosts: {problem}");
        }
        let sorted = host.prefer_known(&offered);
        Ok((
            HostKeyVerifier(Arc::new(LoadedRule::Files { host, accept_new })),
            sorted,
        ))
    }
}

impl LoadedRule {
    fn check_key(&self, key: &HostKey) -> Result<(), String> {
        let shown = key.key.key().fingerprint();
        let (host, accept_new) = match self {
            Self::Files { host, accept_new } => (host, *accept_new),
            Self::Pinned(pins) if pins.contains(&shown) => return Ok(()),
            Self::Pinned(pins) => {
                let pins = pins.join(" or ");
                return Err(format!("it shows {shown}, but `host_key` is {pins}"));
            }
        };
        let verdict = host.check_key(&key.key);
        match (host.explain_refusal(key.key.key(), &verdict), &verdict) {
            (None, _) => Ok(()),
            (Some(_), HostKeyVerdict::Unknown) if accept_new => add_known_host(host, key),
            (Some(why), HostKeyVerdict::Unknown) => Err(format!(
                "{why}: if this is its key, set `host_key={shown}`, or `strict=accept-new` once"
            )),
            (Some(why), _) => Err(why),
        }
    }
}

fn add_known_host(host: &KnownHost, key: &HostKey) -> Result<(), String> {
    let name = host.name();
    let Some(file) = host.write_path() else {
        return Err("there is no file to write new hosts to".to_owned());
    };
    let (key, file) = (key.key.key(), file.display());
    host.add_key(key)
        .map_err(|why| format!("{name} is unknown and cannot be added: {why}"))?;
    let shown = key.fingerprint();
    info!("{name} was unknown: its key {shown} was added to {file}");
    Ok(())
}

impl HostKeyPolicy for HostKeyVerifier {
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        let (known, key) = (self.0.clone(), key.clone());
        Box::pin(async move {
            let judged = spawn_blocking(move || known.check_key(&key)).await;
            let told = judged.unwrap_or_else(|why| Err(why.to_string()));
            told.map_err(HostKeyRefused)
        })
    }
}
