//! The acceptor of SSH clients: one connection, many streams, nothing else.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_config::SshServer;
use adit_ssh::server::{Connection, Incoming, Server, ServerConfig};
use adit_ssh::{ConnectError, IncomingChannel, Keepalive};
use adit_ssh_proto::connection::{ConnectionLimits, OpenFailureReason};
use adit_ssh_proto::key::{KeyGrant, KeySet};
use adit_stream::BoxStream;
use adit_wire::{Host, Target, unmap_ipv4};
use tracing::{debug, info};

use super::algorithms::server_algorithms;
use super::auth_policy::{AuthRules, ConnectionPolicy};
use super::{SshPlanError, host_key};
use crate::acceptor::{
    InboundRequest, PendingRequest, RequestAcceptor, RequestReply, RequestStream,
};
use crate::credentials::ListenerCredentials;
use crate::user_registry::UserRefusal;
use crate::{
    AcceptError, BoxFuture, ConnectionAddrs, DialError, FailureCause, HandshakeSlot, Request,
};

/// Maximum number of channels of one connection.
const MAX_CHANNELS: usize = 16_384;
/// Maximum number of channels that wait for their targets.
const MAX_PENDING_CHANNELS: usize = 1024;
/// Number of unanswered keepalives after which a client counts as gone.
const MAX_MISSED_KEEPALIVES: u32 = 3;
/// The reply to a client that requests anything but streams.
const STREAMS_ONLY_NOTICE: &str = "this server forwards connections (-D, -L, -W, -J) and nothing else: \
                             no shell, no command, no files";

/// An SSH server that only serves streams.
pub(crate) struct SshAcceptor {
    config: ServerConfig,
    rules: Arc<AuthRules>,
}

impl SshAcceptor {
    /// Reads the host key, or creates it. `grace` is the time limit for the login.
    pub(crate) fn new(
        server: &SshServer,
        passwords: ListenerCredentials,
        grace: std::time::Duration,
    ) -> Result<Self, SshPlanError> {
        let key = host_key::load_or_create(&server.host_key)?;
        let (shown, file) = (key.public_key().fingerprint(), server.host_key.display());
        info!("ssh: the host key is {shown}, in {file}");
        let rules = AuthRules::new(server, passwords);
        rules.check_keys()?;
        let mut config = ServerConfig::new(Arc::new(KeySet::from(vec![key])));
        config.transport.preferred = server_algorithms(&server.algorithms);
        config.auth = rules.server_config();
        config.login_grace = grace;
        config.limits = ConnectionLimits::default();
        config.limits.channels = MAX_CHANNELS;
        config.limits.pending_opens = MAX_PENDING_CHANNELS;
        config.keepalive = Some(Keepalive {
            interval: server.keepalive,
            max_missed: MAX_MISSED_KEEPALIVES,
        });
        Ok(Self {
            config,
            rules: Arc::new(rules),
        })
    }
}

impl RequestAcceptor for SshAcceptor {
    fn accept_request(
        &self,
        io: BoxStream,
        peer: ConnectionAddrs,
        place: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        Box::pin(async move {
            let gatekeeper =
                ConnectionPolicy::new(self.rules.clone(), unmap_ipv4(peer.remote.ip()));
            let accept = async { Ok(Server::accept(io, &self.config, &gatekeeper).await) };
            let connection = match place.run_while_held(accept).await? {
                Ok(connection) => connection,
                Err(why) if gatekeeper.has_refused() => {
                    return Err(AcceptError::Login(format!("no login: {why}")));
                }
                Err(why) if gatekeeper.has_computed_keys() => {
                    return Err(AcceptError::AbandonedKeyExchange(format!(
                        "keys, but no login: {why}"
                    )));
                }
                Err(ConnectError::Io(why)) => return Err(why.into()),
                Err(ConnectError::Ended(_)) => return Err(AcceptError::Eof),
                Err(ConnectError::Timeout { .. }) => return Err(AcceptError::Deadline),
                Err(why) => return Err(AcceptError::Refused(why.to_string())),
            };
            let user = connection.login().user.clone();
            debug!(client = %peer.remote, user, version = connection.version(), "logged in");
            Ok(InboundRequest::Multiplexed(Box::new(SshStreamRequests {
                connection,
                user,
                grant: gatekeeper.into_grant(),
            })))
        })
    }
}

/// The requests of one client.
struct SshStreamRequests {
    connection: Connection,
    user: String,
    grant: KeyGrant,
}

impl RequestStream for SshStreamRequests {
    fn user(&self) -> Option<&str> {
        Some(&self.user)
    }

    fn end_connection(&mut self, why: &str) {
        self.connection.disconnect(why);
    }

