//! A query to one server, over UDP and, if the answer does not fit, over TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use adit_dns::{AnswerError, RecordType, ResponseCode, UpstreamQuery};
use adit_wire::{Entropy, narrow_int, subslice};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, interval_at, timeout};

use crate::system::ThreadRng;

/// Maximum number of addresses of one name.
const MAX_ADDRESSES: usize = 32;

/// The answer of a server to one query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Addresses, and their time to live in seconds.
    Found(Vec<SocketAddr>, u32),
    /// The name does not exist, or has no address of this family.
    NoAddress {
        /// True if the name exists.
        exists: bool,
        /// Time to live, in seconds.
        ttl: u32,
    },
}

/// Options of a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryOptions {
    pub(super) timeout: Duration,
    /// Interval at which the same datagram is sent again, since the query or the answer may be lost. The
    /// socket is kept, so that a late answer to the first datagram counts.
    pub(super) resend_after: Duration,
    pub(super) edns: bool,
    pub(super) tcp_only: bool,
}

/// Queries `server`.
///
/// # Errors
/// The server fails or refuses, or does not answer.
pub(super) async fn query_server(
    server: SocketAddr,
    name: &str,
    kind: RecordType,
    how: QueryOptions,
) -> io::Result<Answer> {
    let mut id = [0; 2];
    ThreadRng.fill(&mut id);
    let query = UpstreamQuery::new(name, kind, u16::from_be_bytes(id))
        .map_err(|why| query_error(why.to_string()))?;
    let query = match how.edns {
        true => query,
        false => query.without_edns(),
    };
    let answer = timeout(how.timeout, exchange_messages(server, &query, how))
        .await
        .map_err(|_| query_error(format!("no answer from {server}")))?
        .map_err(|e| query_error(format!("no answer from {server}: {e}")))?;
    if !answer.is_about_the_name() {
        return Err(query_error(format!("{server} answered {}", answer.code())));
    }
    let ttl = narrow_int(answer.ttl().as_secs());
    if answer.is_negative() {
        let exists = answer.code() != ResponseCode::NXDomain;
        return Ok(Answer::NoAddress { exists, ttl });
    }
    let mut found = Vec::new();
    for ip in answer.addresses() {
        let addr = SocketAddr::new(*ip, 0);
        if found.len() < MAX_ADDRESSES && !found.contains(&addr) {
            found.push(addr);
        }
    }
    Ok(Answer::Found(found, ttl))
}

fn query_error(why: String) -> io::Error {
    super::no_address(why)
}

async fn exchange_messages(
    server: SocketAddr,
    query: &UpstreamQuery,
    how: QueryOptions,
) -> io::Result<adit_dns::Answer> {
    let asked = query.to_bytes();
    if !how.tcp_only {
        let answer = over_udp(server, &asked, query, how.resend_after).await?;
        if !answer.is_truncated() {
            return Ok(answer);
        }
    }
    over_tcp(server, &asked, query).await
}

async fn over_udp(
    server: SocketAddr,
    asked: &[u8],
    query: &UpstreamQuery,
    again: Duration,
) -> io::Result<adit_dns::Answer> {
    let here: IpAddr = match server {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0u16; 8].into(),
    };
    // One socket per query: an unpredictable port. It is connected, so that it receives from the server
    // alone and reports when no process listens there.
    let socket = UdpSocket::bind((here, 0)).await?;
    socket.connect(server).await?;
    socket.send(asked).await?;
    let mut resend = interval_at(Instant::now() + again, again);
    let mut room = vec![0; 4096];
    loop {
        let len = tokio::select! {
            received = socket.recv(&mut room) => received?,
            _ = resend.tick() => {
                socket.send(asked).await?;
                continue;
            }
        };
        match query.check_answer(subslice(&room, ..len)) {
            Ok(answer) => return Ok(answer),
            // Number and question are right.
            Err(why @ (AnswerError::Aliases | AnswerError::TooManyRecords)) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            Err(_) => {}
        }
    }
}

async fn over_tcp(
    server: SocketAddr,
    asked: &[u8],
    query: &UpstreamQuery,
) -> io::Result<adit_dns::Answer> {
    let mut stream = TcpStream::connect(server).await?;
    let len: u16 = narrow_int(asked.len());
    let mut framed = len.to_be_bytes().to_vec();
    framed.extend_from_slice(asked);
    stream.write_all(&framed).await?;
    let len = stream.read_u16().await?;
    let mut bytes = vec![0; usize::from(len)];
    stream.read_exact(&mut bytes).await?;
    let answer = query.check_answer(&bytes);
    answer.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}
