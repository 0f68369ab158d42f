//! The client side: [`adit_russh::client`] with the [`Handler`] of russh 0.62.

use std::fmt::Debug;
use std::sync::Arc;

pub use adit_russh::client::*;
use adit_russh::keys::{PublicKey, PublicKeyOrCertificate};
use adit_russh::{Channel, ChannelId, ChannelOpenFailure, Error, Sig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::ToSocketAddrs;

/// A handle to a session.
pub type Handle<H> = adit_russh::client::Handle<Adapter<H>>;

/// A [`Handler`] as a handler of adit-russh.
#[derive(Debug)]
pub struct Adapter<H>(H);

/// Declares [`Handler`] with these callbacks and implements adit-russh's trait with them.
///
/// The callbacks in `shared` have the same arguments in both traits. The expression is the result of a
/// callback that the program does not implement.
macro_rules! handler {
    (
        own { $($own:item)* }
        adapted { $($adapted:item)* }
        shared { $(
            $(#[$about:meta])*
            fn $name:ident($($arg:ident: $ty:ty),*) = $default:expr;
        )* }
    ) => {
        /// The callbacks of a client session. You may write each method as an `async fn`.
        #[allow(unused_variables, clippy::too_many_arguments, reason = "russh's signatures")]
        pub trait Handler: Sized + Send {
            /// The error type of the methods and the session.
            type Error: From<Error> + Send + Debug;

            $($own)*

            $(
                $(#[$about])*
                fn $name(
                    &mut self,
                    $($arg: $ty),*
                ) -> impl Future<Output = Result<(), Self::Error>> + Send {
                    async move { $default }
                }
            )*
        }

        impl<H: Handler> adit_russh::client::Handler for Adapter<H> {
            type Error = H::Error;

            $($adapted)*

            $(
                async fn $name(&mut self, $($arg: $ty),*) -> Result<(), H::Error> {
                    self.0.$name($($arg),*).await
                }
            )*
        }
    };
}

handler! {
    own {
        /// Checks the server's host key, or that in its certificate. The server has proved that it owns
        /// the key. The default refuses every key.
        fn check_server_key(
            &mut self,
            server_public_key: &PublicKey,
        ) -> impl Future<Output = Result<bool, Self::Error>> + Send {
            async { Ok(false) }
        }
    }
    adapted {
        async fn check_server_key(
            &mut self,
            server_public_key: &PublicKeyOrCertificate,
        ) -> Result<bool, H::Error> {
            self.0.check_server_key(&server_public_key.public_key()).await
        }
    }
    shared {
        /// Receives the server's banner before authentication.
        fn auth_banner(banner: &str, session: &mut Session) = Ok(());
        /// Receives bytes of a channel.
        fn data(channel: ChannelId, data: &[u8], session: &mut Session) = Ok(());
        /// Receives bytes of a channel's standard error.
        fn extended_data(channel: ChannelId, ext: u32, data: &[u8], session: &mut Session) = Ok(());
        /// Called when a request was granted.
        fn channel_success(channel: ChannelId, session: &mut Session) = Ok(());
        /// Called when a request was refused.
        fn channel_failure(channel: ChannelId, session: &mut Session) = Ok(());
        /// Called when a channel has closed.
        fn channel_close(channel: ChannelId, session: &mut Session) = Ok(());
        /// Called when the server sends no more bytes in a channel.
        fn channel_eof(channel: ChannelId, session: &mut Session) = Ok(());
        /// Called when the server refused a channel.
        fn channel_open_failure(
            channel: ChannelId,
            reason: ChannelOpenFailure,
            description: &str,
            language: &str,
            session: &mut Session
        ) = Ok(());
        /// Called when an exhausted window was extended.
        fn window_adjusted(channel: ChannelId, new_size: u32, session: &mut Session) = Ok(());
        /// Receives whether the client may handle flow control by ^S and ^Q itself.
        fn xon_xoff(channel: ChannelId, client_can_do: bool, session: &mut Session) = Ok(());
        /// Called when a program has exited.
        fn exit_status(channel: ChannelId, exit_status: u32, session: &mut Session) = Ok(());
        /// Called when a signal has terminated a program.
        fn exit_signal(
            channel: ChannelId,
            signal_name: Sig,
            core_dumped: bool,
            error_message: &str,
            lang_tag: &str,
            session: &mut Session
        ) = Ok(());
        /// Called for a connection to an address that the server listens on. Accepted by default.
        fn server_channel_open_forwarded_tcpip(
            channel: Channel<Msg>,
            connected_address: &str,
            connected_port: u32,
            originator_address: &str,
            originator_port: u32,
            reply: ChannelOpenHandle,
            session: &mut Session
        ) = {
            reply.accept().await;
            Ok(())
        };
        /// Called for a connection to a socket that the server listens on. Accepted by default.
        fn server_channel_open_forwarded_streamlocal(
            channel: Channel<Msg>,
            socket_path: &str,
            reply: ChannelOpenHandle,
            session: &mut Session
        ) = {
            reply.accept().await;
            Ok(())
        };
        /// Called for a connection to the forwarded agent. Accepted by default.
        fn server_channel_open_agent_forward(
            channel: Channel<Msg>,
            reply: ChannelOpenHandle,
            session: &mut Session
        ) = {
            reply.accept().await;
            Ok(())
        };
        /// Called for a connection to the forwarded X11 display. Accepted by default.
        fn server_channel_open_x11(
            channel: Channel<Msg>,
            originator_address: &str,
            originator_port: u32,
            reply: ChannelOpenHandle,
            session: &mut Session
        ) = {
            reply.accept().await;
            Ok(())
        };
        /// Receives the host keys that the server announces.
        fn openssh_ext_host_keys_announced(keys: Vec<PublicKey>, session: &mut Session) = Ok(());
        /// Called when the session is over. Awaiting the [`Handle`] returns this method's result.
        fn disconnected(reason: DisconnectReason<Self::Error>) = match reason {
            DisconnectReason::ReceivedDisconnect(_) => Ok(()),
            DisconnectReason::Error(why) => Err(why),
        };
    }
}

/// Connects over TCP, exchanges keys, and asks `handler` to check the server's host key.
///
/// # Errors
/// The errors of [`adit_russh::client::connect`].
pub async fn connect<H: Handler + 'static, A: ToSocketAddrs>(
    config: Arc<Config>,
    addrs: A,
    handler: H,
) -> Result<Handle<H>, H::Error> {
    adit_russh::client::connect(config, addrs, Adapter(handler)).await
}

/// Connects over any stream.
///
/// # Errors
/// The errors of [`adit_russh::client::connect`].
pub async fn connect_stream<H, R>(
    config: Arc<Config>,
    stream: R,
    handler: H,
) -> Result<Handle<H>, H::Error>
where
    H: Handler + 'static,
    R: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    adit_russh::client::connect_stream(config, stream, Adapter(handler)).await
}
