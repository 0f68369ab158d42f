//! The client's side of connections.

use core::fmt;
use std::sync::Arc;

use adit_crypto::{CryptoError, Direction, StreamKey, StreamKind};
use adit_wire::{Entropy, ProtocolError, Target, UnixTime, encode_addr};

use super::{PacketClient, StackOpen, StackSeal, cipher_fault, header};
use crate::{ClientParam, ClientSeal, ProtocolClient, ProtocolKind};

/// A client's state for one server, including the cipher. Keep it for as long as the process runs:
/// it stores the client id and counts the connections, and servers check both.
///
/// # Examples
///
/// ```
/// use adit_crypto::StreamKind;
/// use adit_shadowsocksr::{ClientParam, ClientStack, ProtocolKind};
/// use adit_wire::{FixedEntropy, Seal, UnixTime};
///
/// let kind: ProtocolKind = "auth_chain_a".parse()?;
/// let param = ClientParam::parse(kind, "42:secret")?;
/// let client = ClientStack::new(StreamKind::Aes128Ctr, b"password", kind, param, 0)?;
///
/// // Use the system's clock and random numbers in a program.
/// let target = "example.test:443".parse()?;
/// let (seal, _open) =
///     client.connect_codecs(&target, UnixTime(1_800_000_000), &mut FixedEntropy::new([7; 64]))?;
/// assert!(seal.must_send_head(), "the request goes out even without data");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ClientStack {
    cipher: Arc<StreamKey>,
    client: ProtocolClient,
}

/// The codecs of a client's connection.
pub type ClientCodecs = (StackSeal<ClientSeal>, StackOpen);

impl ClientStack {
    /// Creates the state. `obfs_overhead` is the number of bytes that the obfs adds to a full
    /// frame: 5 for those that imitate TLS and 0 for the others; it must match the server's.
    ///
    /// # Errors
    ///
    /// Fails if the cipher does not accept the key.
    pub fn new(
        method: StreamKind,
        password: &[u8],
        kind: ProtocolKind,
        param: ClientParam,
        obfs_overhead: u16,
    ) -> Result<Self, CryptoError> {
        let key = method.key_from_password(password);
        Ok(Self {
            cipher: Arc::new(StreamKey::new(method, key.expose())?),
            client: ProtocolClient::new(kind, key.expose(), param, obfs_overhead),
        })
    }

    /// Returns the protocol.
    #[must_use]
    pub fn kind(&self) -> ProtocolKind {
        self.client.kind()
    }

    /// Creates the codecs of one connection to `target`. The header is owed
    /// ([`adit_wire::Seal::must_send_head`]) and is sent with the first payload.
    ///
    /// # Errors
    ///
    /// Fails if no cipher can be started.
    pub fn connect_codecs(
        &self,
        target: &Target,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<ClientCodecs, ProtocolError> {
        let mut header = Vec::with_capacity(target.addr_len());
        encode_addr(target, &mut header);
        self.open_codecs(header, now, entropy)
    }

    /// Creates the codecs of one connection for datagrams
    /// ([`parse_datagram`](crate::parse_datagram)). The header is owed.
    ///
    /// # Errors
    ///
    /// Fails if no cipher can be started.
    pub fn connect_datagrams(
        &self,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<ClientCodecs, ProtocolError> {
        self.open_codecs(header::FOR_DATAGRAMS.to_vec(), now, entropy)
    }

    fn open_codecs(
        &self,
        header: Vec<u8>,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<ClientCodecs, ProtocolError> {
        let mut iv = vec![0; self.cipher.kind().iv_len()];
        entropy.fill(&mut iv);
        let (frames, open) = self.client.connect_codecs(&iv, now, entropy)?;
        let cipher = self.cipher.start_stream(&iv, Direction::Encrypt);
        let cipher = cipher.map_err(cipher_fault)?;
        Ok((
            StackSeal::new(frames, cipher, iv, header),
            StackOpen::awaiting_iv(self.cipher.clone(), open),
        ))
    }

    /// Creates the packet codec of one UDP association.
    #[must_use]
    pub fn new_association(&self, entropy: &mut dyn Entropy) -> PacketClient {
        PacketClient::new(self.cipher.clone(), self.client.new_association(entropy))
    }
}

impl fmt::Debug for ClientStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientStack")
            .field("cipher", &self.cipher)
            .field("client", &self.client)
            .finish()
    }
}
