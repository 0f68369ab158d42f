//! A hop tried step by step: its server looked up, connected to, asked a question, sent a datagram.
//!
//! Nothing here guesses: each function says what came, and what that proves.

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

/// Once a server has proved itself, what it has to say comes within this, or is not waited for.
const WORDS: Duration = Duration::from_millis(300);
/// How long the target of a far end has to say something, or a lane to be answered.
const FAR: Duration = Duration::from_millis(700);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);
/// The longest answer that is kept.
const KEPT: usize = 4096;

/// The connector of one hop, straight from this machine. A plugin is started with it.
pub async fn connector(hop: &ServerHop) -> Result<Arc<dyn Connector>, StartError> {
    crate::chain::server_hop(hop, &crate::chain::free(), true, &Arc::default()).await
}

/// The addresses of a server, and how long it took to find them.
pub async fn resolve(server: &Target) -> io::Result<(Vec<SocketAddr>, Duration)> {
    let start = Instant::now();
    let found = match &server.host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, server.port)],
        Host::Name(name) => dial::resolve(name.as_str(), server.port, Family::Any).await?,
    };
    Ok((found, start.elapsed()))
}

/// Connects to the first of these addresses that answers, and closes at once; gives which it was,
/// and how long it took.
pub async fn reach(
    addresses: &[SocketAddr],
    patience: Duration,
) -> io::Result<(SocketAddr, Duration)> {
    let start = Instant::now();
    let socket = dial::race(addresses, patience).await?;
    let took = start.elapsed();
    Ok((socket.peer_addr()?, took))
}

/// What a server is asked for.
#[derive(Debug)]
pub struct Question<'a> {
    target: Target,
    words: &'a [u8],
    /// What the target's answer begins with.
    expected: &'a [u8],
}

impl<'a> Question<'a> {
    /// The name that an adit server answers by itself. Any other server fails to find it, and shows
    /// by the way it fails whether it has understood.
    #[must_use]
    pub fn name() -> Option<Self> {
        let name = Name::new(CHECK_NAME).ok()?;
        Some(Self {
            target: Target::new(Host::Name(name), 1),
            words: b"",
            expected: GREETING,
        })
    }

    /// A target that answers `words` with something that begins with `expected`.
    #[must_use]
    pub const fn target(target: Target, words: &'a [u8], expected: &'a [u8]) -> Self {
        Self {
            target,
            words,
            expected,
        }
    }
}

/// What came of a question.
#[derive(Debug)]
pub enum Heard {
    /// Only a server that understands us can have sent this.
    Answer {
        /// The server's clock minus ours in seconds, where the protocol carries one.
        skew: Option<i64>,
        /// The first bytes of the target's answer, if it had one.
        bytes: Vec<u8>,
    },
    /// No stream was opened: on the way to the server, or in the dialogue with it.
    Failed(DialError),
    /// Bytes came that mean nothing to us.
    Garbled,
    /// The server closed without an answer.
    Closed,
    /// The server said nothing.
    Silent,
}

/// What shows that a server has understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The dialogue itself.
    Opening,
    /// A record or frame that opens.
    Record,
    /// The words alone: the cipher makes something of any bytes.
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
        // The target was chosen by the far end: what comes back is all there is.
        HopKind::Far => Evidence::Words,
    }
}

/// Asks for a target through the hop of `kind` that `way` was made of.
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

/// Opens a stream to the target of a carrier's far end, and listens for a moment: a target may
/// speak first, and a far end that does not understand us closes the session.
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

/// Sends `datagram` through the lane of a `udp+fec` hop, again after a while, and tells how long the
/// far end took to answer; that of adit does even if its target says nothing.
pub async fn lane(
    hop: &ServerHop,
    datagram: &[u8],
    patience: Duration,
) -> Result<Duration, DialError> {
    let Some(Carried::Fec(plan)) = &hop.carried else {
        return Err(DialError::unsupported("this hop has no lanes"));
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

/// Sends what is owed and waits for so many bytes, or the end.
async fn listen(io: &mut BoxStream, want: usize) -> io::Result<()> {
    flush(io).await?;
    fill(io, want.max(1)).await.map(|_| ())
}

/// Sends `datagram` to `to` through `way`, again after each `patience`, at most `tries` times;
/// gives how long the first answer took to come after the last sending.
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
