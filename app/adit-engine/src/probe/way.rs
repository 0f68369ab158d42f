//! Checks a hop step by step: lookup, connection, request and datagram.
//!
//! Nothing is guessed: each function reports the observed result, and what it proves.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use adit_config::{Carried, HopKind, ServerHop};
use adit_net::PacketBuf;
use adit_net::dial::{self, Family};
use adit_shadowsocks::Edition;
use adit_shadowsocksr::ProtocolKind;
use adit_stream::{BoxStream, fill, flush};
use adit_wire::{Host, Name, Target, held};
use tokio::time::{sleep, timeout};

use super::GREETING;
use crate::acceptor::CHECK_NAME;
use crate::carrier::FecHop;
use crate::connector::{Connector, Watch};
use crate::{DialError, Stage, StartError};

/// Time to wait for the target's answer after the server has proved itself.
const WORDS: Duration = Duration::from_millis(300);
/// Time limit for an answer of a carrier's target, or of an FEC channel.
const FAR: Duration = Duration::from_millis(700);
/// Interval between two checks for an answer.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum number of bytes kept of an answer.
const KEPT: usize = 4096;

/// Creates the connector of one hop, directly from this machine. Starts its plugin, if it has one.
///
/// # Errors
///
/// Returns a [`StartError`] if the hop's settings cannot be used or its plugin does not start.
pub async fn connector(hop: &ServerHop) -> Result<Arc<dyn Connector>, StartError> {
    crate::chain::server_hop(hop, &crate::chain::free(), true, &Arc::default()).await
}

/// Resolves the addresses of a server; also returns the time that the lookup took.
///
/// # Errors
///
/// Returns the error of the lookup.
pub async fn resolve(server: &Target) -> io::Result<(Vec<SocketAddr>, Duration)> {
    let start = Instant::now();
    let found = match &server.host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, server.port)],
        Host::Name(name) => dial::resolve(name.as_str(), server.port, Family::Any).await?,
    };
    Ok((found, start.elapsed()))
}

/// Connects to the first of these addresses that answers, and closes the connection. Returns the address
/// and the time that it took.
///
/// # Errors
///
/// Returns an error if no address answers within `patience`.
pub async fn reach(
    addresses: &[SocketAddr],
    patience: Duration,
) -> io::Result<(SocketAddr, Duration)> {
    let start = Instant::now();
    let socket = dial::race(addresses, patience).await?;
    let took = start.elapsed();
    Ok((socket.peer_addr()?, took))
}

/// A request for a server.
#[derive(Debug)]
pub struct Question<'a> {
    target: Target,
    words: &'a [u8],
    /// The expected start of the target's answer.
    expected: &'a [u8],
}

impl<'a> Question<'a> {
    /// Creates a request for the name that adit servers answer themselves. Other servers fail to resolve it,
    /// and their reaction shows if they understood the request.
    #[must_use]
    pub fn name() -> Option<Self> {
        let name = Name::new(CHECK_NAME).ok()?;
        Some(Self {
            target: Target::new(Host::Name(name), 1),
            words: b"",
            expected: GREETING,
        })
    }

    /// Creates a request for a target that answers `words` with bytes that start with `expected`.
    #[must_use]
    pub const fn target(target: Target, words: &'a [u8], expected: &'a [u8]) -> Self {
        Self {
            target,
            words,
            expected,
        }
    }
}

/// The result of a request.
#[derive(Debug)]
pub enum Heard {
    /// An answer that only a server with the right key and settings can have sent.
    Answer {
        /// Server's clock minus the local one in seconds, where the protocol reports it.
        skew: Option<i64>,
        /// The first bytes of the target's answer, if there was one.
        bytes: Vec<u8>,
    },
    /// No stream was opened: the connection to the server or the handshake failed.
    Failed(DialError),
    /// Bytes arrived that cannot be decoded.
    Garbled,
    /// The server closed the connection without an answer.
    Closed,
    /// The server did not answer.
    Silent,
}

/// The event that proves that the server understood the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The handshake itself.
    Opening,
    /// A record or frame that can be opened.
    Record,
    /// Only the contents: the cipher decrypts any bytes.
    Words,
}

fn evidence(kind: &HopKind) -> Evidence {
    match kind {
        HopKind::Socks5 { .. }
        | HopKind::Socks4a { .. }
        | HopKind::Http { .. }
        | HopKind::Ssh(_) => Evidence::Opening,
        HopKind::Shadowsocks { method, .. } => match method.edition() {
            Edition::Aead | Edition::Aead2022 => Evidence::Record,
            _ => Evidence::Words,
        },
        HopKind::ShadowsocksR(hop) => match hop.protocol {
            ProtocolKind::Origin | ProtocolKind::VerifySha1 => Evidence::Words,
            _ => Evidence::Record,
        },
        // The remote end chose the target: only its answer proves anything.
        HopKind::Far => Evidence::Words,
    }
}

