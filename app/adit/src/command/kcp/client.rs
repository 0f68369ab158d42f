//! The end at home: every connection becomes a stream of one of a few sessions.

use std::sync::Arc;
use std::time::Duration;

use adit_cli::{Code, Done, Failure};
use adit_engine::StartError;
use adit_kcp::{KcpStream, Probe};
use adit_net::accept::{Acceptor, Turn};
use adit_net::ambient::Chance;
use adit_net::tcp;
use adit_smux::{Mux, SmuxStream};
use adit_smux_proto::Role;
use adit_stream::lane;
use adit_wire::Entropy;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::addr::Addr;
use super::check::{ANSWER, Check, Known};
use super::options::{self, Plan};
use super::{addresses, carry, snmp, told};
use crate::args::kcp::{Client, ClientOwn};

/// New sessions for one stream, where each ends as soon as it begins: a server that differs does that
/// for as long as it does.
const TRIES: u32 = 5;
/// Those of them that follow at once: what an end has told may be all that was wrong.
const QUICK_TRIES: u32 = 3;
/// Between two attempts to reach a name or a route.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) fn run(typed: Client) -> Done {
    let (own, both): (ClientOwn, _) = options::file(typed.config.as_deref(), ClientOwn::NAMES)?;
    let own = own.or(typed.own);
    let plan = options::plan(both.or(typed.both), Role::Client)?;
    let local = own.localaddr.as_deref().unwrap_or(":12948");
    let local = Addr::parse("localaddr", local)?;
    let local = local.local("localaddr", local.single("localaddr")?)?;
    let Some(remote) = own.remoteaddr.as_deref() else {
        return Err(Failure::new(Code::Usage, "no server is named").hint("-r HOST:29900"));
    };
    let remote = Addr::parse("remoteaddr", remote)?;
    remote.target("remoteaddr", 0)?;
    for warning in &plan.warnings {
        eprintln!("warning: {warning}");
    }
    let seconds = |n: u32| Duration::from_secs(n.into());
    let dialler = Arc::new(Dialler {
        expires: own.autoexpire.filter(|n| *n > 0).map(seconds),
        scavenged: seconds(own.scavengettl.unwrap_or(600)),
        known: Known::new(&plan),
        remote,
        plan,
    });
    adit_cli::block_on(|mut signals| async move {
        let listen = |why| StartError::Listen {
            addr: local.to_string(),
            why,
        };
        let acceptor = Acceptor::new(tcp::listen(local).map_err(listen)?);
        let at = acceptor.local_addr().unwrap_or(local);
        eprintln!("listening on {at}");
        let counters = &dialler.plan.kcp.counters;
        if let Some((path, period)) = dialler.plan.snmp.clone() {
            tokio::spawn(snmp::log(path, period, Arc::clone(counters)));
        }
        tokio::spawn(snmp::tell(Arc::clone(counters)));
        let sessions = usize::from(own.conn.unwrap_or(1).max(1));
        tokio::spawn(accept(acceptor, Arc::clone(&dialler), sessions));
        let _: Duration = signals.next().await;
        Ok(())
    })
}

/// What makes sessions.
struct Dialler {
    remote: Addr,
    plan: Plan,
    known: Known,
    /// Age at which a session gets no new streams.
    expires: Option<Duration>,
    /// Time from then on until it is closed.
    scavenged: Duration,
}

/// A session, what is known of it, and since when there is one.
struct Line {
    mux: Mux,
    probe: Probe,
    born: Instant,
    /// Whether it is known if the session works.
    checked: watch::Receiver<bool>,
}

impl Line {
    /// Whether nothing answers any more: the server has begun anew, or the way to it.
    fn is_lost(&self) -> bool {
        let waited = self.probe.unanswered();
        waited.is_some_and(|waited| waited >= ANSWER)
    }
}

