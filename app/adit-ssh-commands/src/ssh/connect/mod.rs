//! From arguments to a session: configuration, transport, host key, login.
//!
//! * [`Asked`] is a destination with its options; [`Asked::settings`] reads the configuration.
//! * [`connect`] connects to it, through jump hosts, and logs in.
//! * [`terminal`](super::terminal) asks the user for passwords and confirmations.
//!
//! Failures are messages for the user. Apart from them, only host keys and warnings are printed here.

mod algorithms;
mod asked;
mod dial;
mod failure;
mod host_key;
mod identities;
mod key_file;
mod known_files;
mod prompter;
mod runtime;
mod update;

use std::sync::Arc;
use std::time::Duration;

use crate::ssh_config::SshSettings;
use adit_cli::Failure;
use adit_ssh::Keepalive;
use adit_ssh::client::{Client, ClientConfig, Session};
use adit_ssh_proto::transport;
use adit_stream::BoxStream;
use tracing::debug;

pub(crate) use asked::{Asked, is_quiet, option, variable};
pub(crate) use dial::nobody;
use host_key::{Standing, Taken};
pub(crate) use identities::agent_path;
pub(crate) use runtime::block_on;
pub(crate) use update::Update;

/// Time limit for a connection if `ConnectTimeout` is not set.
const PATIENCE: Duration = Duration::from_mins(2);

/// A session with a host.
pub(crate) struct Reached {
    /// The session.
    pub(crate) session: Session,
    /// The settings of the session.
    pub(crate) settings: SshSettings,
    /// True if the host key is known or was added. Otherwise (`StrictHostKeyChecking no` and a key that
    /// contradicts the known ones), no passwords are sent and nothing is forwarded.
    pub(crate) trusted: bool,
    /// The running update of the host's known keys.
    pub(crate) update: Option<Update>,
}

/// Connects to a host, through jump hosts, and logs in.
///
/// # Errors
/// A [`Failure`] with the cause and a hint.
pub(crate) async fn connect(asked: &Asked, settings: &SshSettings) -> Result<Reached, Failure> {
    let below = Box::pin(dial::below(asked, settings, 0)).await?;
    over(below, settings).await
}

/// Starts a session over a stream to the host.
async fn over(below: BoxStream, settings: &SshSettings) -> Result<Reached, Failure> {
    let known = known_files::read(settings)?;
    let mut preferred = algorithms::preferred(settings)?;
    if settings.host_key_algorithms.is_none() {
        preferred.host_key = known.prefer_known(&preferred.host_key);
    }
    let offered = preferred.host_key.clone();
    let mut transport = transport::TransportConfig::new(preferred);
    transport.rekey_bytes = settings.rekey_limit.bytes;
    transport.rekey_after = settings.rekey_limit.time;
    let taken = Taken::default();
    let policy = host_key::Policy::new(settings, known, &taken);
    let login = identities::login(settings, &taken).await?;
    let mut config = ClientConfig::new(Arc::new(policy), login);
    config.transport = transport;
    config.timeout = settings.connect_timeout.unwrap_or(PATIENCE);
    let interval = settings.server_alive_interval;
    config.keepalive = (!interval.is_zero()).then_some(Keepalive {
        interval,
        max_missed: settings.server_alive_count.max(1),
    });
    let session = Client::connect(below, config)
        .await
        .map_err(|why| failure::of(why, settings))?;
    let negotiated = session.negotiated();
    debug!(
        "{}: logged in at {}, {negotiated:?}",
        settings.host_name,
        session.version()
    );
    let update = match taken.standing() {
        Some(Standing::Known) => update::begin(&session, settings, offered, true).await,
        // A key that was added just now may be an attacker's: it must not cause the removal of others.
        Some(Standing::Confirmed) => update::begin(&session, settings, offered, false).await,
        // As in OpenSSH: a key that the user has not confirmed does not authenticate others.
        Some(Standing::Unasked | Standing::Doubted) | None => None,
    };
    Ok(Reached {
        session,
        settings: settings.clone(),
        trusted: !taken.is_doubted(),
        update,
    })
}
