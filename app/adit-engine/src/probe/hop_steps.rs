//! Checks a hop step by step: lookup, connection, request and datagram.
//!
//! Nothing is guessed: each function reports the observed result, and what it proves.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use adit_config::{CarrierSettings, HopKind, ServerHop};
use adit_net::PacketBuf;
use adit_net::dial::{self, Family};
use adit_shadowsocks::Edition;
use adit_shadowsocksr::ProtocolKind;
use adit_stream::{BoxStream, fill_to, flush_stream};
use adit_wire::{Host, Name, Target, subslice};
use tokio::time::{sleep, timeout};

use super::GREETING;
use crate::acceptor::CHECK_NAME;
use crate::carrier::FecHop;
use crate::connector::{Connector, HopWatch};
use crate::dns::NameResolver;
use crate::{DialError, DialStage, StartError};

/// Time to wait for the target's answer after the server has proved itself.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);
/// Time limit for an answer of a carrier's target, or of an FEC channel.
const REMOTE_TIMEOUT: Duration = Duration::from_millis(700);
/// Interval between two checks for an answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of bytes kept of an answer.
const MAX_ANSWER_BYTES: usize = 4096;

/// Creates the connector of one hop, directly from this machine. Starts its plugin, if it has one.
///
/// # Errors
///
/// Returns a [`StartError`] if the hop's settings cannot be used or its plugin does not start.
pub async fn build_hop_connector(hop: &ServerHop) -> Result<Arc<dyn Connector>, StartError> {
    crate::chain_builder::build_hop(
        hop,
        &crate::chain_builder::unrestricted_connector(),
        true,
        &Arc::default(),
        &NameResolver::system(),
    )
    .await
}

/// Returns a connector that connects from this machine, without restrictions.
#[must_use]
pub fn direct_connector() -> Arc<dyn Connector> {
    crate::chain_builder::unrestricted_connector()
}

/// Resolves the addresses of a server; also returns the time that the lookup took.
///
/// # Errors
///
/// Returns the error of the lookup.
pub async fn resolve_server(server: &Target) -> io::Result<(Vec<SocketAddr>, Duration)> {
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
pub async fn connect_first(
    addresses: &[SocketAddr],
    patience: Duration,
) -> io::Result<(SocketAddr, Duration)> {
    let start = Instant::now();
    let socket = dial::connect_first(addresses, patience).await?;
    let took = start.elapsed();
    Ok((socket.peer_addr()?, took))
}

/// A request for a server.
#[derive(Debug)]
pub struct ProbeRequest<'a> {
    target: Target,
    words: &'a [u8],
    /// The expected start of the target's answer.
    expected: &'a [u8],
}

impl<'a> ProbeRequest<'a> {
    /// Creates a request for the name that adit servers answer themselves. Other servers fail to resolve it,
    /// and their reaction shows if they understood the request.
    #[must_use]
    pub fn for_check_name() -> Option<Self> {
        let name = Name::new(CHECK_NAME).ok()?;
        Some(Self {
            target: Target::new(Host::Name(name), 1),
            words: b"",
            expected: GREETING,
        })
    }

    /// Creates a request for a target that answers `words` with bytes that start with `expected`.
    #[must_use]
    pub const fn for_target(target: Target, words: &'a [u8], expected: &'a [u8]) -> Self {
        Self {
            target,
            words,
            expected,
        }
    }
}

/// The result of a request.
#[derive(Debug)]
pub enum ProbeResult {
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
    Undecodable,
    /// The server closed the connection without an answer.
    Closed,
    /// The server did not answer.
    Silent,
}

/// The event that proves that the server understood the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProofOfUnderstanding {
    /// The handshake itself.
    Opening,
    /// A record or frame that can be opened.
    Record,
    /// Only the contents: the cipher decrypts any bytes.
    Words,
}

fn evidence_of(kind: &HopKind) -> ProofOfUnderstanding {
    match kind {
        HopKind::Socks5 { .. }
        | HopKind::Socks4a { .. }
        | HopKind::Http { .. }
        | HopKind::Ssh(_) => ProofOfUnderstanding::Opening,
        HopKind::Shadowsocks { method, .. } => match method.edition() {
            Edition::Aead | Edition::Aead2022 => ProofOfUnderstanding::Record,
            _ => ProofOfUnderstanding::Words,
        },
        HopKind::ShadowsocksR(hop) => match hop.protocol {
            ProtocolKind::Origin | ProtocolKind::VerifySha1 => ProofOfUnderstanding::Words,
            _ => ProofOfUnderstanding::Record,
        },
        // The remote end chose the target: only its answer proves anything.
        HopKind::RemoteTarget => ProofOfUnderstanding::Words,
    }
}

