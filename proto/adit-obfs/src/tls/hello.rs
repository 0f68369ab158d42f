//! The client's first message, and its verification by a server.

use adit_wire::{Entropy, HandshakeProgress, Host, ProtocolError, UnixTime, narrow_int, subslice};

use super::be16;
use super::client_hello::{ClientHello, parse_client_hello};
use super::tag::{TAG_LEN, Tagger};
use crate::seen_hellos::SeenHellos;

/// Length of time and random bytes, which the tag in a hello's random field covers.
pub(super) const STAMPED: usize = 22;
/// Number of seconds before its own start from which a server still accepts hellos: a client's
/// clock may be behind.
const START_TOLERANCE: u64 = 30 * 60;

const SUITES: [u8; 32] = [
    0x00, 0x1c, 0xc0, 0x2b, 0xc0, 0x2f, 0xcc, 0xa9, 0xcc, 0xa8, 0xcc, 0x14, 0xcc, 0x13, 0xc0, 0x0a,
    0xc0, 0x14, 0xc0, 0x09, 0xc0, 0x13, 0x00, 0x9c, 0x00, 0x35, 0x00, 0x2f, 0x00, 0x0a, 0x01, 0x00,
];
/// Signature algorithms, status request, signed certificate timestamp, channel id, point formats
/// and groups.
const LAST_EXTENSIONS: [u8; 59] = [
    0x00, 0x0d, 0x00, 0x16, 0x00, 0x14, 0x06, 0x01, 0x06, 0x03, 0x05, 0x01, 0x05, 0x03, 0x04, 0x01,
    0x04, 0x03, 0x03, 0x01, 0x03, 0x03, 0x02, 0x01, 0x02, 0x03, //
    0x00, 0x05, 0x00, 0x05, 0x01, 0x00, 0x00, 0x00, 0x00, //
    0x00, 0x12, 0x00, 0x00, //
    0x75, 0x50, 0x00, 0x00, //
    0x00, 0x0b, 0x00, 0x02, 0x01, 0x00, //
    0x00, 0x0a, 0x00, 0x06, 0x00, 0x04, 0x00, 0x17, 0x00, 0x18, //
];

/// Returns the random field of either side's hello: time, random bytes, tag of both.
pub(super) fn stamped_random(tagger: &Tagger, time: UnixTime, salt: &[u8; 18]) -> [u8; 32] {
    let mut field = [0; 32];
    let time = narrow_int::<u32>(time.0 & 0xffff_ffff);
    let (text, tag) = field.split_at_mut(STAMPED);
    let (stamp, rest) = text.split_at_mut(4);
    stamp.copy_from_slice(&time.to_be_bytes());
    rest.copy_from_slice(salt);
    tag.copy_from_slice(&tagger.compute_tag(&[text]));
    field
}

/// Encodes the server-name extension (RFC 6066, section 3), even for an empty name.
pub(crate) fn server_name_extension(name: &str) -> Vec<u8> {
    let n = name.len();
    let mut out = vec![0, 0];
    out.extend_from_slice(&be16(n + 5));
    out.extend_from_slice(&be16(n + 3));
    out.push(0);
    out.extend_from_slice(&be16(n));
    out.extend_from_slice(name.as_bytes());
    out
}

/// Returns a host as a server name, which is empty for addresses.
pub(crate) fn sni_name(host: &str) -> &str {
    let digit = host.ends_with(|c: char| c.is_ascii_digit());
    match Host::parse(host) {
        Ok(Host::Name(_)) if !digit => host,
        _ => "",
    }
}

/// A client's first message.
pub(crate) struct TlsHello<'a> {
    pub(crate) time: UnixTime,
    pub(crate) salt: [u8; 18],
    pub(crate) name: &'a str,
    pub(crate) ticket: &'a [u8],
}

impl TlsHello<'_> {
    /// Encodes the record. The name has at most 255 bytes, the ticket at most 400.
    pub(crate) fn encode(&self, tagger: &Tagger) -> Vec<u8> {
        let mut extensions = vec![0xff, 0x01, 0, 1, 0];
        extensions.extend_from_slice(&server_name_extension(self.name));
        extensions.extend_from_slice(&[0, 0x17, 0, 0, 0, 0x23]);
        extensions.extend_from_slice(&be16(self.ticket.len()));
        extensions.extend_from_slice(self.ticket);
        extensions.extend_from_slice(&LAST_EXTENSIONS);

        let random = stamped_random(tagger, self.time, &self.salt);
        let len = 2 + 32 + 33 + SUITES.len() + 2 + extensions.len();
        let mut out = vec![0x16, 3, 1];
        out.extend_from_slice(&be16(len + 4));
        out.extend_from_slice(&[1, 0]);
        out.extend_from_slice(&be16(len));
        out.extend_from_slice(&[3, 3]);
        out.extend_from_slice(&random);
        out.push(32);
        out.extend_from_slice(tagger.client_id());
        out.extend_from_slice(&SUITES);
        out.extend_from_slice(&be16(extensions.len()));
        out.extend_from_slice(&extensions);
        out
    }
}