    fn next_request(&mut self) -> BoxFuture<'_, Option<PendingRequest>> {
        Box::pin(async move {
            loop {
                match self.connection.accept().await? {
                    Incoming::DirectTcpip {
                        host,
                        port,
                        opening,
                        ..
                    } => {
                        if let Some(pending) = self.channel_request(&host, port, opening) {
                            return Some(pending);
                        }
                    }
                    Incoming::Session(session) => {
                        session.refuse(OpenFailureReason::Prohibited, STREAMS_ONLY_NOTICE);
                    }
                    Incoming::DirectStreamlocal { opening, .. } | Incoming::Other(opening) => {
                        opening.refuse(OpenFailureReason::Prohibited, STREAMS_ONLY_NOTICE);
                    }
                    // Requests to listen on this machine are never granted: dropping refuses them.
                    _ => {}
                }
            }
        })
    }
}

impl SshStreamRequests {
    fn channel_request(
        &self,
        host: &str,
        port: u16,
        opening: IncomingChannel,
    ) -> Option<PendingRequest> {
        if !self.grant.port_forwarding || !self.grant.may_open(host, port) {
            let text = "the key that let you in is not allowed to open this";
            opening.refuse(OpenFailureReason::Prohibited, text);
            return None;
        }
        let Ok(host) = Host::parse(host) else {
            opening.refuse(OpenFailureReason::ConnectFailed, "this is no host");
            return None;
        };
        let request = Request {
            user: Some(self.user.clone()),
            ..Request::for_target(Target::new(host, port))
        };
        Some(PendingRequest::new(request, PendingChannel { opening }))
    }
}

/// A channel that waits for its target.
struct PendingChannel {
    opening: IncomingChannel,
}

impl RequestReply for PendingChannel {
    fn client_stream(&mut self) -> Option<&mut BoxStream> {
        None
    }

    fn reply_success(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            let channel = self.opening.accept().map_err(io::Error::other)?;
            Ok(Box::new(channel) as BoxStream)
        })
    }

    fn reply_failure<'a>(self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        let (reason, text) = refusal_text(why);
        self.opening.refuse(reason, text);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the reply for a failure: the one of a direct connection, without anything about the chain.
fn refusal_text(why: &DialError) -> (OpenFailureReason, &'static str) {
    match why.cause {
        FailureCause::Denied | FailureCause::DeniedByServer => {
            let text = "the server's rules do not allow this destination";
            (OpenFailureReason::Prohibited, text)
        }
        FailureCause::OverQuota => (OpenFailureReason::Prohibited, UserRefusal::OverQuota.text()),
        FailureCause::Expired => (OpenFailureReason::Prohibited, UserRefusal::Expired.text()),
        FailureCause::TooManySessions => (
            OpenFailureReason::Shortage,
            UserRefusal::TooManySessions.text(),
        ),
        FailureCause::TooManyDevices => (
            OpenFailureReason::Shortage,
            UserRefusal::TooManyDevices.text(),
        ),
        FailureCause::Exhausted => (OpenFailureReason::Shortage, "too many connections are open"),
        FailureCause::TimedOut => (OpenFailureReason::ConnectFailed, "Connection timed out"),
        FailureCause::HostUnreachable => (OpenFailureReason::ConnectFailed, "No route to host"),
        FailureCause::UnknownName => (
            OpenFailureReason::ConnectFailed,
            "Name or service not known",
        ),
        FailureCause::NetworkUnreachable => {
            (OpenFailureReason::ConnectFailed, "Network is unreachable")
        }
        FailureCause::ConnectionRefused | FailureCause::ConnectionReset => {
            (OpenFailureReason::ConnectFailed, "Connection refused")
        }
        _ => (
            OpenFailureReason::ConnectFailed,
            "the destination cannot be reached",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DialStage;

    #[test]
    fn clients_are_told_the_kind_of_failure_alone() {
        for (cause, reason) in [
            (
                FailureCause::ConnectionRefused,
                OpenFailureReason::ConnectFailed,
            ),
            (FailureCause::TimedOut, OpenFailureReason::ConnectFailed),
            (FailureCause::DeniedByServer, OpenFailureReason::Prohibited),
            (FailureCause::Exhausted, OpenFailureReason::Shortage),
        ] {
            let hop = "ssh://hidden:22".to_owned();
            let (stage, why) = (DialStage::Dial { hop }, io::Error::other("secret words"));
            let (said, text) = refusal_text(&DialError {
                stage,
                cause,
                source_error: why,
            });
            assert_eq!(said, reason, "{cause:?}");
            assert!(
                !text.contains("hidden") && !text.contains("secret"),
                "{text}"
            );
        }
        let denied = refusal_text(&DialError::denied_by_rule("10.0.0.1 is private"));
        assert_eq!(denied.0, OpenFailureReason::Prohibited);
    }
}
