//! The PROXY protocol header, version 2, with which a proxy reports the client whose connection it
//! forwards.
//!
//! Source: the specification of HAProxy, "The PROXY protocol", version 2.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use adit_wire::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError, Reader,
};

/// The first bytes of every header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Length of signature, version and command, family and length.
const FIXED_LEN: usize = 16;
/// Maximum length of the rest: addresses, and TLS information that a proxy may add.
const MAX_REST_LEN: usize = 4096;
/// Version 2, sent on behalf of a client.
const PROXY: u8 = 0x21;
/// Version 2, sent by the proxy on its own behalf as a health check.
const LOCAL: u8 = 0x20;
/// TCP over IPv4, and over IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// Reads one header. The handshake returns the client's address, if the proxy reports one.
///
/// # Examples
///
/// ```
/// use adit_socks::ProxyHeader;
/// use adit_wire::{Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput};
///
/// // TCP over IPv4, from 192.0.2.1:1000 to 198.51.100.1:443; then the client's first bytes.
/// let mut bytes = *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\x03\xe8\x01\xbbhello";
/// let mut rx = HandshakeInput::new(&mut bytes);
/// let step = ProxyHeader.step(&mut rx, &mut HandshakeOutput::new(&mut Vec::new()))?;
/// assert_eq!(step, HandshakeProgress::Done(Some("192.0.2.1:1000".parse().unwrap())));
/// assert_eq!(rx.bytes(), b"hello");
/// # Ok::<(), adit_wire::ProtocolError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ProxyHeader;

impl Handshake for ProxyHeader {
    type Output = Option<SocketAddr>;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        _: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Option<SocketAddr>>, ProtocolError> {
        let have = rx.bytes().len();
        // Bytes that are not a header are refused at the first wrong byte, before the signature is
        // complete.
        let known = have.min(SIGNATURE.len());
        if rx.bytes().get(..known) != SIGNATURE.get(..known) {
            return Err(ProtocolError::Malformed(
                "PROXY header: no signature of version 2",
            ));
        }
        let mut reader = Reader::new(rx.bytes());
        let Ok([.., command, family, high, low]) = reader.array::<FIXED_LEN>() else {
            // As long as the signature may still mismatch, every byte matters.
            let total = if known < SIGNATURE.len() {
                have + 1
            } else {
                FIXED_LEN
            };
            return Ok(HandshakeProgress::NeedMore { total });
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len > MAX_REST_LEN {
            return Err(ProtocolError::TooLong {
                what: "PROXY header",
                limit: MAX_REST_LEN,
            });
        }
        let Ok(rest) = reader.take(len) else {
            return Ok(HandshakeProgress::NeedMore {
                total: FIXED_LEN + len,
            });
        };
        let client = parse_client(command, family, rest)?;
        rx.consume(FIXED_LEN + len);
        Ok(HandshakeProgress::Done(client))
    }
}

fn parse_client(command: u8, family: u8, rest: &[u8]) -> Result<Option<SocketAddr>, ProtocolError> {
    match command {
        PROXY => {}
        LOCAL => return Ok(None),
        _ => return Err(ProtocolError::Malformed("PROXY header: version or command")),
    }
    let mut fields = Reader::new(rest);
    let client = match family {
        TCP4 => fields.array().and_then(|source: [u8; 4]| {
            fields.array::<4>()?;
            Ok(SocketAddr::from((Ipv4Addr::from(source), fields.u16()?)))
        }),
        TCP6 => fields.array().and_then(|source: [u8; 16]| {
            fields.array::<16>()?;
            Ok(SocketAddr::from((Ipv6Addr::from(source), fields.u16()?)))
        }),
        // Unix sockets, and clients unknown to the proxy.
        _ => return Ok(None),
    };
    client
        .map(Some)
        .map_err(|_| ProtocolError::Malformed("PROXY header: addresses"))
}