async fn accept(mut acceptor: Acceptor, dialler: Arc<Dialler>, sessions: usize) {
    // All lines are opened at once: what does not fit is told before anybody needs it.
    let mut lines = Vec::with_capacity(sessions);
    for _ in 0..sessions {
        lines.push(dialler.line().await);
    }
    let mut turn = 0;
    loop {
        let next = tokio::select! {
            next = acceptor.next() => next,
            () = dialler.known.learnt.notified() => {
                // What is different beside that is to be told as well.
                for line in lines.iter_mut().filter(|line| line.mux.end().is_some()) {
                    *line = dialler.line().await;
                }
                continue;
            }
        };
        let (tcp, from) = match next {
            Turn::Connection(tcp, from) => (tcp, from),
            Turn::Exhausted(why) => {
                warn!("a connection was not accepted: {why}");
                continue;
            }
        };
        let Some(line) = lines.get_mut(turn) else {
            return;
        };
        turn = (turn + 1) % sessions;
        let Some(stream) = dialler.stream(line).await else {
            debug!("{from}: each session has ended at once: refused");
            continue;
        };
        let dialler = Arc::clone(&dialler);
        lane::spawn(async move {
            debug!("{from}: stream {}", stream.id());
            let outcome = carry(tcp, stream, &dialler.plan.limits, false).await;
            debug!("{from}: {}", told(&outcome));
        });
    }
}

impl Dialler {
    /// A stream on this line, or on a new one in its place; nothing if the server ends every session
    /// as soon as it begins.
    async fn stream(self: &Arc<Self>, line: &mut Line) -> Option<SmuxStream> {
        let old = self.expires.filter(|age| line.born.elapsed() >= *age);
        if old.is_some() && line.mux.end().is_none() {
            let mux = std::mem::replace(line, self.line().await).mux;
            tokio::spawn(scavenge(mux, self.scavenged));
        }
        if line.is_lost() && line.born.elapsed() >= ANSWER {
            debug!("nothing answers: a new session is tried beside the old one");
            *line = self.line().await;
        }
        for tried in 0..TRIES {
            if self.known.is_uncertain(&self.plan) {
                let _ = timeout(ANSWER, line.checked.wait_for(|checked| *checked)).await;
            }
            match line.mux.open() {
                Ok(stream) => return Some(stream),
                Err(why) => debug!("a new session is needed: {why}"),
            }
            if tried >= QUICK_TRIES {
                sleep(AGAIN).await;
            }
            // Of one that is full, or out of numbers, the streams go on.
            *line = self.line().await;
        }
        line.mux.open().ok()
    }

    /// A new session; tried every second until there is one.
    async fn line(self: &Arc<Self>) -> Line {
        loop {
            match self.dial().await {
                Ok(line) => return line,
                Err(why) => warn!("{why}; trying again"),
            }
            sleep(AGAIN).await;
        }
    }

    async fn dial(self: &Arc<Self>) -> anyhow::Result<Line> {
        let (first, last) = (*self.remote.ports.start(), *self.remote.ports.end());
        let port = Chance.between(first, last);
        let server = match self.remote.target("remoteaddr", port) {
            Ok(server) => server,
            Err(_) => anyhow::bail!("no server is named"),
        };
        let found = addresses(&server).await?;
        let addr = found.first().copied();
        let addr = addr.ok_or_else(|| anyhow::anyhow!("{server} has no address"))?;
        let session = KcpStream::connect(addr, self.plan.kcp.clone())?;
        let probe = session.probe();
        let smux = self.known.smux();
        let mux = Mux::new(Box::new(session), smux.clone())?;
        let (done, checked) = watch::channel(false);
        let (me, watched, session) = (Arc::clone(self), probe.clone(), mux.watch());
        tokio::spawn(async move {
            let check = Check {
                plan: &me.plan,
                known: &me.known,
                server: &server,
                addr,
                probe: &watched,
                session: &session,
                smux: &smux,
            };
            check.run(done).await;
        });
        Ok(Line {
            mux,
            probe,
            born: Instant::now(),
            checked,
        })
    }
}

/// Closes a session that has expired, if it does not end before.
async fn scavenge(mux: Mux, after: Duration) {
    let session = mux.watch();
    let idle = async {
        while mux.streams() > 0 {
            sleep(Duration::from_secs(5).min(after)).await;
        }
    };
    tokio::select! {
        _ = session.ended() => {}
        () = idle => {}
        () = sleep(after) => {}
    }
    mux.close();
}
