//! Whether a server's key is the one that is meant.

use std::sync::Arc;

use adit_config::HostTrust;
use adit_session::ssh::client::{HostKey, HostKeyPolicy};
use adit_session::ssh::{BoxFuture, HostKeyRefused};
use adit_ssh::algorithm::KeyAlgorithm;
use adit_ssh::key::HostName;
use adit_wire::{Host, Target};
use tokio::task::spawn_blocking;

use super::SshPlanError;
use super::known_hosts::Files;

/// What a plan says of the key of one server.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    host: HostName,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    Pinned(Vec<String>),
    Files(Files),
}

impl Trust {
    pub(super) fn new(server: &Target, trust: &HostTrust) -> Result<Self, SshPlanError> {
        let name = match &server.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.as_str().to_owned(),
        };
        let host = HostName::new(&name, server.port).ok_or(SshPlanError::Host(name))?;
        let rule = match trust {
            HostTrust::Pinned(pins) => Rule::Pinned(pins.clone()),
            HostTrust::Known { files, accept_new } => Rule::Files(Files {
                paths: files.clone(),
                accept_new: *accept_new,
            }),
        };
        Ok(Self { host, rule })
    }

    /// `offered` with those first of which the server's key is known.
    pub(super) async fn prefer(self: &Arc<Self>, offered: Vec<KeyAlgorithm>) -> Vec<KeyAlgorithm> {
        let (trust, usual) = (self.clone(), offered.clone());
        let sorted = spawn_blocking(move || match &trust.rule {
            Rule::Pinned(_) => offered,
            Rule::Files(files) => files.read().prefer(&trust.host, &offered),
        });
        sorted.await.unwrap_or(usual)
    }

    fn judge(&self, key: &HostKey) -> Result<(), String> {
        match &self.rule {
            Rule::Files(files) => files.judge(&self.host, &key.key),
            Rule::Pinned(pins) => {
                let shown = key.key.key().fingerprint();
                if pins.contains(&shown) {
                    return Ok(());
                }
                let pins = pins.join(" or ");
                Err(format!("it shows {shown}, and `host_key` says {pins}"))
            }
        }
    }
}

/// The rule as a session asks it; files are read beside the tasks.
pub(super) struct Judge(pub(super) Arc<Trust>);

impl HostKeyPolicy for Judge {
    fn verify<'a>(&'a self, key: &'a HostKey) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        let (trust, key) = (self.0.clone(), key.clone());
        Box::pin(async move {
            let judged = spawn_blocking(move || trust.judge(&key)).await;
            let told = judged.unwrap_or_else(|why| Err(why.to_string()));
            told.map_err(HostKeyRefused)
        })
    }
}
