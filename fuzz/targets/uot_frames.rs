//! Datagrams in a stream (UDP over TCP): arbitrary bytes, and frames of our own.

#![no_main]

use adit_fuzz::{ActionScript, SplitInput, split_flags};
use adit_shadowsocks::uot::{
    Frame, HEAD_MAX, Request, parse_frame, parse_request, put_head, put_request,
};
use adit_wire::{ProtocolError, Target, parse_addr};
use libfuzzer_sys::fuzz_target;

type Datagrams = Vec<(Option<Target>, Vec<u8>)>;

/// Returns all frames, and the number of bytes that wait for more.
fn read_datagrams(
    wire: &[u8],
    pieces: &[usize],
    connected: bool,
) -> Result<(Datagrams, usize), ProtocolError> {
    let (mut held, mut found, mut rest) = (Vec::new(), Vec::new(), wire);
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at(rest.len().min(*piece));
        held.extend_from_slice(now);
        rest = later;
        let mut used = 0;
        loop {
            let front = &mut held[used..];
            let before = front.to_vec();
            let frame = parse_frame(front, connected)?;
            assert_eq!(front, before, "reading changed the bytes");
            match frame {
                Frame::NeedMore { total } => {
                    assert!(total > front.len() && total <= HEAD_MAX + 65_535);
                    break;
                }
                Frame::Packet { peer, payload } => {
                    assert_eq!(peer.is_none(), connected);
                    found.push((peer, front[payload.clone()].to_vec()));
                    used += payload.end;
                }
            }
        }
        held.drain(..used);
        if rest.is_empty() {
            break;
        }
    }
    Ok((found, held.len()))
}

fn write_datagrams(datagrams: &Datagrams) -> Vec<u8> {
    let mut wire = Vec::new();
    for (peer, data) in datagrams {
        put_head(peer.as_ref(), data.len(), &mut wire).expect("short");
        wire.extend_from_slice(data);
    }
    wire
}

fn check_request(bytes: &[u8]) {
    match parse_request(bytes) {
        Ok(Ok((request, len))) => {
            assert!(len <= bytes.len());
            let mut again = Vec::new();
            put_request(&request, &mut again);
            assert_eq!(parse_request(&again), Ok(Ok((request, again.len()))));
            for cut in 0..len {
                let waits = parse_request(&bytes[..cut]).expect("a beginning");
                assert!(waits.is_err_and(|total| total > cut && total <= len));
            }
        }
        Ok(Err(total)) => assert!(total > bytes.len() && total < HEAD_MAX),
        Err(_) => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let connected = flags & 1 != 0;
    match (flags >> 1) % 3 {
        0 => {
            let found = SplitInput::new(input)
                .assert_split_independent(|bytes, pieces| read_datagrams(bytes, pieces, connected));
            if let Ok((datagrams, _)) = found {
                // The result is encoded, and parses as the same.
                let wire = write_datagrams(&datagrams);
                let again = read_datagrams(&wire, &[usize::MAX], connected);
                assert_eq!(again, Ok((datagrams, 0)));
            }
        }
        1 => {
            let mut script = ActionScript::new(input);
            let mut datagrams = Vec::new();
            let mut piece = 0;
            while !script.is_empty() {
                piece = usize::from(script.read_u8()).max(1);
                let peer = parse_addr(script.read_bytes()).map(|(target, _)| target);
                let fallback = Target::from(core::net::SocketAddr::from(([192, 0, 2, 1], 53)));
                let peer = (!connected).then(|| peer.unwrap_or(fallback));
                datagrams.push((peer, script.read_bytes().to_vec()));
            }
            let wire = write_datagrams(&datagrams);
            let read = read_datagrams(&wire, &[piece.max(1)], connected);
            assert_eq!(read, Ok((datagrams, 0)));
        }
        _ => {
            check_request(input);
            if let Ok((target, _)) = parse_addr(input) {
                let mut bytes = Vec::new();
                put_request(&Request { connected, target }, &mut bytes);
                check_request(&bytes);
            }
        }
    }
});