/// The times that a server accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeWindow {
    /// Maximum difference in seconds, in either direction; 0 accepts all times.
    pub(crate) span: u32,
    /// The start of the server; hellos seen before it are unknown.
    pub(crate) started: UnixTime,
}

impl TimeWindow {
    fn check_time(self, stamp: u32, now: UnixTime) -> Result<(), ProtocolError> {
        let since = |moment: u64| {
            let moment = narrow_int::<u32>(moment & 0xffff_ffff);
            i64::from(stamp.wrapping_sub(moment).cast_signed())
        };
        let (skew, span) = (since(now.0), i64::from(self.span));
        let early = since(self.started.0.saturating_sub(START_TOLERANCE)) < -span / 2;
        if span > 0 && (skew.abs() > span || early) {
            return Err(ProtocolError::Clock { skew });
        }
        Ok(())
    }
}

/// Reads and checks the ClientHello at the front of `wire`: its tag, then its time, then that it is
/// new, in this order, so that only owners of the key can fill the memory. Returns its length and
/// the tagger of this client.
pub(crate) fn read_hello(
    wire: &[u8],
    key: &[u8],
    window: TimeWindow,
    seen: &SeenHellos,
    now: UnixTime,
) -> Result<HandshakeProgress<(usize, Tagger)>, ProtocolError> {
    let hello = match parse_client_hello(wire)? {
        HandshakeProgress::NeedMore { total } => return Ok(HandshakeProgress::NeedMore { total }),
        HandshakeProgress::Done(hello) => hello,
    };
    let ClientHello {
        len,
        random,
        session,
    } = hello;
    let tagger = Tagger::new(key, session);
    tagger.check_tag(&random)?;
    let [a, b, c, d, ..] = random;
    window.check_time(u32::from_be_bytes([a, b, c, d]), now)?;
    seen.insert_hello(subslice(&random, ..STAMPED), now)?;
    Ok(HandshakeProgress::Done((len, tagger)))
}

/// Draws a session ticket, kept for each host: 128 to 384 random bytes in steps of 16.
pub(crate) fn draw_ticket(entropy: &mut dyn Entropy) -> Vec<u8> {
    let mut ticket = vec![0; 16 * usize::from(entropy.in_range(8, 24))];
    entropy.fill(&mut ticket);
    ticket
}

const _: () = assert!(STAMPED + TAG_LEN == 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_name() {
        for (host, name) in [
            ("example.com", "example.com"),
            ("192.0.2.1", ""),
            ("2001:db8::a", ""),
            ("[2001:db8::a]", ""),
            ("host7", ""),
            ("", ""),
        ] {
            assert_eq!(sni_name(host), name);
        }
    }

    #[test]
    fn times_are_within_the_window() {
        let started = UnixTime(1_700_000_000);
        let window = TimeWindow {
            span: 86_400,
            started,
        };
        let check = |window: TimeWindow, stamp: u64, now: u64| {
            window.check_time(u32::try_from(stamp & 0xffff_ffff).unwrap(), UnixTime(now))
        };
        let now = started.0 + 1_000_000;
        for (stamp, good) in [
            (now - 86_400, true),
            (now - 86_401, false),
            (now + 86_400, true),
            (now + 86_401, false),
        ] {
            assert_eq!(check(window, stamp, now).is_ok(), good, "{stamp}");
        }
        assert_eq!(
            check(window, now - 90_000, now),
            Err(ProtocolError::Clock { skew: -90_000 })
        );
        // Right after the start: half a window and half an hour earlier.
        let now = started.0;
        for (stamp, good) in [
            (now - 43_200 - 1800, true),
            (now - 43_200 - 1801, false),
            (now + 86_400, true),
        ] {
            assert_eq!(check(window, stamp, now).is_ok(), good, "{stamp}");
        }
        assert!(check(TimeWindow { span: 0, started }, 0, now).is_ok());
        // The 32-bit clock wraps around.
        assert!(
            check(
                TimeWindow {
                    span: 60,
                    started: UnixTime(0)
                },
                1 << 32,
                (1 << 32) + 59
            )
            .is_ok()
        );
        assert!(
            check(
                TimeWindow {
                    span: 60,
                    started: UnixTime((1 << 32) - 5)
                },
                (1 << 32) + 5,
                (1 << 32) - 1
            )
            .is_ok()
        );
    }
}
