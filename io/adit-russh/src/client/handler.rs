//! What a program is told about a session with a server.

use std::fmt::Debug;
use std::future::Future;

use super::{ChannelOpenHandle, Msg, Session};
use crate::keys::{PublicKey, PublicKeyOrCertificate};
use crate::{Channel, ChannelId, ChannelOpenFailure, Disconnect, Error, Sig};

/// The server's last words.
#[derive(Debug)]
pub struct RemoteDisconnectInfo {
    /// Why it has left.
    pub reason_code: Disconnect,
    /// Its words, printable characters only.
    pub message: String,
    /// Their language: always empty.
    pub lang_tag: String,
}

/// Why a session is over.
#[derive(Debug)]
pub enum DisconnectReason<E: From<Error> + Send> {
    /// The server has said so.
    ReceivedDisconnect(RemoteDisconnectInfo),
    /// Something failed, here or there.
    Error(E),
}

/// What a program is told. Each method may be written as an `async fn`.
///
/// The session's task calls one at a time, in the order of the server's messages, and reads on when
/// it is done; what is to be sent is sent meanwhile. An error ends the session.
#[allow(unused_variables, reason = "the names are for those who write one")]
pub trait Handler: Sized + Send {
    /// What its methods, and the session, fail with.
    type Error: From<Error> + Send + Debug;

    /// Whether this is the server's key. The server has proved that it owns it; of a certificate
    /// nothing else is checked. A handler that does not say takes none.
    fn check_server_key(
        &mut self,
        server_public_key: &PublicKeyOrCertificate,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        async { Ok(false) }
    }

    /// The server's words before the user is in, fit for a terminal.
    fn auth_banner(
        &mut self,
        banner: &str,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Bytes of a channel. They are in the [`Channel`] too.
    fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Bytes of a channel's standard error. They are in the [`Channel`] too.
    fn extended_data(
        &mut self,
        channel: ChannelId,
        ext: u32,
        data: &[u8],
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A request was granted.
    fn channel_success(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A request was refused.
    fn channel_failure(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A channel has closed.
    fn channel_close(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// The server sends no more bytes in a channel.
    fn channel_eof(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// The server has refused a channel. Whoever wanted it is told too.
    fn channel_open_failure(
        &mut self,
        channel: ChannelId,
        reason: ChannelOpenFailure,
        description: &str,
        language: &str,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A window that was used up has room again: what the next message may have, octets.
    fn window_adjusted(
        &mut self,
        channel: ChannelId,
        new_size: u32,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Whether the client may do flow control by ^S and ^Q itself.
    fn xon_xoff(
        &mut self,
        channel: ChannelId,
        client_can_do: bool,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A program has ended.
    fn exit_status(
        &mut self,
        channel: ChannelId,
        exit_status: u32,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A signal has ended a program.
    fn exit_signal(
        &mut self,
        channel: ChannelId,
        signal_name: Sig,
        core_dumped: bool,
        error_message: &str,
        lang_tag: &str,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// A connection has come to an address that the server listens on for this client. Accepted,
    /// unless it is written otherwise.
    #[allow(clippy::too_many_arguments, reason = "as russh has it")]
    fn server_channel_open_forwarded_tcpip(
        &mut self,
        channel: Channel<Msg>,
        connected_address: &str,
        connected_port: u32,
        originator_address: &str,
        originator_port: u32,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async move {
            reply.accept().await;
            Ok(())
        }
    }

    /// A connection has come to a socket that the server listens on for this client. Accepted,
    /// unless it is written otherwise.
    fn server_channel_open_forwarded_streamlocal(
        &mut self,
        channel: Channel<Msg>,
        socket_path: &str,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async move {
            reply.accept().await;
            Ok(())
        }
    }

    /// A program at the server wants the agent, which it was allowed. Accepted, unless it is
    /// written otherwise.
    fn server_channel_open_agent_forward(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async move {
            reply.accept().await;
            Ok(())
        }
    }

    /// A program at the server wants a window, which it was allowed. Accepted, unless it is
    /// written otherwise.
    fn server_channel_open_x11(
        &mut self,
        channel: Channel<Msg>,
        originator_address: &str,
        originator_port: u32,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async move {
            reply.accept().await;
            Ok(())
        }
    }

    /// The server tells all its host keys, of the types that are known here. It has not proved
    /// that it owns them.
    fn openssh_ext_host_keys_announced(
        &mut self,
        keys: Vec<PublicKey>,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// The session is over. What comes back is what waiting for the [`Handle`](super::Handle)
    /// gives.
    fn disconnected(
        &mut self,
        reason: DisconnectReason<Self::Error>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async {
            match reason {
                DisconnectReason::ReceivedDisconnect(_) => Ok(()),
                DisconnectReason::Error(why) => Err(why),
            }
        }
    }
}
