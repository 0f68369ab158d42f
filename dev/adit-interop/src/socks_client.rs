//! An independent SOCKS5 client for tests, written from RFC 1928 and RFC 1929.
//!
//! It shares no code with adit, sends each message in one write, and checks the replies strictly.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::TEST_TIMEOUT;
use crate::traffic::{DatagramLink, connect_directly};

/// The command CONNECT.
pub const CONNECT: u8 = 1;
/// The command BIND.
pub const BIND: u8 = 2;
/// The command UDP ASSOCIATE.
pub const ASSOCIATE: u8 = 3;

/// User name and password.
pub type Credentials<'a> = Option<(&'a str, &'a str)>;

/// A destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// By address.
    Addr(SocketAddr),
    /// By name; the server resolves it.
    Name(String, u16),
}

impl From<SocketAddr> for Destination {
    fn from(addr: SocketAddr) -> Self {
        Self::Addr(addr)
    }
}

impl Destination {
    /// Returns a destination with a name and a port.
    #[must_use]
    pub fn from_name(name: &str, port: u16) -> Self {
        Self::Name(name.to_owned(), port)
    }

    /// Encodes ATYP, address and port.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (mut bytes, port) = match self {
            Self::Addr(SocketAddr::V4(a)) => ([&[1][..], &a.ip().octets()].concat(), a.port()),
            Self::Addr(SocketAddr::V6(a)) => ([&[4][..], &a.ip().octets()].concat(), a.port()),
            Self::Name(name, port) => {
                let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
                ([&[3, len][..], name.as_bytes()].concat(), *port)
            }
        };
        bytes.extend_from_slice(&port.to_be_bytes());
        bytes
    }
}

/// The server's reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocksReply {
    /// REP; 0 is success.
    pub code: u8,
    /// BND.ADDR and BND.PORT.
    pub bound: SocketAddr,
}

/// Opens a stream through the proxy. A refusal is an error with its code.
pub fn connect_through(
    proxy: SocketAddr,
    login: Credentials<'_>,
    to: &Destination,
) -> Result<TcpStream> {
    let (stream, reply) = perform_request(proxy, login, CONNECT, to)?;
    ensure!(
        reply.code == 0,
        "the proxy refused with code {:#04x}",
        reply.code
    );
    Ok(stream)
}

/// Performs greeting, login and request. Returns the first reply and the stream that follows it.
pub fn perform_request(
    proxy: SocketAddr,
    login: Credentials<'_>,
    command: u8,
    to: &Destination,
) -> Result<(TcpStream, SocksReply)> {
    let mut stream = connect_directly(proxy)?;
    authenticate(&mut stream, login)?;
    stream.write_all(&encode_request(command, to))?;
    let reply = read_reply(&mut stream)?;
    Ok((stream, reply))
}

/// Encodes VER, CMD, RSV and the address.
#[must_use]
pub fn encode_request(command: u8, to: &Destination) -> Vec<u8> {
    [&[5, command, 0][..], &to.encode()].concat()
}

/// Offers one method, and logs in if there is a login.
pub fn authenticate(stream: &mut TcpStream, login: Credentials<'_>) -> Result<()> {
    let method = if login.is_some() { 2 } else { 0 };
    stream.write_all(&[5, 1, method])?;
    let choice: [u8; 2] = read_array(stream).context("the proxy did not answer the greeting")?;
    ensure!(
        choice == [5, method],
        "the proxy answered {choice:02x?} to method {method}"
    );
    let Some((user, password)) = login else {
        return Ok(());
    };
    let field = |text: &str| -> Result<Vec<u8>> {
        Ok([&[u8::try_from(text.len())?][..], text.as_bytes()].concat())
    };
    stream.write_all(&[vec![1], field(user)?, field(password)?].concat())?;
    let verdict: [u8; 2] = read_array(stream).context("the proxy did not answer the login")?;
    ensure!(
        verdict == [1, 0],
        "the proxy refused the login: {verdict:02x?}"
    );
    Ok(())
}

/// Reads exactly one reply.
pub fn read_reply(stream: &mut TcpStream) -> Result<SocksReply> {
    let [version, code, reserved, kind] =
        read_array(stream).context("the proxy did not answer the request")?;
    ensure!(
        version == 5 && reserved == 0,
        "the reply begins with {version:02x} {code:02x} {reserved:02x}"
    );
    let ip: IpAddr = match kind {
        1 => Ipv4Addr::from(read_array::<4>(stream)?).into(),
        4 => Ipv6Addr::from(read_array::<16>(stream)?).into(),
        other => bail!("a reply has the address type {other}"),
    };
    let port = u16::from_be_bytes(read_array(stream)?);
    Ok(SocksReply {
        code,
        bound: (ip, port).into(),
    })
}

fn read_array<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A UDP association: the control connection and its socket.
#[derive(Debug)]
pub struct UdpAssociation {
    control: TcpStream,
    socket: UdpSocket,
    relay: SocketAddr,
}

