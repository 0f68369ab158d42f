//! The acceptor of SSH clients: one connection, many streams, nothing else.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_config::SshServer;
use adit_ssh::server::{Connection, Incoming, Server, ServerConfig};
use adit_ssh::{ConnectError, Keepalive, Opening};
use adit_ssh_proto::connection::{Limits, OpenFailure};
use adit_ssh_proto::key::{Grant, KeySet};
use adit_stream::BoxStream;
use adit_wire::{Host, Target, unmap};
use tracing::{debug, info};

use super::offer::offered_by_server;
use super::policy::{Gatekeeper, Rules};
use super::{SshPlanError, host_key};
use crate::acceptor::{Acceptor, Inbound, Many, Pending, Reply};
use crate::{AcceptError, BoxFuture, Cause, DialError, Peer, Place, Request};

/// Maximum number of channels of one connection.
const CHANNELS: usize = 16_384;
/// Maximum number of channels that wait for their targets.
const PENDING: usize = 1024;
/// Number of unanswered keepalives after which a client counts as gone.
const MISSED: u32 = 3;
/// The reply to a client that requests anything but streams.
const STREAMS_ALONE: &str = "this server forwards connections (-D, -L, -W, -J) and nothing else: \
                             no shell, no command, no files";

/// An SSH server that only serves streams.
pub(crate) struct Ssh {
    config: ServerConfig,
    rules: Arc<Rules>,
}

impl Ssh {
    /// Reads the host key, or creates it. `grace` is the time limit for the login.
    pub(crate) fn new(
        server: &SshServer,
        grace: std::time::Duration,
    ) -> Result<Self, SshPlanError> {
        let key = host_key::kept(&server.host_key)?;
        let (shown, file) = (key.public().fingerprint(), server.host_key.display());
        info!("ssh: the host key is {shown}, in {file}");
        let rules = Rules::new(server);
        rules.check()?;
        let mut config = ServerConfig::new(Arc::new(KeySet::from(vec![key])));
        config.transport.preferred = offered_by_server(&server.offer);
        config.auth = rules.methods();
        config.login_grace = grace;
        config.limits = Limits {
            channels: CHANNELS,
            pending_opens: PENDING,
            ..Limits::default()
        };
        config.keepalive = Some(Keepalive {
            interval: server.keepalive,
            missed: MISSED,
        });
        Ok(Self {
            config,
            rules: Arc::new(rules),
        })
    }
}

impl Acceptor for Ssh {
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let gatekeeper = Gatekeeper::new(self.rules.clone(), unmap(peer.remote.ip()));
            let accept = async { Ok(Server::accept(io, &self.config, &gatekeeper).await) };
            let connection = match place.keep(accept).await? {
                Ok(connection) => connection,
                Err(why) if gatekeeper.has_refused() => {
                    return Err(AcceptError::Login(format!("no login: {why}")));
                }
                Err(why) if gatekeeper.has_computed() => {
                    return Err(AcceptError::Wasted(format!("keys, but no login: {why}")));
                }
                Err(ConnectError::Io(why)) => return Err(why.into()),
                Err(ConnectError::Ended(_)) => return Err(AcceptError::Eof),
                Err(ConnectError::Timeout { .. }) => return Err(AcceptError::Deadline),
                Err(why) => return Err(AcceptError::Refused(why.to_string())),
            };
            let user = connection.login().user.clone();
            debug!(client = %peer.remote, user, version = connection.version(), "logged in");
            Ok(Inbound::Many(Box::new(Streams {
                connection,
                user,
                grant: gatekeeper.into_grant(),
            })))
        })
    }
}

/// The requests of one client.
struct Streams {
    connection: Connection,
    user: String,
    grant: Grant,
}

impl Many for Streams {
    fn next(&mut self) -> BoxFuture<'_, Option<Pending>> {
        Box::pin(async move {
            loop {
                match self.connection.accept().await? {
                    Incoming::DirectTcpip {
                        host,
                        port,
                        opening,
                        ..
                    } => {
                        if let Some(pending) = self.wish(&host, port, opening) {
                            return Some(pending);
                        }
                    }
                    Incoming::Session(session) => {
                        session.refuse(OpenFailure::Prohibited, STREAMS_ALONE);
                    }
                    Incoming::DirectStreamlocal { opening, .. } | Incoming::Other(opening) => {
                        opening.refuse(OpenFailure::Prohibited, STREAMS_ALONE);
                    }
                    // Requests to listen on this machine are never granted: dropping refuses them.
                    _ => {}
                }
            }
        })
    }
}

impl Streams {
    fn wish(&self, host: &str, port: u16, opening: Opening) -> Option<Pending> {
        if !self.grant.port_forwarding || !self.grant.may_open(host, port) {
            let text = "the key that let you in is not allowed to open this";
            opening.refuse(OpenFailure::Prohibited, text);
            return None;
        }
        let Ok(host) = Host::parse(host) else {
            opening.refuse(OpenFailure::ConnectFailed, "this is no host");
            return None;
        };
        let request = Request {
            user: Some(self.user.clone()),
            ..Request::to(Target::new(host, port))
        };
        Some(Pending::new(request, Verdict { opening }))
    }
}

/// A channel that waits for its target.
struct Verdict {
    opening: Opening,
}

impl Reply for Verdict {
    fn client(&mut self) -> Option<&mut BoxStream> {
        None
    }

    fn proceed(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            let channel = self.opening.accept().map_err(io::Error::other)?;
            Ok(Box::new(channel) as BoxStream)
        })
    }

    fn refuse<'a>(self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        let (reason, text) = words(why);
        self.opening.refuse(reason, text);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the reply for a failure: the one of a direct connection, without anything about the chain.
fn words(why: &DialError) -> (OpenFailure, &'static str) {
    match why.cause {
        Cause::Denied | Cause::DeniedByServer => {
            let text = "the server's rules do not allow this destination";
            (OpenFailure::Prohibited, text)
        }
        Cause::Exhausted => (OpenFailure::Shortage, "too many connections are open"),
        Cause::TimedOut => (OpenFailure::ConnectFailed, "Connection timed out"),
        Cause::HostUnreachable => (OpenFailure::ConnectFailed, "No route to host"),
        Cause::UnknownName => (OpenFailure::ConnectFailed, "Name or service not known"),
        Cause::NetworkUnreachable => (OpenFailure::ConnectFailed, "Network is unreachable"),
        Cause::ConnectionRefused | Cause::ConnectionReset => {
            (OpenFailure::ConnectFailed, "Connection refused")
        }
        _ => (
            OpenFailure::ConnectFailed,
            "the destination cannot be reached",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stage;

    #[test]
    fn clients_are_told_the_kind_of_failure_alone() {
        for (cause, reason) in [
            (Cause::ConnectionRefused, OpenFailure::ConnectFailed),
            (Cause::TimedOut, OpenFailure::ConnectFailed),
            (Cause::DeniedByServer, OpenFailure::Prohibited),
            (Cause::Exhausted, OpenFailure::Shortage),
        ] {
            let hop = "ssh://hidden:22".to_owned();
            let (stage, why) = (Stage::Dial { hop }, io::Error::other("secret words"));
            let (said, text) = words(&DialError { stage, cause, why });
            assert_eq!(said, reason, "{cause:?}");
            assert!(
                !text.contains("hidden") && !text.contains("secret"),
                "{text}"
            );
        }
        let denied = words(&DialError::denied("10.0.0.1 is private"));
        assert_eq!(denied.0, OpenFailure::Prohibited);
    }
}
