//! The path to servers.

use std::future::Future;
use std::io;
use std::pin::Pin;

use adit_dns::{Answer, RecordType};
use adit_net::dial::{self, Family};
use adit_net::names::LookupOrigin;
use adit_wire::{Host, Target};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UdpSocket;

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream to a server.
pub trait DnsStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> DnsStream for S {}

/// A boxed stream to a server.
pub type BoxDnsStream = Box<dyn DnsStream>;

/// Datagrams to one server and from it.
pub trait DnsDatagrams: Send {
    /// Sends a datagram to the server.
    fn send<'a>(&'a mut self, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;

    /// Receives a datagram of the server. Dropping the future loses none.
    fn receive(&mut self) -> BoxFuture<'_, io::Result<Vec<u8>>>;
}

/// A boxed association with a server.
pub type BoxDnsDatagrams = Box<dyn DnsDatagrams>;

/// A path to servers: a direct one, or one through other servers.
pub trait DnsPath: Send + Sync + 'static {
    /// Connects to a server.
    fn open_stream<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsStream>>;

    /// Opens an association with a server, for one query: it has a port of its own that is not predictable.
    fn open_datagrams<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsDatagrams>>;

    /// Looks a name up by [`DnsServer::System`](crate::DnsServer::System). By default, this is an error.
    fn look_up_by_system<'a>(
        &'a self,
        _name: &'a str,
        _record_type: RecordType,
        _origin: LookupOrigin,
    ) -> BoxFuture<'a, io::Result<Answer>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
}

/// The path over this machine's own sockets. Servers with a name are resolved by the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectPath;

/// Maximum size of a received datagram, in bytes; queries allow 1,232.
const MAX_DATAGRAM: usize = 4096;

impl DnsPath for DirectPath {
    fn open_stream<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsStream>> {
        Box::pin(async move {
            let addresses = addresses_of(to).await?;
            let stream = dial::connect_first(&addresses, crate::CONNECT_TIMEOUT).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxDnsStream)
        })
    }

    fn open_datagrams<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsDatagrams>> {
        Box::pin(async move {
            let address = addresses_of(to).await?.into_iter().next();
            let address = address.ok_or(io::ErrorKind::HostUnreachable)?;
            let here = match address.is_ipv4() {
                true => "0.0.0.0:0",
                false => "[::]:0",
            };
            let socket = UdpSocket::bind(here).await?;
            // Connected, it receives from the server alone, and reports when no process listens there.
            socket.connect(address).await?;
            Ok(Box::new(OwnSocket(socket)) as BoxDnsDatagrams)
        })
    }
}

/// A connected socket of its own.
struct OwnSocket(UdpSocket);

impl DnsDatagrams for OwnSocket {
    fn send<'a>(&'a mut self, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move { self.0.send(payload).await.map(drop) })
    }

    fn receive(&mut self) -> BoxFuture<'_, io::Result<Vec<u8>>> {
        Box::pin(async move {
            let mut room = vec![0; MAX_DATAGRAM];
            let len = self.0.recv(&mut room).await?;
            room.truncate(len);
            Ok(room)
        })
    }
}

async fn addresses_of(to: &Target) -> io::Result<Vec<std::net::SocketAddr>> {
    match &to.host {
        Host::Ip(ip) => Ok(vec![(*ip, to.port).into()]),
        Host::Name(name) => dial::resolve(name.as_str(), to.port, Family::Any).await,
    }
}