impl UdpAssociation {
    /// Opens an association without naming the address it will send from.
    pub fn open(proxy: SocketAddr, login: Credentials<'_>) -> Result<Self> {
        let any: IpAddr = if proxy.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let hint = Destination::Addr((any, 0).into());
        let (control, reply) = perform_request(proxy, login, ASSOCIATE, &hint)?;
        ensure!(
            reply.code == 0,
            "the proxy refused with code {:#04x}",
            reply.code
        );
        ensure!(
            !reply.bound.ip().is_unspecified(),
            "the proxy named no address to send to: {}",
            reply.bound
        );
        let socket = UdpSocket::bind((proxy.ip(), 0))?;
        socket.set_read_timeout(Some(TEST_TIMEOUT))?;
        Ok(Self {
            control,
            socket,
            relay: reply.bound,
        })
    }

    /// Returns the address that the server expects datagrams at.
    #[must_use]
    pub const fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// Returns the stream whose end ends the association.
    pub const fn control(&mut self) -> &mut TcpStream {
        &mut self.control
    }

    /// Sends `data` to `to` through the proxy.
    pub fn send_to(&self, to: &Destination, data: &[u8]) -> Result<()> {
        self.send_raw(&encode_datagram(0, to, data))
    }

    /// Sends these bytes, unchanged, to the relay.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<()> {
        self.socket.send_to(bytes, self.relay)?;
        Ok(())
    }

    /// Returns the next datagram and its source, within `timeout`.
    pub fn recv_within(&self, timeout: Duration) -> Result<(SocketAddr, Vec<u8>)> {
        self.socket.set_read_timeout(Some(timeout))?;
        let mut buf = vec![0; 65_536];
        let (len, from) = self
            .socket
            .recv_from(&mut buf)
            .context("no datagram arrived")?;
        ensure!(
            from == self.relay,
            "the datagram is from {from}, not from the relay {}",
            self.relay
        );
        parse_datagram(buf.get(..len).unwrap_or_default())
    }

    /// Returns the next datagram and its source.
    pub fn recv(&self) -> Result<(SocketAddr, Vec<u8>)> {
        self.recv_within(TEST_TIMEOUT)
    }
}

/// Encodes RSV, FRAG, the address and the data.
#[must_use]
pub fn encode_datagram(fragment: u8, to: &Destination, data: &[u8]) -> Vec<u8> {
    [&[0, 0, fragment][..], &to.encode(), data].concat()
}

fn parse_datagram(bytes: &[u8]) -> Result<(SocketAddr, Vec<u8>)> {
    let (head, rest) = bytes.split_first_chunk::<4>().context("no header")?;
    ensure!(head[..3] == [0, 0, 0], "header {head:02x?}");
    let (ip, rest): (IpAddr, _) = match head[3] {
        1 => {
            let (ip, rest) = rest.split_first_chunk::<4>().context("no address")?;
            (Ipv4Addr::from(*ip).into(), rest)
        }
        4 => {
            let (ip, rest) = rest.split_first_chunk::<16>().context("no address")?;
            (Ipv6Addr::from(*ip).into(), rest)
        }
        other => bail!("a datagram has the address type {other}"),
    };
    let (port, data) = rest.split_first_chunk::<2>().context("no port")?;
    Ok(((ip, u16::from_be_bytes(*port)).into(), data.to_vec()))
}

/// An association used for one destination: answers must come from there.
#[derive(Debug)]
pub struct UdpFlow<'a> {
    association: &'a UdpAssociation,
    to: Destination,
    answers_from: SocketAddr,
}

impl<'a> UdpFlow<'a> {
    /// Creates a flow to `to`; `answers_from` is the address behind it.
    #[must_use]
    pub const fn new(
        association: &'a UdpAssociation,
        to: Destination,
        answers_from: SocketAddr,
    ) -> Self {
        Self {
            association,
            to,
            answers_from,
        }
    }
}

impl DatagramLink for UdpFlow<'_> {
    fn send(&self, data: &[u8]) -> Result<()> {
        self.association.send_to(&self.to, data)
    }

    fn recv(&self) -> Result<Vec<u8>> {
        let (from, data) = self.association.recv()?;
        ensure!(
            from == self.answers_from,
            "the datagram names {from} as its source, not {}",
            self.answers_from
        );
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_standard() {
        let to = Destination::Addr("127.0.0.1:9".parse().unwrap());
        assert_eq!(
            encode_request(CONNECT, &to),
            [5, 1, 0, 1, 127, 0, 0, 1, 0, 9]
        );
        let name = Destination::from_name("example.test", 80).encode();
        assert_eq!(name, b"\x03\x0cexample.test\x00\x50");
        let dns = Destination::Addr("8.8.8.8:53".parse().unwrap());
        let sent = encode_datagram(0, &dns, &[0xaa]);
        assert_eq!(sent, [0, 0, 0, 1, 8, 8, 8, 8, 0, 53, 0xaa]);
        assert_eq!(
            parse_datagram(&sent).unwrap(),
            ("8.8.8.8:53".parse().unwrap(), vec![0xaa])
        );
    }

    #[test]
    fn a_datagram_with_a_bad_header_is_refused() {
        for bad in [
            &[][..],
            &[0, 0, 0],
            &[0, 0, 1, 1, 8, 8, 8, 8, 0, 53],
            &[0, 0, 0, 3, 1, 65, 0, 53],
        ] {
            assert!(parse_datagram(bad).is_err(), "{bad:02x?}");
        }
    }
}
