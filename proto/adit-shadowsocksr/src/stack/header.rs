//! The target header of a request: an address (RFC 1928) with flags in its type.

use adit_wire::{AddrError, HandshakeProgress, ProtocolError, Target, parse_addr};

/// Flag: datagrams follow, not a stream.
const DATAGRAMS: u8 = 0x08;
/// Flag: `verify_sha1` is in use; its codec has checked the tag.
const ONE_TIME: u8 = 0x10;

/// A header's target, and a flag that is true if datagrams follow instead of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TargetHeader {
    pub(super) target: Target,
    pub(super) datagrams: bool,
}

/// The header of a client that sends datagrams. It has no target, since each datagram has its own.
pub(super) const FOR_DATAGRAMS: [u8; 7] = [1 | DATAGRAMS, 0, 0, 0, 0, 0, 0];

/// Reads the header at the front of `plain` and returns it with its length. The flag of
/// `verify_sha1` is valid only with `one_time`.
pub(super) fn read_header(
    plain: &[u8],
    one_time: bool,
) -> Result<HandshakeProgress<(TargetHeader, usize)>, ProtocolError> {
    let Some((first, rest)) = plain.split_first() else {
        return Ok(HandshakeProgress::NeedMore { total: 1 });
    };
    let allowed = DATAGRAMS | if one_time { ONE_TIME } else { 0 };
    let step = if first & allowed == 0 {
        parse_target(plain)?
    } else {
        // Rare and short: a copy without the flags.
        let rest = rest.get(..rest.len().min(adit_wire::MAX_ADDR_LEN));
        parse_target(&[&[first & !allowed], rest.unwrap_or_default()].concat())?
    };
    Ok(match step {
        HandshakeProgress::NeedMore { total } => HandshakeProgress::NeedMore { total },
        HandshakeProgress::Done((target, len)) => {
            let datagrams = first & DATAGRAMS != 0;
            HandshakeProgress::Done((TargetHeader { target, datagrams }, len))
        }
    })
}

fn parse_target(plain: &[u8]) -> Result<HandshakeProgress<(Target, usize)>, ProtocolError> {
    match parse_addr(plain) {
        Ok(found) => Ok(HandshakeProgress::Done(found)),
        Err(AddrError::Incomplete { total }) => Ok(HandshakeProgress::NeedMore { total }),
        Err(AddrError::Type(_)) => Err(ProtocolError::Malformed("target header: address type")),
        Err(AddrError::Name) => Err(ProtocolError::Malformed("target header: host name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_for_those_who_may() {
        let target: Target = "127.0.0.1:80".parse().unwrap();
        let header = |first| [first, 127, 0, 0, 1, 0, 80, 9];
        for (first, one_time, datagrams) in [
            (0x01, false, false),
            (0x11, true, false),
            (0x09, false, true),
            (0x19, true, true),
        ] {
            let target = target.clone();
            let found = Ok(HandshakeProgress::Done((
                TargetHeader { target, datagrams },
                7,
            )));
            assert_eq!(read_header(&header(first), one_time), found, "{first:#x}");
        }
        for (first, one_time) in [(0x11, false), (0x19, false), (0x45, true), (0x0a, true)] {
            assert!(read_header(&header(first), one_time).is_err(), "{first:#x}");
        }
        let short = Ok(HandshakeProgress::NeedMore { total: 7 });
        assert_eq!(read_header(&header(0x11)[..6], true), short);
        assert_eq!(
            read_header(&[], true),
            Ok(HandshakeProgress::NeedMore { total: 1 })
        );
    }
}
