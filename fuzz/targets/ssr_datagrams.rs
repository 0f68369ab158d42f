//! Datagrams in a stream of ShadowsocksR: arbitrary bytes in any pieces; a parsed datagram is
//! encoded again.

#![no_main]

use adit_fuzz::SplitInput;
use adit_shadowsocksr::{ParsedDatagram, parse_datagram, put_datagram_head};
use adit_wire::{ProtocolError, Target};
use libfuzzer_sys::fuzz_target;

type Datagrams = Vec<(Target, Vec<u8>)>;

/// Returns all datagrams, and the number of bytes that wait for more.
fn read_datagrams(wire: &[u8], pieces: &[usize]) -> Result<(Datagrams, usize), ProtocolError> {
    let (mut held, mut found, mut rest) = (Vec::new(), Vec::new(), wire);
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at(rest.len().min(*piece));
        held.extend_from_slice(now);
        rest = later;
        let mut used = 0;
        loop {
            let front = &held[used..];
            match parse_datagram(front)? {
                ParsedDatagram::NeedMore { total } => {
                    assert!(total > front.len() && total <= 65_535);
                    break;
                }
                ParsedDatagram::Packet { peer, payload } => {
                    assert!(payload.end <= front.len() && payload.end > 0);
                    found.extend(peer.map(|peer| (peer, front[payload.clone()].to_vec())));
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

fuzz_target!(|input: &[u8]| {
    let found = SplitInput::new(input).assert_split_independent(read_datagrams);
    if let Ok((datagrams, _)) = found {
        let mut wire = Vec::new();
        for (peer, data) in &datagrams {
            put_datagram_head(peer, data.len(), &mut wire).expect("it was read");
            wire.extend_from_slice(data);
        }
        assert_eq!(read_datagrams(&wire, &[usize::MAX]), Ok((datagrams, 0)));
    }
});
