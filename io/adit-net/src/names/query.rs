//! A query to one server, over UDP and, if the answer does not fit, over TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use adit_wire::Entropy;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, interval_at, timeout};

use crate::system::ThreadRng;

/// Maximum size of an answer over UDP if the configuration enables EDNS, in bytes; larger datagrams are
/// fragmented, and fragments can be forged.
const EDNS_LEN: u16 = 1232;
/// Maximum number of aliases to follow.
const MAX_ALIASES: usize = 16;
/// Maximum number of addresses of one name.
const MAX_ADDRESSES: usize = 32;
/// Time to live of a negative answer without one, in seconds.
const NO_TTL: u32 = 5;

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
    name: &Name,
    kind: RecordType,
    how: QueryOptions,
) -> io::Result<Answer> {
    let mut id = [0; 2];
    ThreadRng.fill(&mut id);
    let question = Query::query(name.clone(), kind);
    let mut message = Message::new(u16::from_be_bytes(id), MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(question);
    if how.edns {
        let mut edns = Edns::new();
        edns.set_max_payload(EDNS_LEN);
        message.set_edns(edns);
    }
    let answer = timeout(how.timeout, exchange_messages(server, &message, how))
        .await
        .map_err(|_| query_error(format!("no answer from {server}")))?
        .map_err(|e| query_error(format!("no answer from {server}: {e}")))?;
    match answer.metadata.response_code {
        ResponseCode::NoError => extract_addresses(&answer, name, kind),
        ResponseCode::NXDomain => Ok(Answer::NoAddress {
            exists: false,
            ttl: negative_ttl(&answer),
        }),
        ResponseCode::ServFail => Err(query_error(format!("{server} answered SERVFAIL"))),
        ResponseCode::Refused => Err(query_error(format!("{server} answered REFUSED"))),
        other => Err(query_error(format!("{server} answered {other}"))),
    }
}

fn query_error(why: String) -> io::Error {
    super::no_address(why)
}

async fn exchange_messages(
    server: SocketAddr,
    message: &Message,
    how: QueryOptions,
) -> io::Result<Message> {
    let asked = message.to_vec().map_err(io::Error::other)?;
    if !how.tcp_only {
        let answer = over_udp(server, &asked, message, how.resend_after).await?;
        if !answer.metadata.truncation {
            return Ok(answer);
        }
    }
    over_tcp(server, &asked, message).await
}

async fn over_udp(
    server: SocketAddr,
    asked: &[u8],
    message: &Message,
    again: Duration,
) -> io::Result<Message> {
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
        if let Some(answer) = room.get(..len).and_then(|bytes| answer_to(message, bytes)) {
            return Ok(answer);
        }
    }
}

async fn over_tcp(server: SocketAddr, asked: &[u8], message: &Message) -> io::Result<Message> {
    let mut stream = TcpStream::connect(server).await?;
    let len = u16::try_from(asked.len()).map_err(io::Error::other)?;
    let mut framed = len.to_be_bytes().to_vec();
    framed.extend_from_slice(asked);
    stream.write_all(&framed).await?;
    let len = stream.read_u16().await?;
    let mut bytes = vec![0; usize::from(len)];
    stream.read_exact(&mut bytes).await?;
    answer_to(message, &bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Parses the message in `bytes` and returns it if it answers this query.
fn answer_to(asked: &Message, bytes: &[u8]) -> Option<Message> {
    // Checked before anything is parsed: an attacker has to guess the ID.
    if bytes.first_chunk() != Some(&asked.metadata.id.to_be_bytes()) {
        return None;
    }
    let answer = Message::from_vec(bytes).ok()?;
    let fits =
        answer.metadata.message_type == MessageType::Response && answer.queries == asked.queries;
    fits.then_some(answer)
}

/// Returns the addresses at the end of the aliases of `name`.
fn extract_addresses(answer: &Message, name: &Name, kind: RecordType) -> io::Result<Answer> {
    let mut at = name;
    let mut ttl = u32::MAX;
    for _ in 0..=MAX_ALIASES {
        let mut found = Vec::new();
        let mut alias = None;
        for record in answer.answers.iter().filter(|record| record.name == *at) {
            let ip = match &record.data {
                RData::A(a) if kind == RecordType::A => IpAddr::V4(a.0),
                RData::AAAA(aaaa) if kind == RecordType::AAAA => IpAddr::V6(aaaa.0),
                RData::CNAME(to) => {
                    alias.get_or_insert((&to.0, record.ttl));
                    continue;
                }
                _ => continue,
            };
            ttl = ttl.min(record.ttl);
            let addr = SocketAddr::new(ip, 0);
            if found.len() < MAX_ADDRESSES && !found.contains(&addr) {
                found.push(addr);
            }
        }
        match alias {
            _ if !found.is_empty() => return Ok(Answer::Found(found, ttl)),
            Some((to, alias_ttl)) => {
                ttl = ttl.min(alias_ttl);
                at = to;
            }
            None => {
                let ttl = ttl.min(negative_ttl(answer));
                return Ok(Answer::NoAddress { exists: true, ttl });
            }
        }
    }
    Err(query_error(format!("the aliases of {name} form a loop")))
}

/// Returns the time to live of a negative answer, in seconds (RFC 2308 section 5).
fn negative_ttl(answer: &Message) -> u32 {
    let mut all = answer.authorities.iter();
    let soa = all.find_map(|record| match &record.data {
        RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
        _ => None,
    });
    soa.unwrap_or(NO_TTL)
}
