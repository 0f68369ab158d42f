//! From arguments to a session: configuration, transport, host key, login.
//!
//! * [`ConnectRequest`] is a destination with its options; [`ConnectRequest::resolve_settings`] reads the configuration.
//! * [`connect`] connects to it, through jump hosts, and logs in.
//! * [`terminal`](super::terminal) asks the user for passwords and confirmations.
//!
//! Failures are messages for the user. Apart from them, only host keys and warnings are printed here.

mod algorithms;
mod connect_request;
mod dial;
mod failure;
mod host_key;
mod host_key_update;
mod identities;
mod key_file;
mod known_files;
mod prompter;
mod runtime;

use std::sync::Arc;
use std::time::Duration;

use crate::ssh_config::SshSettings;
use adit_cli::Failure;
use adit_ssh::Keepalive;
use adit_ssh::client::{Client, ClientConfig, Session};
use adit_ssh_proto::transport;
use adit_stream::BoxStream;
use tracing::debug;

pub(crate) use connect_request::{ConnectRequest, is_quiet, nonempty_variable, option_line};
pub(crate) use dial::local_originator;
use host_key::{KeyTrust, KeyTrustCell};
pub(crate) use host_key_update::HostKeyUpdate;
pub(crate) use identities::agent_path;
pub(crate) use runtime::block_on;

/// Time limit for a connection if `ConnectTimeout` is not set.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(120);

/// A session with a host.
pub(crate) struct ConnectedHost {
    /// The session.
    pub(crate) session: Session,
    /// The settings of the session.
    pub(crate) settings: SshSettings,
    /// True if the host key is known or was added. Otherwise (`StrictHostKeyChecking no` and a key that
    /// contradicts the known ones), no passwords are sent and nothing is forwarded.
    pub(crate) trusted: bool,
    /// The running update of the host's known keys.
    pub(crate) update: Option<HostKeyUpdate>,
}

/// Connects to a host, through jump hosts, and logs in.
///
/// # Errors
/// A [`Failure`] with the cause and a hint.
pub(crate) async fn connect(
    asked: &ConnectRequest,
    settings: &SshSettings,
) -> Result<ConnectedHost, Failure> {
    let below = Box::pin(dial::open_transport(asked, settings, 0)).await?;
    start_session(below, settings).await
}

/// Starts a session over a stream to the host.
async fn start_session(below: BoxStream, settings: &SshSettings) -> Result<ConnectedHost, Failure> {
    let known = known_files::read_all_known_hosts(settings)?;
    let mut preferred = algorithms::configured_algorithms(settings)?;
    if settings.host_key_algorithms.is_none() {
        preferred.host_key = known.prefer_known(&preferred.host_key);
    }
    let offered = preferred.host_key.clone();
    let mut transport = transport::TransportConfig::new(preferred);
    transport.rekey_bytes = settings.rekey_limit.bytes;
    transport.rekey_after = settings.rekey_limit.time;
    let taken = KeyTrustCell::default();
    let policy = host_key::KnownHostsPolicy::new(settings, known, &taken);
    let login = identities::build_login(settings, &taken).await?;
    let mut config = ClientConfig::new(Arc::new(policy), login);
    config.transport = transport;
    config.timeout = settings.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT);
    let interval = settings.server_alive_interval;
    config.keepalive = (!interval.is_zero()).then_some(Keepalive {
        interval,
        max_missed: settings.server_alive_count.max(1),
    });
    let session = Client::connect(below, config)
        .await
        .map_err(|why| failure::from_connect_error(why, settings))?;
    let negotiated = session.negotiated();
    debug!(
        "{}: logged in at {}, {negotiated:?}",
        settings.host_name,
        session.version()
    );
    let update = match taken.trust() {
        Some(KeyTrust::Known) => {
            host_key_update::start_update(&session, settings, offered, true).await
        }
        // A key that was added just now may be an attacker's: it must not cause the removal of others.
        Some(KeyTrust::Confirmed) => {
            host_key_update::start_update(&session, settings, offered, false).await
        }
        // As in OpenSSH: a key that the user has not confirmed does not authenticate others.
        Some(KeyTrust::Unconfirmed | KeyTrust::Mismatched) | None => None,
    };
    Ok(ConnectedHost {
        session,
        settings: settings.clone(),
        trusted: !taken.is_mismatched(),
        update,
    })
}
