//! The least that a tunnel for datagrams can cost if it does not wait for several: receive, seal or
//! open, send, for the suite `ss-udp`. One client, a fixed key, no protocol: a datagram is a
//! number, an address and the payload.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread;

use adit_crypto::{AeadKey, AeadKind, TAG_LEN};
use adit_interop::loopback_addr;
use anyhow::{Context, Result, bail, ensure};

/// Length of the number in front of a datagram: its nonce, padded with zeros.
const NUMBER_LEN: usize = 8;
/// Length of a datagram's destination, or an answer's source: address and port, sealed with it.
const ADDRESS_LEN: usize = 6;
/// Size of a buffer for any datagram.
const BUFFER_LEN: usize = 64 << 10;
/// Length of the longest nonce of any cipher.
const MAX_NONCE_LEN: usize = 24;

/// Relays for its first client until the process is ended: as an entry if `onward` names another
/// end and the destination behind it, otherwise as an exit.
pub(crate) fn run_end(
    kind: AeadKind,
    at: SocketAddr,
    onward: Option<(SocketAddr, SocketAddr)>,
) -> Result<()> {
    let end = Arc::new(DatagramEnd {
        kind,
        key: AeadKey::new(kind, &vec![0x42; kind.key_len()])?,
        local: UdpSocket::bind(at)?,
        remote: UdpSocket::bind(loopback_addr(0))?,
        client: OnceLock::new(),
    });
    let back = end.clone();
    match onward {
        Some((server, to)) => {
            thread::spawn(move || back.open_answers());
            end.seal_for(server, to)
        }
        None => {
            thread::spawn(move || back.seal_answers());
            end.open_for_all()
        }
    }
}

struct DatagramEnd {
    kind: AeadKind,
    key: AeadKey,
    local: UdpSocket,
    remote: UdpSocket,
    client: OnceLock<SocketAddr>,
}

impl DatagramEnd {
    fn seal_for(&self, server: SocketAddr, to: SocketAddr) -> Result<()> {
        let mut bytes = vec![0; BUFFER_LEN];
        for number in 0.. {
            let (len, from) = self.local.recv_from(payload_slot(&mut bytes))?;
            self.client.get_or_init(|| from);
            let sealed = self.seal(&mut bytes, number, to, len)?;
            self.remote.send_to(sealed, server)?;
        }
        Ok(())
    }

    fn seal_answers(&self) -> Result<()> {
        let mut bytes = vec![0; BUFFER_LEN];
        for number in 0.. {
            let (len, from) = self.remote.recv_from(payload_slot(&mut bytes))?;
            let client = self
                .client
                .get()
                .context("an answer arrived before a request")?;
            let sealed = self.seal(&mut bytes, number, from, len)?;
            self.local.send_to(sealed, client)?;
        }
        Ok(())
    }

    fn open_for_all(&self) -> Result<()> {
        let mut bytes = vec![0; BUFFER_LEN];
        loop {
            let (len, from) = self.local.recv_from(&mut bytes)?;
            self.client.get_or_init(|| from);
            let (to, opened) = self.open(&mut bytes[..len])?;
            self.remote.send_to(opened, to)?;
        }
    }

    fn open_answers(&self) -> Result<()> {
        let mut bytes = vec![0; BUFFER_LEN];
        loop {
            let len = self.remote.recv(&mut bytes)?;
            let client = self
                .client
                .get()
                .context("an answer arrived before a request")?;
            let (_, opened) = self.open(&mut bytes[..len])?;
            self.local.send_to(opened, client)?;
        }
    }

    /// Seals the payload of `len` bytes.
    fn seal<'a>(
        &self,
        bytes: &'a mut [u8],
        number: u64,
        party: SocketAddr,
        len: usize,
    ) -> Result<&'a [u8]> {
        let IpAddr::V4(ip) = party.ip() else {
            bail!("{party} is not an IPv4 address");
        };
        bytes[..NUMBER_LEN].copy_from_slice(&number.to_be_bytes());
        bytes[NUMBER_LEN..][..4].copy_from_slice(&ip.octets());
        bytes[NUMBER_LEN + 4..][..2].copy_from_slice(&party.port().to_be_bytes());
        let end = NUMBER_LEN + ADDRESS_LEN + len;
        let nonce = Self::nonce(&bytes[..NUMBER_LEN]);
        let tag = (self.key)
            .seal_in_place(&nonce[..self.kind.nonce_len()], &mut bytes[NUMBER_LEN..end])?;
        bytes[end..][..TAG_LEN].copy_from_slice(&tag);
        Ok(&bytes[..end + TAG_LEN])
    }

    fn open<'a>(&self, bytes: &'a mut [u8]) -> Result<(SocketAddr, &'a [u8])> {
        ensure!(
            bytes.len() >= NUMBER_LEN + ADDRESS_LEN + TAG_LEN,
            "the datagram is too short"
        );
        let nonce = Self::nonce(&bytes[..NUMBER_LEN]);
        let (body, tag) = bytes[NUMBER_LEN..]
            .split_last_chunk_mut::<TAG_LEN>()
            .context("the datagram has no tag")?;
        (self.key).open_in_place(&nonce[..self.kind.nonce_len()], body, tag)?;
        let (party, payload) = body
            .split_first_chunk::<ADDRESS_LEN>()
            .context("the datagram has no address")?;
        let [a, b, c, d, port @ ..] = *party;
        Ok((([a, b, c, d], u16::from_be_bytes(port)).into(), payload))
    }

    fn nonce(number: &[u8]) -> [u8; MAX_NONCE_LEN] {
        let mut nonce = [0; MAX_NONCE_LEN];
        nonce[..NUMBER_LEN].copy_from_slice(number);
        nonce
    }
}

/// Returns the slot of the payload in `bytes`, with space for the tag after it.
fn payload_slot(bytes: &mut [u8]) -> &mut [u8] {
    let end = bytes.len() - TAG_LEN;
    &mut bytes[NUMBER_LEN + ADDRESS_LEN..end]
}
