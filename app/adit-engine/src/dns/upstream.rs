//! The servers of a DNS table, which are reached through its chain.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use adit_config::{DnsConfig, RemoteDnsServer};
use adit_dns::{Answer, CacheLimits, RecordType};
use adit_dns_client::tls::TrustedRoots;
use adit_dns_client::{
    BoxDnsDatagrams, BoxDnsStream, DnsClient, DnsDatagrams, DnsPath, DnsServer, RemoteServer,
};
use adit_net::PacketBuf;
use adit_net::names::LookupOrigin;
use adit_stream::Stream as _;
use adit_wire::{Target, usize_from};

use super::system;
use crate::connector::Connector;
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError};

/// Memory for each answer of a full cache, in bytes: most answers are shorter.
const BYTES_PER_ANSWER: usize = 1024;
/// Maximum number of received datagrams that wait: a query has one answer.
const MAX_WAITING: usize = 16;

/// Creates the client of a table, whose servers are reached through `chain`.
pub(super) fn build_client(config: &DnsConfig, chain: Arc<dyn Connector>) -> DnsClient {
    let servers = config.servers.iter().map(|server| match server {
        adit_config::DnsServer::System => DnsServer::System,
        adit_config::DnsServer::Remote(remote) => DnsServer::Remote(remote_server(remote)),
    });
    let entries = usize_from(config.cache);
    let limits = CacheLimits {
        entries,
        bytes: entries.saturating_mul(BYTES_PER_ANSWER),
        ..CacheLimits::default()
    };
    DnsClient::new(
        servers.collect(),
        Arc::new(ChainPath(chain)),
        (entries > 0).then_some(limits),
        &TrustedRoots::Machine,
    )
}

fn remote_server(remote: &RemoteDnsServer) -> RemoteServer {
    RemoteServer {
        transport: remote.transport,
        at: remote.server.clone(),
        host: remote.host.clone(),
        server_name: remote.server_name.clone(),
        path: remote.path.clone(),
    }
}

/// The path through a chain.
struct ChainPath(Arc<dyn Connector>);

impl DnsPath for ChainPath {
    fn open_stream<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsStream>> {
        Box::pin(async move {
            let stream = self.0.connect(to, &[]).await.map_err(path_error)?;
            Ok(Box::new(stream.io.into_tokio()) as BoxDnsStream)
        })
    }

    fn open_datagrams<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsDatagrams>> {
        Box::pin(async move {
            let path = self.0.open_datagrams().await.map_err(path_error)?;
            Ok(Box::new(ChainDatagrams {
                path,
                server: to.clone(),
                scratch: PacketBuf::default(),
                waiting: VecDeque::new(),
            }) as BoxDnsDatagrams)
        })
    }

    fn look_up_by_system<'a>(
        &'a self,
        name: &'a str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> BoxFuture<'a, io::Result<Answer>> {
        Box::pin(async move {
            let found = system::look_up(name, record_type, origin).await?;
            Ok(Answer::clone(&found.answer))
        })
    }
}

/// Returns the error of the chain. A quota of the client that asks stays one: others may reach the server.
fn path_error(why: DialError) -> io::Error {
    match why.source_error.kind() {
        kind @ io::ErrorKind::QuotaExceeded => io::Error::new(kind, why),
        _ => io::Error::other(why),
    }
}

/// The datagrams of one query. The client checks that they are answers to it, whatever their sender is: some hops do not
/// report the address that the query was sent to.
struct ChainDatagrams {
    path: BoxDatagramPath,
    server: Target,
    scratch: PacketBuf,
    waiting: VecDeque<Vec<u8>>,
}

impl DnsDatagrams for ChainDatagrams {
    fn send<'a>(&'a mut self, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let mut packet = PacketBuf::from_payload(payload);
            self.path.send(&mut packet, &self.server)?;
            self.path.flush()
        })
    }

    fn receive(&mut self) -> BoxFuture<'_, io::Result<Vec<u8>>> {
        Box::pin(async move {
            loop {
                if let Some(datagram) = self.waiting.pop_front() {
                    return Ok(datagram);
                }
                let Self {
                    path,
                    scratch,
                    waiting,
                    ..
                } = self;
                poll_fn(|cx| {
                    path.poll_recv(cx, scratch, &mut |packet, _| {
                        if waiting.len() < MAX_WAITING {
                            waiting.push_back(packet.payload().to_vec());
                        }
                    })
                })
                .await?;
            }
        })
    }
}
