//! The end at the target: every stream becomes a connection to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_cli::{Code, Done, Failure};
use adit_engine::StartError;
use adit_kcp::{KcpListener, KcpStream};
use adit_smux::{End, Manner, Mux, SmuxStream};
use adit_smux_proto::Role;
use adit_stream::{BoxStream, Stream, lane};
use adit_wire::Target;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::addr::Addr;
use super::options::{self, Plan};
use super::{carry, connect, snmp, told};
use crate::args::kcp::{Server, ServerOwn};

/// Listening ports at most: each is a socket.
const PORTS: usize = 1024;

pub(super) fn run(typed: Server) -> Done {
    let (own, both): (ServerOwn, _) = options::file(typed.config.as_deref(), ServerOwn::NAMES)?;
    let own = own.or(typed.own);
    let plan = options::plan(both.or(typed.both), Role::Server)?;
    let listen = own.listen.as_deref().unwrap_or(":29900");
    let listen = Addr::parse("listen", listen)?;
    let target = own.target.as_deref().unwrap_or("127.0.0.1:12948");
    let target = Addr::parse("target", target)?;
    let target = target.target("target", target.single("target")?)?;
    if listen.ports.len() > PORTS {
        let what = format!("--listen: more than {PORTS} ports");
        return Err(Failure::new(Code::Config, what));
    }
    for warning in &plan.warnings {
        eprintln!("warning: {warning}");
    }
    adit_cli::block_on(|mut signals| async move {
        let shared = Arc::new((plan, target));
        let (plan, target) = &*shared;
        for port in listen.ports.clone() {
            let addr = listen.local("listen", port)?;
            let listener = KcpListener::bind(addr, plan.kcp.clone()).map_err(|why| {
                Failure::from(StartError::Listen {
                    addr: addr.to_string(),
                    why,
                })
            })?;
            let at = listener.local_addr().unwrap_or(addr);
            eprintln!("listening on {at} (UDP), leading to {target}");
            if let Some(buffers) = listener.buffers() {
                debug!("UDP buffers on {at}: {buffers}");
            }
            tokio::spawn(accept(listener, Arc::clone(&shared)));
        }
        let counters = &plan.kcp.counters;
        if let Some((path, period)) = plan.snmp.clone() {
            tokio::spawn(snmp::log(path, period, Arc::clone(counters)));
        }
        tokio::spawn(snmp::tell(Arc::clone(counters)));
        let _: Duration = signals.next().await;
        Ok(())
    })
}

type Shared = Arc<(Plan, Target)>;

async fn accept(mut listener: KcpListener, shared: Shared) {
    while let Ok((session, peer)) = listener.accept().await {
        tokio::spawn(serve(session, peer, Arc::clone(&shared)));
    }
}

/// Serves one session until it is over.
async fn serve(session: KcpStream, peer: SocketAddr, shared: Shared) {
    let (plan, _) = &*shared;
    let mut below: BoxStream = Box::new(session);
    let mut settings = plan.smux.clone();
    if plan.open.any() {
        settings = match timeout(settings.config.timeout, Manner::of(&mut below)).await {
            Ok(Ok(manner)) => plan.open.adapt(&settings, manner),
            Ok(Err(why)) => return info!("{peer}: {why}"),
            Err(_) => return debug!("{peer}: a session in which nothing is said"),
        };
    }
    let (version, compress) = (settings.config.version.number(), settings.compress);
    let mux = match Mux::new(below, settings) {
        Ok(mux) => mux,
        Err(why) => return warn!("{why}"),
    };
    debug!("{peer}: a session begins, smux {version}, compression {compress}");
    let end = loop {
        match mux.accept().await {
            Ok(stream) => lane::spawn(lead(stream, peer, Arc::clone(&shared))),
            Err(end) => break end,
        }
    };
    match end {
        End::Version { .. } | End::Compression { .. } => warn!("{peer}: {end}"),
        End::Snappy(_) | End::Protocol(_) => info!("{peer}: {end}"),
        _ => debug!("{peer}: the session ends: {end}"),
    }
}

/// Leads one stream to the target.
async fn lead(mut stream: SmuxStream, peer: SocketAddr, shared: Shared) {
    let (plan, target) = &*shared;
    let id = stream.id();
    match connect(target).await {
        Ok(tcp) => {
            let outcome = carry(tcp, stream, &plan.limits, true).await;
            debug!("{peer} stream {id}: {}", told(&outcome));
        }
        Err(why) => {
            warn!("{target}: {why}");
            stream.abort();
        }
    }
}
