//! Both sides against each other, and against hostile peers.

mod hostile;
mod packets;
mod streams;

use adit_wire::{Entropy, HandshakeProgress, ProtocolError, Seal, UnixTime};

use crate::{
    AcceptedConnection, ClientParam, FrameOpen, OpenedFrame, ProtocolClient, ProtocolKind,
    ProtocolServer, ReplayStore, ServerHandshake, ServerParam,
};

pub(super) const NOW: UnixTime = UnixTime(1_700_000_000);

/// Random numbers that depend only on the seed of the test.
pub(super) struct TestRng(pub(super) u64);

impl Entropy for TestRng {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
            *byte = self.0.to_be_bytes()[0];
        }
    }
}

/// Returns a matching client and server.
pub(super) fn pair(
    kind: ProtocolKind,
    user: bool,
) -> (ProtocolClient, std::sync::Arc<ProtocolServer>) {
    let user = user && kind.has_users();
    let (client, server) = if user {
        ("42:userpw", "64#42:userpw,7:other")
    } else {
        ("", "")
    };
    let client = ClientParam::parse(kind, client).unwrap();
    let server = ServerParam::parse(kind, server).unwrap();
    let replays = ReplayStore::new([7; 16], NOW).into();
    (
        ProtocolClient::new(kind, &[3; 32], client, 0),
        ProtocolServer::new(kind.into(), &[3; 32], &server, 0, replays).into(),
    )
}

/// Opens frames that arrive in chunks of this size; all of `wire` must be consumed.
pub(super) fn open_all(
    open: &mut FrameOpen,
    wire: &[u8],
    piece: usize,
) -> Result<Vec<u8>, ProtocolError> {
    let (plain, left) = open_some(open, Vec::new(), wire, piece)?;
    assert_eq!(left, 0, "a frame is truncated");
    Ok(plain)
}

/// Does the same after bytes that are already present; returns the data and the number of remaining
/// bytes.
pub(super) fn open_some(
    open: &mut FrameOpen,
    mut held: Vec<u8>,
    wire: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, usize), ProtocolError> {
    let (mut plain, mut pieces) = (Vec::new(), wire.chunks(piece.min(wire.len()).max(1)));
    loop {
        let mut used = 0;
        loop {
            let rest = &mut held[used..];
            match open.open_frame(rest)? {
                OpenedFrame::NeedMore { total } => {
                    assert!(
                        total > rest.len(),
                        "NeedMore must ask for more than there is"
                    );
                    break;
                }
                OpenedFrame::Plain { consumed, payload } => {
                    assert!(consumed > 0 && payload.end <= consumed && consumed <= rest.len());
                    plain.extend_from_slice(&rest[payload]);
                    used += consumed;
                }
                OpenedFrame::Inflated { consumed } => {
                    assert!(consumed > 0 && consumed <= rest.len());
                    plain.extend_from_slice(open.inflated());
                    used += consumed;
                }
            }
        }
        held.drain(..used);
        match pieces.next() {
            Some(piece) => held.extend_from_slice(piece),
            None => return Ok((plain, held.len())),
        }
    }
}

/// Runs a server over a request that arrives in chunks; returns all of its data.
pub(super) fn serve(
    handshake: &mut ServerHandshake,
    wire: &[u8],
    piece: usize,
    now: UnixTime,
) -> Result<(Vec<u8>, AcceptedConnection), ProtocolError> {
    let (mut held, mut rest) = (Vec::new(), wire);
    loop {
        match handshake.step(&mut held, now)? {
            HandshakeProgress::NeedMore { total } => {
                assert!(
                    total > held.len(),
                    "NeedMore must ask for more than there is"
                );
                if rest.is_empty() {
                    return Err(ProtocolError::Truncated("the first message"));
                }
                let (now, later) = rest.split_at(piece.min(rest.len()));
                held.extend_from_slice(now);
                rest = later;
            }
            HandshakeProgress::Done(mut accepted) => {
                let mut plain = held[accepted.payload.clone()].to_vec();
                held.drain(..accepted.consumed);
                let (more, left) = open_some(&mut accepted.open, held, rest, piece)?;
                assert_eq!(left, 0, "a frame is truncated");
                plain.extend(more);
                return Ok((plain, accepted));
            }
        }
    }
}

/// Seals writes of the given sizes, of bytes that begin with a target header.
pub(super) fn write(seal: &mut dyn Seal, sizes: &[usize]) -> (Vec<u8>, Vec<u8>) {
    let (mut plain, mut wire) = (Vec::new(), Vec::new());
    for size in sizes {
        let mut data: Vec<u8> = (0..*size).map(|i| (i * 7 % 251).to_le_bytes()[0]).collect();
        if plain.is_empty() {
            data.splice(0..0, [1, 127, 0, 0, 1, 0, 80]);
        }
        wire.extend(adit_wire::codec_laws::seal_all(seal, &data, usize::MAX).unwrap());
        plain.extend(data);
    }
    (plain, wire)
}