/// Sends a request through the hop of `kind` that `way` was created from.
pub async fn ask(
    way: &dyn Connector,
    kind: &HopKind,
    question: &Question<'_>,
    patience: Duration,
) -> Heard {
    let Question {
        target,
        words,
        expected,
    } = question;
    let opened = match timeout(patience, way.connect(target, words)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(why)) => return Heard::Failed(why),
        Err(_) => return Heard::Silent,
    };
    let (mut io, watch) = (opened.io, opened.watch);
    let evidence = evidence(kind);
    let proved = || {
        let shown = watch.as_ref().is_some_and(|w| w.progress.authenticated());
        evidence == Evidence::Opening || (evidence == Evidence::Record && shown)
    };
    let ended = {
        let enough = async {
            while !proved() {
                sleep(LOOK).await;
            }
            sleep(WORDS).await;
        };
        tokio::select! {
            ended = timeout(patience, listen(&mut io, expected.len())) => ended.ok(),
            () = enough => None,
        }
    };
    let filled = io.filled();
    let bytes = held(filled, ..filled.len().min(KEPT));
    let skew = |watch: Watch| watch.progress.skew();
    if proved() || (!expected.is_empty() && bytes.starts_with(expected)) {
        let bytes = bytes.to_vec();
        let skew = watch.and_then(skew);
        return Heard::Answer { skew, bytes };
    }
    match ended {
        _ if !bytes.is_empty() => Heard::Garbled,
        Some(Err(why)) if why.kind() == io::ErrorKind::InvalidData => Heard::Garbled,
        Some(_) => Heard::Closed,
        None => Heard::Silent,
    }
}

/// Opens a stream to the target of a carrier's remote end, and reads for a moment: a target may send
/// first, and a remote end with other settings closes the session.
pub async fn far(way: &dyn Connector, server: &Target, patience: Duration) -> Heard {
    let opened = match timeout(patience, way.connect(server, &[])).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(why)) => return Heard::Failed(why),
        Err(_) => return Heard::Silent,
    };
    let mut io = opened.io;
    let ended = timeout(FAR, listen(&mut io, 1)).await;
    let bytes = io.filled().to_vec();
    match ended {
        Ok(_) if bytes.is_empty() => Heard::Closed,
        _ => Heard::Answer { skew: None, bytes },
    }
}

/// Sends `datagram` through the channel of a `udp+fec` hop, repeated after a while. Returns the time until
/// the remote end answered; adit's does so even if its target sends nothing.
///
/// # Errors
///
/// Returns a [`DialError`] if the hop has no FEC channels, or if no answer arrives within `patience`.
pub async fn lane(
    hop: &ServerHop,
    datagram: &[u8],
    patience: Duration,
) -> Result<Duration, DialError> {
    let Some(Carried::Fec(plan)) = &hop.carried else {
        return Err(DialError::unsupported("this hop has no FEC channels"));
    };
    let stage = || Stage::Dial { hop: hop.name() };
    let failed = |why: io::Error| DialError::new(stage(), why);
    let lanes = FecHop::new(hop.server.clone(), hop.name(), plan);
    let lane = lanes.map_err(|why| failed(io::Error::other(why)))?;
    let lane = lane.open().await?;
    let start = Instant::now();
    while start.elapsed() < patience {
        lane.send(datagram).map_err(failed)?;
        lane.flush().map_err(failed)?;
        let heard = async {
            let mut answers = 0;
            while answers == 0 && !lane.is_heard() {
                poll_fn(|cx| match lane.poll_recv(cx, &mut |_| answers += 1) {
                    Poll::Pending if lane.is_heard() => Poll::Ready(Ok(())),
                    other => other,
                })
                .await?;
            }
            io::Result::Ok(())
        };
        match timeout(FAR, heard).await {
            Ok(Ok(())) => return Ok(start.elapsed()),
            Ok(Err(why)) => return Err(failed(why)),
            Err(_) => {}
        }
    }
    Err(failed(io::ErrorKind::TimedOut.into()))
}

/// Flushes pending output, and waits for `want` bytes or the end.
async fn listen(io: &mut BoxStream, want: usize) -> io::Result<()> {
    flush(io).await?;
    fill(io, want.max(1)).await.map(|_| ())
}

/// Sends `datagram` to `to` through `way`, repeated after each `patience`, up to `tries` times. Returns
/// the time between the last repetition and the first answer.
///
/// # Errors
///
/// Returns a [`DialError`] if the path cannot be opened or fails, or if no answer arrives.
pub async fn datagram(
    way: &dyn Connector,
    to: &Target,
    datagram: &[u8],
    tries: u32,
    patience: Duration,
) -> Result<Duration, DialError> {
    let way = way.associate().await?;
    let failed = |why| DialError::new(Stage::Connect, why);
    for _ in 0..tries {
        let start = Instant::now();
        let mut packet = PacketBuf::from_payload(datagram);
        way.send(&mut packet, to).map_err(failed)?;
        way.flush().map_err(failed)?;
        let mut scratch = PacketBuf::with_capacity(KEPT);
        let mut heard = false;
        let answer = async {
            while !heard {
                let mut each = |_: &mut PacketBuf, _: &Target| heard = true;
                poll_fn(|cx| way.poll_recv(cx, &mut scratch, &mut each)).await?;
            }
            io::Result::Ok(())
        };
        match timeout(patience, answer).await {
            Ok(Ok(())) => return Ok(start.elapsed()),
            Ok(Err(why)) => return Err(failed(why)),
            Err(_) => {}
        }
    }
    Err(failed(io::ErrorKind::TimedOut.into()))
}
