//! SOCKS5 datagrams (RFC 1928 section 7), client and server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::system;
use adit_socks::udp::{self, Reassembly, ReassemblyResult};
use adit_stream::{BoxStream, Stream};
use adit_wire::{Host, ProtocolError, Target, unmap_ipv4};

use super::{AssociationKey, BoxDatagramPath, DatagramPath, PacketCodec, ReplySeal};

/// The server's end of one association. Accepts packets of one client only.
pub struct SocksPackets {
    client: IpAddr,
    /// The source port of the client, once it is known.
    port: Option<u16>,
    reassembly: Option<Reassembly>,
}

impl SocksPackets {
    /// Creates an association for the client at `client`, which declared that it would send from
    /// `declared`.
    #[must_use]
    pub fn new(client: IpAddr, declared: &Target, reassemble: bool) -> Self {
        let client = unmap_ipv4(client);
        // A client behind NAT declares an address that differs from the one seen here; then its port is useless.
        let hint = match declared.host {
            Host::Ip(ip) => ip.is_unspecified() || ip == client,
            Host::Name(_) => false,
        };
        let port = (hint && declared.port != 0).then_some(declared.port);
        Self {
            client,
            port,
            reassembly: reassemble.then(Reassembly::new),
        }
    }
}

impl PacketCodec for SocksPackets {
    fn open(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        if from.ip() != self.client || self.port.is_some_and(|port| port != from.port()) {
            return Err(ProtocolError::Refused("a datagram from another client"));
        }
        let header = udp::parse_header(packet.payload())?;
        match &mut self.reassembly {
            None if header.frag == 0 => packet.narrow_to(header.payload.clone()),
            None => return Err(ProtocolError::Refused("a fragment")),
            Some(queue) => {
                let whole =
                    match queue.handle_packet(system::monotonic_now(), &header, packet.payload()) {
                        ReassemblyResult::Datagram(data) => data.into_owned(),
                        _ => return Err(ProtocolError::Refused("an incomplete datagram")),
                    };
                let space = packet.receive_space().get_mut(..whole.len());
                space
                    .ok_or(ProtocolError::NoRoom("a reassembled datagram"))?
                    .copy_from_slice(&whole);
                packet.set_len(whole.len());
            }
        }
        let target = header.target;
        if target.port == 0 {
            return Err(ProtocolError::Malformed("port 0"));
        }
        self.port = Some(from.port());
        Ok((AssociationKey::Source(from), target))
    }

    fn reply_seal(&mut self, _: AssociationKey) -> Option<Box<dyn ReplySeal>> {
        Some(Box::new(SocksReplySeal))
    }
}

/// Adds the header of RFC 1928 to datagrams.
struct SocksReplySeal;

impl ReplySeal for SocksReplySeal {
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), ProtocolError> {
        put_header(packet, source)
    }
}

fn put_header(packet: &mut PacketBuf, target: &Target) -> Result<(), ProtocolError> {
    let (bytes, payload) = packet.buffer_and_range();
    let start = udp::write_in_place(bytes, payload.start, target)?;
    packet.set_payload(start..payload.end);
    Ok(())
}

/// The client's end: an association with a hop's server.
pub struct SocksUdp {
    /// The control connection. The association ends when it is closed.
    control: Mutex<BoxStream>,
    relay: Target,
    below: BoxDatagramPath,
}

impl SocksUdp {
    /// Creates an association whose datagrams are sent to `relay`.
    #[must_use]
    pub fn new(control: BoxStream, relay: Target, below: BoxDatagramPath) -> Self {
        Self {
            control: Mutex::new(control),
            relay,
            below,
        }
    }
}

impl DatagramPath for SocksUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        put_header(packet, to).map_err(io::Error::other)?;
        self.below.send(packet, &self.relay)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        {
            let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
            if let Poll::Ready(n) = control.poll_fill(cx, 1)
                && n? == 0
            {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        self.below.poll_recv(
            cx,
            packet,
            &mut |packet, _| match udp::parse_header(packet.payload()) {
                Ok(header) if header.frag == 0 => {
                    packet.narrow_to(header.payload);
                    each(packet, &header.target);
                }
                // Nothing else was requested.
                _ => {}
            },
        )
    }
}
