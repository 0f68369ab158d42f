//! The least that a tunnel for datagrams can cost if it does not wait for several: receive, seal or
//! open, send, for the suite `ss-udp`. One client, a fixed key, no protocol: a datagram is a
//! number, an address and the payload.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread;

use adit_crypto::{AeadKey, AeadKind, TAG_LEN};
use adit_interop::loopback;
use anyhow::{Context, Result, bail, ensure};

/// Length of the number in front of a datagram: its nonce, padded with zeros.
const NUMBER: usize = 8;
/// Length of a datagram's destination, or an answer's source: address and port, sealed with it.
const PARTY: usize = 6;
/// Size of a buffer for any datagram.
const ROOM: usize = 64 << 10;
/// Length of the longest nonce of any cipher.
const NONCE: usize = 24;

/// Relays for its first client until the process is ended: as an entry if `onward` names another
/// end and the destination behind it, otherwise as an exit.
pub(crate) fn run(
    kind: AeadKind,
    at: SocketAddr,
    onward: Option<(SocketAddr, SocketAddr)>,
) -> Result<()> {
    let end = Arc::new(End {
        kind,
        key: AeadKey::new(kind, &vec![0x42; kind.key_len()])?,
        near: UdpSocket::bind(at)?,
        far: UdpSocket::bind(loopback(0))?,
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

struct End {
    kind: AeadKind,
    key: AeadKey,
    near: UdpSocket,
    far: UdpSocket,
    client: OnceLock<SocketAddr>,
}

impl End {
    fn seal_for(&self, server: SocketAddr, to: SocketAddr) -> Result<()> {
        let mut bytes = vec![0; ROOM];
        for number in 0.. {
            let (len, from) = self.near.recv_from(payload(&mut bytes))?;
            self.client.get_or_init(|| from);
            let sealed = self.seal(&mut bytes, number, to, len)?;
            self.far.send_to(sealed, server)?;
        }
        Ok(())
    }

    fn seal_answers(&self) -> Result<()> {
        let mut bytes = vec![0; ROOM];
        for number in 0.. {
            let (len, from) = self.far.recv_from(payload(&mut bytes))?;
            let client = self
                .client
                .get()
                .context("an answer arrived before a request")?;
            let sealed = self.seal(&mut bytes, number, from, len)?;
            self.near.send_to(sealed, client)?;
        }
        Ok(())
    }

    fn open_for_all(&self) -> Result<()> {
        let mut bytes = vec![0; ROOM];
        loop {
            let (len, from) = self.near.recv_from(&mut bytes)?;
            self.client.get_or_init(|| from);
            let (to, opened) = self.open(&mut bytes[..len])?;
            self.far.send_to(opened, to)?;
        }
    }

    fn open_answers(&self) -> Result<()> {
        let mut bytes = vec![0; ROOM];
        loop {
            let len = self.far.recv(&mut bytes)?;
            let client = self
                .client
                .get()
                .context("an answer arrived before a request")?;
            let (_, opened) = self.open(&mut bytes[..len])?;
            self.near.send_to(opened, client)?;
        }
    }

    /// Seals the [payload] of `len` bytes.
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
        bytes[..NUMBER].copy_from_slice(&number.to_be_bytes());
        bytes[NUMBER..][..4].copy_from_slice(&ip.octets());
        bytes[NUMBER + 4..][..2].copy_from_slice(&party.port().to_be_bytes());
        let end = NUMBER + PARTY + len;
        let nonce = Self::nonce(&bytes[..NUMBER]);
        let tag =
            (self.key).seal_in_place(&nonce[..self.kind.nonce_len()], &mut bytes[NUMBER..end])?;
        bytes[end..][..TAG_LEN].copy_from_slice(&tag);
        Ok(&bytes[..end + TAG_LEN])
    }

    fn open<'a>(&self, bytes: &'a mut [u8]) -> Result<(SocketAddr, &'a [u8])> {
        ensure!(
            bytes.len() >= NUMBER + PARTY + TAG_LEN,
            "the datagram is too short"
        );
        let nonce = Self::nonce(&bytes[..NUMBER]);
        let (body, tag) = bytes[NUMBER..]
            .split_last_chunk_mut::<TAG_LEN>()
            .context("the datagram has no tag")?;
        (self.key).open_in_place(&nonce[..self.kind.nonce_len()], body, tag)?;
        let (party, payload) = body
            .split_first_chunk::<PARTY>()
            .context("the datagram has no address")?;
        let [a, b, c, d, port @ ..] = *party;
        Ok((([a, b, c, d], u16::from_be_bytes(port)).into(), payload))
    }

    fn nonce(number: &[u8]) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce[..NUMBER].copy_from_slice(number);
        nonce
    }
}

/// Returns the slot of the payload in `bytes`, with space for the tag after it.
fn payload(bytes: &mut [u8]) -> &mut [u8] {
    let end = bytes.len() - TAG_LEN;
    &mut bytes[NUMBER + PARTY..end]
}
