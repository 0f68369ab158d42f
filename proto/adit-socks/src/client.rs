//! The client's side: the protocol of a hop with its upstream proxy.
//!
//! The first step, before anything was received, writes the opening message. Bytes after the
//! proxy's reply are left in `rx`: they come from the target.

mod error;
mod socks4;
mod socks5;

use core::net::{IpAddr, Ipv4Addr};

use adit_wire::{
    AddrError, EndOfInput, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Host,
    Reader, Target, parse_addr,
};

pub use error::ClientError;
pub use socks4::Socks4Connect;
pub use socks5::Socks5Connect;

use crate::{Reply, Version, server::GRANTED};

/// Reads the second reply of BIND, which the proxy sends when the peer has connected. The handshake
/// returns the peer's address.
#[must_use]
pub const fn second_reply(version: Version) -> SecondReply {
    SecondReply { version }
}

/// The handshake that [`second_reply`] returns.
#[derive(Debug)]
pub struct SecondReply {
    version: Version,
}

impl Handshake for SecondReply {
    type Output = Target;
    type Error = ClientError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        _tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Target>, ClientError> {
        read_reply(self.version, rx)
    }
}

/// Reads one reply and not a byte more.
///
/// A failure is reported as soon as its code has arrived: some servers send nothing after it.
fn read_reply(
    version: Version,
    rx: &mut HandshakeInput<'_>,
) -> Result<HandshakeProgress<Target>, ClientError> {
    let bytes = rx.bytes();
    let found = match version {
        Version::V5 => match bytes {
            [] | [0x05] => Ok(HandshakeProgress::NeedMore { total: 2 }),
            [0x05, 0x00, addr @ ..] => bound_addr(addr),
            [0x05, code, ..] => Err(Reply::from_byte(*code)
                .map_or(ClientError::UnknownReply(*code), ClientError::Replied)),
            _ => Err(ClientError::Malformed("version of the reply")),
        },
        Version::V4 => match bytes {
            [] | [0x00] => Ok(HandshakeProgress::NeedMore { total: 2 }),
            [0x00, GRANTED, addr @ ..] => Ok(bound_addr_v4(addr)
                .map_or(HandshakeProgress::NeedMore { total: 8 }, |target| {
                    HandshakeProgress::Done((target, 8))
                })),
            [0x00, 0x5b, ..] => Err(ClientError::Replied(Reply::GeneralFailure)),
            // There is no identd at our address, or it names another user.
            [0x00, 0x5c | 0x5d, ..] => Err(ClientError::Replied(Reply::NotAllowed)),
            [0x00, code, ..] => Err(ClientError::UnknownReply(*code)),
            _ => Err(ClientError::Malformed("version of the reply")),
        },
    };
    Ok(match found? {
        HandshakeProgress::NeedMore { total } => HandshakeProgress::NeedMore { total },
        HandshakeProgress::Done((target, len)) => {
            rx.consume(len);
            HandshakeProgress::Done(target)
        }
    })
}

/// Parses `RSV ‖ ATYP ‖ BND.ADDR ‖ BND.PORT` and returns the address with the length of the whole
/// reply.
fn bound_addr(bytes: &[u8]) -> Result<HandshakeProgress<(Target, usize)>, ClientError> {
    let addr = bytes.get(1..).unwrap_or_default();
    match parse_addr(addr) {
        Ok((target, len)) => Ok(HandshakeProgress::Done((target, 3 + len))),
        Err(AddrError::Incomplete { total }) => {
            Ok(HandshakeProgress::NeedMore { total: 3 + total })
        }
        Err(AddrError::Type(_)) => Err(ClientError::Malformed("address type of the reply")),
        // An empty or invalid name is useless, but the request has succeeded.
        Err(AddrError::Name) => Ok(bound_port_only(addr)),
    }
}

/// Parses `ATYP ‖ LEN ‖ NAME ‖ PORT` with an invalid name, which is replaced by 0.0.0.0.
fn bound_port_only(addr: &[u8]) -> HandshakeProgress<(Target, usize)> {
    let len = 4 + addr.get(1).copied().map_or(0, usize::from);
    let port = addr.get(..len).and_then(|field| field.last_chunk::<2>());
    port.map_or(HandshakeProgress::NeedMore { total: 3 + len }, |port| {
        let host = Host::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        HandshakeProgress::Done((Target::new(host, u16::from_be_bytes(*port)), 3 + len))
    })
}

fn bound_addr_v4(bytes: &[u8]) -> Result<Target, EndOfInput> {
    let mut r = Reader::new(bytes);
    let port = r.u16()?;
    let ip = Ipv4Addr::from(r.array::<4>()?);
    Ok(Target::new(Host::Ip(ip.into()), port))
}
