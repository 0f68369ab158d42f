//! The target header of a request: an address of RFC 1928 with flags in its type.

use adit_wire::{AddrError, Broken, Step, Target, parse_addr};

/// What follows are datagrams, not a stream.
const DATAGRAMS: u8 = 0x08;
/// `verify_sha1` is spoken; its codec has checked the tag.
const ONE_TIME: u8 = 0x10;

/// Reads the header at the front of `plain`: the target and the header's length.
///
/// The flag of `verify_sha1` is allowed where `one_time` is. The flag of UDP over TCP, which no
/// current client sets, is refused like any other type that is not served.
pub(super) fn read(plain: &[u8], one_time: bool) -> Result<Step<(Target, usize)>, Broken> {
    let Some((first, rest)) = plain.split_first() else {
        return Ok(Step::NeedMore { total: 1 });
    };
    if first & DATAGRAMS != 0 {
        return Err(Broken::Malformed("target header: UDP over TCP"));
    }
    if !one_time || first & ONE_TIME == 0 {
        return parsed(plain);
    }
    // Seldom, and short: a copy without the flag.
    let rest = rest.get(..rest.len().min(adit_wire::MAX_ADDR_LEN));
    parsed(&[&[first & !ONE_TIME], rest.unwrap_or_default()].concat())
}

fn parsed(plain: &[u8]) -> Result<Step<(Target, usize)>, Broken> {
    match parse_addr(plain) {
        Ok(found) => Ok(Step::Done(found)),
        Err(AddrError::Short { total }) => Ok(Step::NeedMore { total }),
        Err(AddrError::Type(_)) => Err(Broken::Malformed("target header: address type")),
        Err(AddrError::Name) => Err(Broken::Malformed("target header: host name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_for_those_who_may() {
        let target: Target = "127.0.0.1:80".parse().unwrap();
        let header = |first| [first, 127, 0, 0, 1, 0, 80, 9];
        assert_eq!(read(&header(1), false), Ok(Step::Done((target.clone(), 7))));
        assert_eq!(read(&header(0x11), true), Ok(Step::Done((target, 7))));
        for (first, one_time) in [(0x11, false), (0x09, true), (0x19, true), (0x45, true)] {
            assert!(read(&header(first), one_time).is_err(), "{first:#x}");
        }
        let short = Ok(Step::NeedMore { total: 7 });
        assert_eq!(read(&header(0x11)[..6], true), short);
        assert_eq!(read(&[], true), Ok(Step::NeedMore { total: 1 }));
    }
}
