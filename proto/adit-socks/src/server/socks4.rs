//! The single message of SOCKS4 and SOCKS4a.
//!
//! `04 ‖ CD ‖ PORT(2) ‖ IP(4) ‖ USERID ‖ 00`, followed by `NAME ‖ 00` if the address is `0.0.0.x`
//! with x ≠ 0 (4a). It contains no password.

use core::net::{IpAddr, Ipv4Addr};

use adit_wire::{
    EndOfInput, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Host, Reader, Target,
};

use super::{Refusal, encode_reply};
use crate::{Command, Reply, Request, Version};

const VERSION: u8 = 0x04;
const FIXED_LEN: usize = 8;
/// Maximum length of USERID and NAME in bytes, without their NUL.
const MAX_TEXT_LEN: usize = 255;

/// The handshake that reads one client's request.
///
/// # Examples
///
/// ```
/// use adit_socks::server::Socks4;
/// use adit_wire::{Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput};
///
/// // SOCKS4a: CONNECT to port 80, an invalid address, no user, and a name.
/// let mut request = *b"\x04\x01\x00\x50\x00\x00\x00\x01\x00example.test\x00";
/// let mut sent = Vec::new();
/// let step = Socks4::new(true).step(&mut HandshakeInput::new(&mut request), &mut HandshakeOutput::new(&mut sent))?;
/// let HandshakeProgress::Done(request) = step else { panic!("the request is complete") };
/// assert_eq!(request.target.to_string(), "example.test:80");
/// # Ok::<(), adit_socks::server::Refusal>(())
/// ```
#[derive(Debug)]
pub struct Socks4 {
    allowed: bool,
}

impl Socks4 {
    /// Creates a handshake. Pass `allowed` false if a password is required: the request is then
    /// read and rejected.
    #[must_use]
    pub const fn new(allowed: bool) -> Self {
        Self { allowed }
    }
}

impl Handshake for Socks4 {
    type Output = Request;
    type Error = Refusal;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Request>, Refusal> {
        if rx.bytes().first().is_some_and(|v| *v != VERSION) {
            return Err(Refusal::Malformed("SOCKS version"));
        }
        let refusal = match parse_request(rx.bytes()) {
            Ok(HandshakeProgress::NeedMore { total }) => {
                return Ok(HandshakeProgress::NeedMore { total });
            }
            Ok(HandshakeProgress::Done((request, len))) if self.allowed => {
                rx.consume(len);
                return Ok(HandshakeProgress::Done(request));
            }
            Ok(HandshakeProgress::Done(_)) => Refusal::NotAllowed,
            Err(why) => why,
        };
        tx.extend_from_slice(&encode_reply(Version::V4, Reply::GeneralFailure, None));
        Err(refusal)
    }
}

fn parse_request(bytes: &[u8]) -> Result<HandshakeProgress<(Request, usize)>, Refusal> {
    let mut r = Reader::new(bytes);
    let Ok((command, port, ip)) = read_fixed(&mut r) else {
        // The shortest request has an empty USERID.
        return Ok(HandshakeProgress::NeedMore {
            total: FIXED_LEN + 1,
        });
    };
    let more = HandshakeProgress::NeedMore {
        total: bytes.len() + 1,
    };
    let Some(user) = read_text(&mut r, "USERID")? else {
        return Ok(more);
    };
    let host = match ip {
        [0, 0, 0, 0] => return Err(Refusal::Malformed("address 0.0.0.0")),
        [0, 0, 0, _] => {
            let Some(name) = read_text(&mut r, "NAME")? else {
                return Ok(more);
            };
            core::str::from_utf8(name)
                .ok()
                .and_then(|name| Host::parse(name).ok())
                .ok_or(Refusal::Malformed("host name"))?
        }
        _ => Host::Ip(IpAddr::V4(Ipv4Addr::from(ip))),
    };
    let command = match Command::from_byte(command) {
        Some(known @ (Command::Connect | Command::Bind)) => known,
        Some(Command::UdpAssociate) | None => return Err(Refusal::UnknownCommand(command)),
    };
    if command == Command::Connect && port == 0 {
        return Err(Refusal::Malformed("port"));
    }
    let request = Request {
        version: Version::V4,
        command,
        target: Target::new(host, port),
        user: (!user.is_empty()).then(|| user.to_vec()),
        verified: false,
    };
    Ok(HandshakeProgress::Done((request, r.consumed())))
}

fn read_fixed(r: &mut Reader<'_>) -> Result<(u8, u16, [u8; 4]), EndOfInput> {
    let [_version, command] = r.array()?;
    Ok((command, r.u16()?, r.array()?))
}

/// Reads a text up to its NUL; `None` if the NUL has not arrived.
fn read_text<'a>(r: &mut Reader<'a>, what: &'static str) -> Result<Option<&'a [u8]>, Refusal> {
    let window = r.rest().iter().take(MAX_TEXT_LEN + 1);
    let Some(len) = window.clone().position(|b| *b == 0) else {
        return match window.len() {
            0..=MAX_TEXT_LEN => Ok(None),
            _ => Err(Refusal::TooLong(what)),
        };
    };
    let found = r.take(len).ok();
    // The NUL itself.
    let _ = r.u8();
    Ok(found)
}
