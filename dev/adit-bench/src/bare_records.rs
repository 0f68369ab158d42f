//! The least that a tunnel can cost: read, seal or open, write, for the suite `ss-tcp`. Records of
//! 64 KiB with their length in front, a fixed key, no protocol and no other clients.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use adit_crypto::{AeadKey, AeadKind, NonceCounter, TAG_LEN};
use anyhow::{Context, Result, bail, ensure};

use crate::bare_datagrams;

/// Payload of a record, in bytes.
const RECORD_LEN: usize = 64 << 10;
/// Number of records that one call fills, and that one call writes.
const RECORDS_PER_CALL: usize = 4;
/// Size of the length in front of a record.
const HEADER_LEN: usize = 4;
const SLOT_LEN: usize = HEADER_LEN + RECORD_LEN + TAG_LEN;

/// An entry, if another end and the destination behind it are given; otherwise an exit.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct RecordEnds {
    /// A method of Shadowsocks
    #[arg(value_parser = cipher_of_method)]
    kind: AeadKind,
    at: SocketAddr,
    #[arg(requires = "to")]
    server: Option<SocketAddr>,
    to: Option<SocketAddr>,
}

fn cipher_of_method(method: &str) -> Result<AeadKind> {
    Ok(match method.trim_start_matches("2022-blake3-") {
        "aes-128-gcm" => AeadKind::Aes128Gcm,
        "aes-192-gcm" => AeadKind::Aes192Gcm,
        "aes-256-gcm" => AeadKind::Aes256Gcm,
        "chacha8-poly1305" => AeadKind::ChaCha8Poly1305,
        "chacha20-poly1305" | "chacha20-ietf-poly1305" => AeadKind::ChaCha20Poly1305,
        other => bail!("unknown method {other}"),
    })
}

/// Relays until the process is ended: connections, and datagrams at the same address.
pub(crate) fn run_ends(ends: RecordEnds) -> Result<()> {
    let onward = ends.server.zip(ends.to);
    thread::spawn(move || bare_datagrams::run_end(ends.kind, ends.at, onward));
    for near in TcpListener::bind(ends.at)?.incoming() {
        let near = near?;
        // An error here is a connection that one side aborted.
        thread::spawn(move || carry_connection(near, ends));
    }
    Ok(())
}

fn carry_connection(mut near: TcpStream, ends: RecordEnds) -> Result<()> {
    near.set_nodelay(true)?;
    let key = || AeadKey::new(ends.kind, &vec![0x42; ends.kind.key_len()]);
    let (seal, open) = (key()?, key()?);
    let (mut plain, mut sealed) = match ends.server.zip(ends.to) {
        Some((server, to)) => {
            let mut far = TcpStream::connect(server)?;
            writeln!(far, "{to}")?;
            (near, far)
        }
        None => {
            let mut line = Vec::new();
            while line.last() != Some(&b'\n') {
                ensure!(line.len() < 64, "the request is not a line");
                let mut one = [0];
                near.read_exact(&mut one)?;
                line.extend(one);
            }
            let to: SocketAddr = std::str::from_utf8(&line)?.trim().parse()?;
            (TcpStream::connect(to)?, near)
        }
    };
    plain.set_nodelay(true)?;
    sealed.set_nodelay(true)?;
    let (mut plain_back, mut sealed_back) = (plain.try_clone()?, sealed.try_clone()?);
    thread::spawn(move || seal_all(&mut plain, &mut sealed, &seal, ends.kind));
    open_all(&mut sealed_back, &mut plain_back, &open, ends.kind)
}

fn seal_all(from: &mut TcpStream, to: &mut TcpStream, key: &AeadKey, kind: AeadKind) -> Result<()> {
    let mut nonce = NonceCounter::new(kind);
    let mut bytes = vec![0; RECORDS_PER_CALL * SLOT_LEN];
    loop {
        let mut slots = bytes
            .chunks_exact_mut(SLOT_LEN)
            .map(|slot| IoSliceMut::new(&mut slot[HEADER_LEN..HEADER_LEN + RECORD_LEN]));
        let mut slots: [IoSliceMut<'_>; RECORDS_PER_CALL] =
            std::array::from_fn(|_| slots.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        let mut n = from.read_vectored(&mut slots)?;
        if n == 0 {
            to.shutdown(Shutdown::Write)?;
            return Ok(());
        }
        let mut end = 0;
        for slot in bytes.chunks_exact_mut(SLOT_LEN) {
            let len = n.min(RECORD_LEN);
            if len == 0 {
                break;
            }
            slot[..HEADER_LEN].copy_from_slice(&u32::try_from(len)?.to_be_bytes());
            let tag = key.seal_in_place(
                &nonce.next_nonce()?,
                &mut slot[HEADER_LEN..HEADER_LEN + len],
            )?;
            slot[HEADER_LEN + len..][..TAG_LEN].copy_from_slice(&tag);
            (n, end) = (n - len, end + HEADER_LEN + len + TAG_LEN);
        }
        to.write_all(&bytes[..end])?;
    }
}

fn open_all(from: &mut TcpStream, to: &mut TcpStream, key: &AeadKey, kind: AeadKind) -> Result<()> {
    let mut nonce = NonceCounter::new(kind);
    let mut bytes = vec![0; RECORDS_PER_CALL * SLOT_LEN];
    let mut held = 0;
    loop {
        let n = from.read(&mut bytes[held..])?;
        if n == 0 {
            to.shutdown(Shutdown::Write)?;
            return Ok(());
        }
        held += n;
        let mut rest = &mut bytes[..held];
        let mut runs: Vec<&[u8]> = Vec::with_capacity(RECORDS_PER_CALL);
        while let Some((head, _)) = rest.split_first_chunk::<HEADER_LEN>() {
            let len = usize::try_from(u32::from_be_bytes(*head))?;
            ensure!(len <= RECORD_LEN, "a record has {len} bytes");
            if rest.len() < HEADER_LEN + len + TAG_LEN {
                break;
            }
            let (record, behind) = rest.split_at_mut(HEADER_LEN + len + TAG_LEN);
            let (body, tag) = record[HEADER_LEN..].split_at_mut(len);
            let tag: &[u8; TAG_LEN] = (&*tag).try_into().context("the record has no tag")?;
            key.open_in_place(&nonce.next_nonce()?, body, tag)?;
            runs.push(body);
            rest = behind;
        }
        let left = rest.len();
        write_all(to, &runs)?;
        bytes.copy_within(held - left..held, 0);
        held = left;
    }
}

fn write_all(to: &mut TcpStream, runs: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = runs.iter().map(|run| IoSlice::new(run)).collect();
    let mut slices = slices.as_mut_slice();
    while !slices.is_empty() {
        match to.write_vectored(slices)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            n => IoSlice::advance_slices(&mut slices, n),
        }
    }
    Ok(())
}
