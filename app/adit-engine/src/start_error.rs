//! Errors that prevent a plan from running.

use std::io;

use adit_shadowsocks::relay::RelayError;
use adit_shadowsocks::{KeyError, UsersError};
use adit_wire::Target;

use crate::carrier::CarrierError;
use crate::dns::DnsStartError;
use crate::listener::ReplayPartError;
use crate::plugin::PluginError;
use crate::route_rules::RouteRuleError;
use crate::rule_sets::RuleSetError;
use crate::ssh::SshPlanError;

/// The error of a plan that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address cannot be bound.
    #[error("cannot listen on {addr}: {why}")]
    Listen {
        /// The address as configured.
        addr: String,
        /// The error of the system.
        why: io::Error,
    },
    /// A key does not fit its method.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keys of users are not compatible with each other.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The keys of a relay are not compatible with each other.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// A ShadowsocksR parameter does not fit its protocol.
    #[error(transparent)]
    Ssr(#[from] adit_shadowsocksr::ParamError),
    /// A parameter does not fit its obfs.
    #[error(transparent)]
    Obfs(#[from] adit_obfs::ParamError),
    /// A key does not fit its cipher.
    #[error(transparent)]
    Cipher(#[from] adit_crypto::CryptoError),
    /// The build does not have what the plan needs.
    #[error(transparent)]
    LeftOut(adit_config::LeftOut),
    /// The SSH settings cannot be used.
    #[error(transparent)]
    Ssh(#[from] SshPlanError),
    /// The encryption of a carrier cannot be set up.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// A rule cannot be compiled.
    #[error(transparent)]
    Rule(#[from] RouteRuleError),
    /// Rule sets cannot be used.
    #[error("{}", join_errors(.0))]
    RuleSets(Vec<RuleSetError>),
    /// DNS tables cannot be used.
    #[error(transparent)]
    Dns(#[from] DnsStartError),
    /// The replay state of the process that this one succeeds cannot be used.
    #[error(transparent)]
    Replays(#[from] ReplayPartError),
    /// A plugin could not be started.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A listener has the users of a fleet, and the process is no node of one.
    #[error("a listener with `users=fleet` needs `[fleet]` in the configuration file")]
    NoFleet,
    /// A plugin connects to the server itself, so that it cannot be reached through other hops.
    #[error("the plugin of {0} cannot be reached through the hops before it: put that hop first")]
    PluginBehind(Target),
}

fn join_errors(errors: &[RuleSetError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