/// Sends a request through the hop of `kind` that `way` was created from.
pub async fn request_through_hop(
    way: &dyn Connector,
    kind: &HopKind,
    question: &ProbeRequest<'_>,
    patience: Duration,
) -> ProbeResult {
    let ProbeRequest {
        target,
        words,
        expected,
    } = question;
    let opened = match timeout(patience, way.connect(target, words)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(why)) => return ProbeResult::Failed(why),
        Err(_) => return ProbeResult::Silent,
    };
    let (mut io, watch) = (opened.io, opened.watch);
    let evidence = evidence_of(kind);
    let proved = || {
        let shown = watch
            .as_ref()
            .is_some_and(|w| w.progress.is_authenticated());
        evidence == ProofOfUnderstanding::Opening
            || (evidence == ProofOfUnderstanding::Record && shown)
    };
    let ended = {
        let enough = async {
            while !proved() {
                sleep(CHECK_INTERVAL).await;
            }
            sleep(ANSWER_TIMEOUT).await;
        };
        tokio::select! {
            ended = timeout(patience, flush_and_read(&mut io, expected.len())) => ended.ok(),
            () = enough => None,
        }
    };
    let filled = io.filled();
    let bytes = subslice(filled, ..filled.len().min(MAX_ANSWER_BYTES));
    let skew = |watch: HopWatch| watch.progress.clock_skew();
    if proved() || (!expected.is_empty() && bytes.starts_with(expected)) {
        let bytes = bytes.to_vec();
        let skew = watch.and_then(skew);
        return ProbeResult::Answer { skew, bytes };
    }
    match ended {
        _ if !bytes.is_empty() => ProbeResult::Undecodable,
        Some(Err(why)) if why.kind() == io::ErrorKind::InvalidData => ProbeResult::Undecodable,
        Some(_) => ProbeResult::Closed,
        None => ProbeResult::Silent,
    }
}

/// Opens a stream to the target of a carrier's remote end, and reads for a moment: a target may send
/// first, and a remote end with other settings closes the session.
pub async fn probe_carrier_target(
    way: &dyn Connector,
    server: &Target,
    patience: Duration,
) -> ProbeResult {
    let opened = match timeout(patience, way.connect(server, &[])).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(why)) => return ProbeResult::Failed(why),
        Err(_) => return ProbeResult::Silent,
    };
    let mut io = opened.io;
    let ended = timeout(REMOTE_TIMEOUT, flush_and_read(&mut io, 1)).await;
    let bytes = io.filled().to_vec();
    match ended {
        Ok(_) if bytes.is_empty() => ProbeResult::Closed,
        _ => ProbeResult::Answer { skew: None, bytes },
    }
}

/// Sends `datagram` through the channel of a `udp+fec` hop, repeated after a while. Returns the time until
/// the remote end answered; adit's does so even if its target sends nothing.
///
/// # Errors
///
/// Returns a [`DialError`] if the hop has no FEC channels, or if no answer arrives within `patience`.
pub async fn probe_fec_channel(
    hop: &ServerHop,
    datagram: &[u8],
    patience: Duration,
) -> Result<Duration, DialError> {
    let Some(CarrierSettings::Fec(plan)) = &hop.carrier else {
        return Err(DialError::unsupported("this hop has no FEC channels"));
    };
    let stage = || DialStage::Dial {
        hop: hop.display_name(),
    };
    let failed = |why: io::Error| DialError::new(stage(), why);
    let lanes = FecHop::new(
        hop.server.clone(),
        hop.display_name(),
        plan,
        NameResolver::system(),
    );
    let lane = lanes.map_err(|why| failed(io::Error::other(why)))?;
    let lane = lane.open_channel().await?;
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
        match timeout(REMOTE_TIMEOUT, heard).await {
            Ok(Ok(())) => return Ok(start.elapsed()),
            Ok(Err(why)) => return Err(failed(why)),
            Err(_) => {}
        }
    }
    Err(failed(io::ErrorKind::TimedOut.into()))
}

/// Flushes pending output, and waits for `want` bytes or the end.
async fn flush_and_read(io: &mut BoxStream, want: usize) -> io::Result<()> {
    flush_stream(io).await?;
    fill_to(io, want.max(1)).await.map(|_| ())
}

/// Sends `datagram` to `to` through `way`, repeated after each `patience`, up to `tries` times. Returns
/// the time between the last repetition and the first answer.
///
/// # Errors
///
/// Returns a [`DialError`] if the path cannot be opened or fails, or if no answer arrives.
pub async fn probe_datagram(
    way: &dyn Connector,
    to: &Target,
    datagram: &[u8],
    tries: u32,
    patience: Duration,
) -> Result<Duration, DialError> {
    let way = way.open_datagrams().await?;
    let failed = |why| DialError::new(DialStage::Connect, why);
    for _ in 0..tries {
        let start = Instant::now();
        let mut packet = PacketBuf::from_payload(datagram);
        way.send(&mut packet, to).map_err(failed)?;
        way.flush().map_err(failed)?;
        let mut scratch = PacketBuf::with_capacity(MAX_ANSWER_BYTES);
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
