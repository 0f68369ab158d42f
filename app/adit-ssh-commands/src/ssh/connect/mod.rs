//! From what was typed to a session: configuration, way, host key, login.
//!
//! * [`Asked`] is a destination with its options; [`Asked::settings`] reads the configuration;
//! * [`connect`] goes there, through the hosts on the way, and logs in;
//! * what it needs of a person, [`terminal`](super::terminal) asks.
//!
//! Failures are fit to be shown; nothing but host keys and warnings is printed here.

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

/// How long a connection may take where `ConnectTimeout` says nothing.
const PATIENCE: Duration = Duration::from_mins(2);

/// A host that was reached.
pub(crate) struct Reached {
    /// The session with it.
    pub(crate) session: Session,
    /// How it was reached.
    pub(crate) settings: SshSettings,
    /// Its key is known, or was learned. If not (`StrictHostKeyChecking no`, and other keys are
    /// known), neither passwords nor forwards are for it.
    pub(crate) trusted: bool,
    /// Further keys of the host that are being looked at.
    pub(crate) update: Option<Update>,
}

/// Connects and logs in, through the hosts on the way.
///
/// # Errors
/// A [`Failure`] that says what went wrong and what to do.
pub(crate) async fn connect(asked: &Asked, settings: &SshSettings) -> Result<Reached, Failure> {
    let below = Box::pin(dial::below(asked, settings, 0)).await?;
    over(below, settings).await
}

/// Begins a session over a stream to the host.
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
        // A key that was learned just now may be anybody's: it is no reason to forget others.
        Some(Standing::Confirmed) => update::begin(&session, settings, offered, false).await,
        // As in OpenSSH: a key that nobody has looked at vouches for no other.
        Some(Standing::Unasked | Standing::Doubted) | None => None,
    };
    Ok(Reached {
        session,
        settings: settings.clone(),
        trusted: !taken.is_doubted(),
        update,
    })
}
