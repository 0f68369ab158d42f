//! The callbacks of a client session.

use std::fmt::Debug;
use std::future::Future;

use super::{ChannelOpenHandle, Msg, Session};
use crate::keys::{PublicKey, PublicKeyOrCertificate};
use crate::{Channel, ChannelId, ChannelOpenFailure, Disconnect, Error, Sig};

/// The server's disconnect message.
#[derive(Debug)]
pub struct RemoteDisconnectInfo {
    /// The reason code.
    pub reason_code: Disconnect,
    /// The explanation, printable characters only.
    pub message: String,
    /// The explanation's language: always empty.
    pub lang_tag: String,
}

/// The reason why a session is over.
#[derive(Debug)]
pub enum DisconnectReason<E: From<Error> + Send> {
    /// The server sent a disconnect message.
    ReceivedDisconnect(RemoteDisconnectInfo),
    /// Either side failed.
    Error(E),
}

/// The callbacks of a client session. You may write each method as an `async fn`.
///
/// The session's task calls one method at a time, in the order of the server's messages, and reads on
/// when it returns; sending continues meanwhile. An error ends the session.
#[allow(
    unused_variables,
    reason = "the names are documentation for implementors"
)]
pub trait Handler: Sized + Send {
    /// The error type of the methods and the session.
    type Error: From<Error> + Send + Debug;

    /// Checks the server's host key. The server has proved that it owns the key; of a certificate
    /// nothing else is checked. The default refuses every key.
    fn check_server_key(
        &mut self,
        server_public_key: &PublicKeyOrCertificate,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        async { Ok(false) }
    }

    /// Receives the server's banner before authentication, safe for a terminal.
    fn auth_banner(
        &mut self,
        banner: &str,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Receives bytes of a channel. They are passed to the [`Channel`] too.
    fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Receives bytes of a channel's standard error. They are passed to the [`Channel`] too.
    fn extended_data(
        &mut self,
        channel: ChannelId,
        ext: u32,
        data: &[u8],
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when a request was granted.
    fn channel_success(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when a request was refused.
    fn channel_failure(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when a channel has closed.
    fn channel_close(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when the server sends no more bytes in a channel.
    fn channel_eof(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when the server refused a channel. The call that opened it fails too.
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

    /// Called when an exhausted window was extended. `new_size` is the maximum size of the next data
    /// message, in bytes.
    fn window_adjusted(
        &mut self,
        channel: ChannelId,
        new_size: u32,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Receives whether the client may handle flow control by ^S and ^Q itself.
    fn xon_xoff(
        &mut self,
        channel: ChannelId,
        client_can_do: bool,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when a program has exited.
    fn exit_status(
        &mut self,
        channel: ChannelId,
        exit_status: u32,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when a signal has terminated a program.
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

    /// Called for a connection to an address that the server listens on for this client. Accepted by
    /// default.
    #[allow(clippy::too_many_arguments, reason = "same signature as in russh")]
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

    /// Called for a connection to a Unix-domain socket that the server listens on for this client.
    /// Accepted by default.
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

    /// Called when a program on the server connects to the forwarded agent. Accepted by default.
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

    /// Called when a program on the server connects to the forwarded X11 display. Accepted by default.
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

    /// Receives all host keys that the server announces, without unknown types. The server has not
    /// proved that it owns them.
    fn openssh_ext_host_keys_announced(
        &mut self,
        keys: Vec<PublicKey>,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Called when the session is over. Awaiting the [`Handle`](super::Handle) returns this method's
    /// result.
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
