//! Handles to server connections.

use std::sync::Arc;

use adit_ssh::messages::OutgoingMessage;
use adit_ssh_proto::connection::{ChannelKind, DataKind, Originator, SshChannelRequest};
use bytes::Bytes;

use super::Msg;
use super::session::exit_signal_message;
use crate::session_core::{CHANNEL_STDERR, SessionCore, send_bytes};
use crate::{Channel, ChannelId, Disconnect, Error, Sig, config_conversion};

/// A handle to a connection for other tasks. It does not keep the connection alive.
#[derive(Debug, Clone)]
pub struct Handle {
    core: Arc<SessionCore>,
}

/// Fails without a reason if the connection is over, or if too much waits to be sent. In a closed
/// channel, messages are dropped.
type SendResult = Result<(), ()>;

#[allow(
    clippy::unused_async,
    clippy::result_unit_err,
    reason = "same signature as in russh"
)]
impl Handle {
    pub(super) const fn new(core: Arc<SessionCore>) -> Self {
        Self { core }
    }

    fn send_message(&self, channel: ChannelId, what: OutgoingMessage<'_>) -> SendResult {
        self.core.send_message(channel.0, what).map_err(drop)
    }

    async fn send_bytes(
        &self,
        id: ChannelId,
        kind: DataKind,
        mut data: Bytes,
    ) -> Result<(), Bytes> {
        let Ok(Some(channel)) = self.core.find_channel(id.0) else {
            return Err(data);
        };
        send_bytes(&channel, kind, &mut data)
            .await
            .map_err(|_| data)
    }

    /// Sends bytes in a channel, as its window allows.
    ///
    /// # Errors
    /// Returns the bytes that were not accepted if the channel is closed or the connection is over.
    pub async fn data(&self, id: ChannelId, data: impl Into<Bytes>) -> Result<(), Bytes> {
        self.send_bytes(id, DataKind::Stdout, data.into()).await
    }

    /// Sends bytes in another stream: 1 is standard error, the only one.
    ///
    /// # Errors
    /// The errors of [`Handle::data`]; returns all bytes for another number.
    pub async fn extended_data(
        &self,
        id: ChannelId,
        ext: u32,
        data: impl Into<Bytes>,
    ) -> Result<(), Bytes> {
        if ext != CHANNEL_STDERR {
            return Err(data.into());
        }
        self.send_bytes(id, DataKind::Stderr, data.into()).await
    }

    /// Sends EOF in a channel, after the bytes that were sent.
    ///
    /// # Errors
    /// The connection is over, or too much waits to be sent. The same applies to the following methods.
    /// In a closed channel, messages are dropped.
    pub async fn eof(&self, id: ChannelId) -> SendResult {
        self.send_message(id, OutgoingMessage::Eof)
    }

    /// Closes a channel, after the bytes that were sent.
    ///
    /// # Errors
    /// The errors of [`Handle::eof`].
    pub async fn close(&self, id: ChannelId) -> SendResult {
        self.send_message(id, OutgoingMessage::Close)
    }

    /// Grants the oldest unanswered request of a channel.
    ///
    /// # Errors
    /// The errors of [`Handle::eof`].
    pub async fn channel_success(&self, id: ChannelId) -> SendResult {
        self.core.reply_to_oldest(id.0, true).map_err(drop)
    }

    /// Refuses the oldest unanswered request of a channel.
    ///
    /// # Errors
    /// The errors of [`Handle::eof`].
    pub async fn channel_failure(&self, id: ChannelId) -> SendResult {
        self.core.reply_to_oldest(id.0, false).map_err(drop)
    }

    /// Sends the program's exit status, after the bytes that were sent.
    ///
    /// # Errors
    /// The errors of [`Handle::eof`].
    pub async fn exit_status_request(&self, id: ChannelId, exit_status: u32) -> SendResult {
        self.send_message(
            id,
            OutgoingMessage::QueuedRequest(SshChannelRequest::ExitStatus(exit_status)),
        )
    }

    /// Reports that a signal terminated the program. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// The errors of [`Handle::eof`].
    pub async fn exit_signal_request(
        &self,
        id: ChannelId,
        signal_name: Sig,
        core_dumped: bool,
        error_message: String,
        _lang_tag: String,
    ) -> SendResult {
        self.send_message(
            id,
            exit_signal_message(&signal_name, core_dumped, &error_message),
        )
    }

    /// Sends whether the client may handle flow control by ^S and ^Q itself.
    ///
    /// # Errors
    /// The errors of [`Handle::eof`].
    pub async fn xon_xoff_request(&self, id: ChannelId, client_can_do: bool) -> SendResult {
        self.send_message(
            id,
            OutgoingMessage::QueuedRequest(SshChannelRequest::FlowControl(client_can_do)),
        )
    }

    async fn open_channel(&self, kind: ChannelKind) -> Result<Channel<Msg>, Error> {
        Ok(Channel::new(self.core.open_channel(kind).await?))
    }

    /// Opens a channel for a connection to an address that the client asked to forward. Pass address
    /// and port as the client requested them, and the originator of the connection. Do not call it
    /// within a handler's method, which may keep the client's answer from being read.
    ///
    /// # Errors
    /// The client refused it, or the connection is over; or the port is above 65535.
    pub async fn channel_open_forwarded_tcpip<A: Into<String>, B: Into<String>>(
        &self,
        connected_address: A,
        connected_port: u32,
        originator_address: B,
        originator_port: u32,
    ) -> Result<Channel<Msg>, Error> {
        let kind = ChannelKind::ForwardedTcpip {
            address: connected_address.into(),
            port: config_conversion::to_tcp_port(connected_port)?,
            originator: Originator {
                address: originator_address.into(),
                port: originator_port,
            },
        };
        self.open_channel(kind).await
    }

    /// Opens a channel for a connection to a Unix-domain socket that the client asked to forward.
    ///
    /// # Errors
    /// The errors of [`Handle::channel_open_forwarded_tcpip`].
    pub async fn channel_open_forwarded_streamlocal<A: Into<String>>(
        &self,
        server_socket_path: A,
    ) -> Result<Channel<Msg>, Error> {
        let path = server_socket_path.into().into_bytes();
        self.open_channel(ChannelKind::ForwardedStreamlocal { path })
            .await
    }

    /// Connects to the client's agent, which the client has offered.
    ///
    /// # Errors
    /// The errors of [`Handle::channel_open_forwarded_tcpip`].
    pub async fn channel_open_agent(&self) -> Result<Channel<Msg>, Error> {
        self.open_channel(ChannelKind::Agent).await
    }

    /// Connects to the client's display, which the client has offered.
    ///
    /// # Errors
    /// The errors of [`Handle::channel_open_forwarded_tcpip`].
    pub async fn channel_open_x11<A: Into<String>>(
        &self,
        originator_address: A,
        originator_port: u32,
    ) -> Result<Channel<Msg>, Error> {
        let originator = Originator {
            address: originator_address.into(),
            port: originator_port,
        };
        self.open_channel(ChannelKind::X11 { originator }).await
    }

    /// Ends the connection once the queued data was sent. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// Fails if the connection is over.
    pub async fn disconnect(
        &self,
        reason: Disconnect,
        description: String,
        _language_tag: String,
    ) -> Result<(), Error> {
        self.core.disconnect(reason, &description)
    }
}
