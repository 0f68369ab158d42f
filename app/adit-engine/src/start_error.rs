//! What keeps a plan from running.

use std::io;

use adit_shadowsocks::relay::RelayError;
use adit_shadowsocks::{KeyError, UsersError};
use adit_wire::Target;

use crate::carrier::SealError;
use crate::plugin::PluginError;
use crate::ssh::SshPlanError;

/// Why a plan cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address cannot be bound.
    #[error("cannot listen on {addr}: {why}")]
    Listen {
        /// The address as it was written.
        addr: String,
        /// What the system said.
        why: io::Error,
    },
    /// A key does not fit its method.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keys of users do not go together.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The keys of a relay do not go together.
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
    /// What is said of SSH cannot be used.
    #[error(transparent)]
    Ssh(#[from] SshPlanError),
    /// A carrier cannot be sealed.
    #[error(transparent)]
    Carrier(#[from] SealError),
    /// A plugin does not run.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A plugin dials by itself, so that it cannot go through other hops.
    #[error("the plugin of {0} cannot be reached through the hops before it: put that hop first")]
    PluginBehind(Target),
}
