//! Connecting: from a stream to a session by key exchange, host key check and authentication.

use std::sync::Arc;

use adit_net::dial::{self, Family};
use adit_net::system::ThreadRng;
use adit_ssh_proto::SshError;
use adit_ssh_proto::key::AnyKey;
use adit_ssh_proto::transport::{Event, Transport};
use adit_stream::{BoxStream, Tcp};

use super::{ClientConfig, HostKey, LoginOutcome, PendingLogin, Session};
use crate::error::ConnectError;
use crate::peer::KeyExchangeInfo;
use crate::transport_stream::{Deadline, Received, TransportStream};

/// The entry point for SSH clients.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_ssh::client::{Client, ClientConfig, KnownHostsOnly, Login};
/// use adit_ssh_proto::key::PrivateKey;
///
/// let known = KnownHostsOnly::read("host.example", 22, &["known_hosts"])?;
/// let key = PrivateKey::from_text(&std::fs::read_to_string("id_ed25519")?, None)?;
/// let config = ClientConfig::for_known_host(known, Login::new("me").with_key(key));
/// let session = Client::connect_tcp("host.example", 22, config).await?;
/// let output = session.open_session().await?.collect_output("uname -a").await?;
/// println!("{:?}: {}", output.exit, String::from_utf8_lossy(&output.stdout));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Client;

impl Client {
    /// Connects to a host by TCP, trying each of its addresses until one answers, and starts a session.
    /// [`ClientConfig::timeout`] bounds the connection and each later wait.
    ///
    /// # Errors
    /// The name does not resolve, no address answers, and the errors of [`Client::connect`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the connection is closed.
    pub async fn connect_tcp(
        host: &str,
        port: u16,
        config: ClientConfig,
    ) -> Result<Session, ConnectError> {
        let found = dial::resolve(host, port, Family::Any).await?;
        let socket = dial::connect_first(&found, config.timeout).await?;
        Self::connect(Box::new(Tcp::new(socket)), config).await
    }

    /// Starts a session over a fresh connection and logs in.
    ///
    /// # Errors
    /// The stream failed, the peer violated the protocol or has no algorithm in common with this end,
    /// or its host key or the user was refused. See [`ConnectError`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the connection is closed.
    pub async fn connect(below: BoxStream, config: ClientConfig) -> Result<Session, ConnectError> {
        let mut entrance = Self::exchange_keys(below, &config).await?;
        let why = match entrance.log_in(&config.login).await {
            Ok(LoginOutcome::LoggedIn) => return Ok(entrance.into_session()),
            Ok(LoginOutcome::Failed { methods, .. }) => ConnectError::Auth { methods },
            Err(why) => why,
        };
        entrance.disconnect_with(&why);
        Err(why)
    }

    /// Starts a session over a fresh connection, up to the server's host key. For programs that decide
    /// about each login attempt themselves; [`ClientConfig::login`] is ignored.
    ///
    /// # Errors
    /// The stream failed, the peer violated the protocol or has no algorithm in common with this end,
    /// or its host key was refused.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the connection is closed.
    pub async fn exchange_keys(
        below: BoxStream,
        config: &ClientConfig,
    ) -> Result<PendingLogin, ConnectError> {
        let transport =
            Transport::new_client(Arc::new(config.transport.clone()), Box::new(ThreadRng))?;
        let mut line = TransportStream::new(below, transport);
        match run_key_exchange(&mut line, config).await {
            Ok(about) => Ok(PendingLogin::new(line, about, config)),
            Err(why) => {
                line.send_disconnect(&why);
                Err(why)
            }
        }
    }
}

/// Performs the first key exchange, including the host key check.
async fn run_key_exchange(
    line: &mut TransportStream,
    config: &ClientConfig,
) -> Result<KeyExchangeInfo, ConnectError> {
    let mut wait = Deadline::starting_now(config.timeout, "exchanging keys");
    loop {
        match line.next_input(wait).await? {
            Received::Event(Event::HostKey { algorithm, blob }) => {
                let key = AnyKey::parse_for(algorithm, &blob).map_err(SshError::from)?;
                let judged = config
                    .host_key
                    .verify_host_key(&HostKey { key, algorithm })
                    .await;
                // The check may have waited for a person, so the time limit starts again.
                wait = Deadline::starting_now(config.timeout, wait.step);
                if let Err(why) = judged {
                    line.transport.reject_host_key();
                    return Err(why.into());
                }
                line.transport.accept_host_key()?;
            }
            Received::Event(Event::Ready(_)) => {
                let about = KeyExchangeInfo::from_transport(&line.transport);
                return Ok(about.ok_or(SshError::Kex("it did not complete"))?);
            }
            Received::Event(_) => {}
            Received::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                return Err(SshError::Unexpected(number).into());
            }
        }
    }
}
