//! ShadowsocksR listeners.

use std::sync::Arc;

use adit_config::SsrServer;
use adit_net::system::{self, SystemClock, SystemRng, ThreadRng};
use adit_obfs::{ServerSettings, ServerState};
use adit_shadowsocksr::{ReplayStore, ServerParam, ServerStack};
use adit_wire::{Entropy, narrow_int};

use super::{ListenerBuilder, ListenerHandlers};
use crate::StartError;
use crate::acceptor::{RejectHandler, ShadowsocksRAcceptor, SsrAccounts};
use crate::udp::{PacketCodec, SsrPackets};

pub(super) fn build_handlers(
    server: &SsrServer,
    bench: &ListenerBuilder<'_>,
) -> Result<ListenerHandlers, StartError> {
    let (method, kind, obfs) = (server.method, server.protocol.kind, server.obfs);
    let password = server.password.expose().as_bytes();
    let param = ServerParam::parse(kind, server.protocol_param.expose())?;
    let started = system::unix_now();
    let mut seed = [0; 16];
    SystemRng.fill(&mut seed);
    let replays = Arc::new(ReplayStore::new(seed, started));
    let overhead = narrow_int(obfs.overhead());
    let stack = ServerStack::new(method, password, server.protocol, &param, overhead, replays)?;
    let key = method.key_from_password(password);
    let mut settings = ServerSettings::new(obfs, &server.obfs_param, Arc::new(SystemClock));
    settings.unrecognized = server.strangers;
    settings.key = key.expose();
    settings.password = password;
    settings.started = started;
    let stack = Arc::new(stack);
    let accounts = Arc::new(SsrAccounts::new(param.user_ids()));
    let rejects = RejectHandler::new(server.reject.clone()).with_redirects(server.redirect.clone());
    let acceptor = ShadowsocksRAcceptor {
        stack: stack.clone(),
        obfs: ServerState::new(&settings, &mut ThreadRng)?,
        accounts: accounts.clone(),
        rejects: Arc::new(rejects),
        deadline: bench.listen.limits.handshake,
    };
    let codec: Box<dyn PacketCodec> = Box::new(SsrPackets::new(stack, accounts));
    Ok(ListenerHandlers {
        worker: server.tcp.then(|| bench.build_worker(Box::new(acceptor))),
        packets: server.udp.then(|| (vec![codec], bench.common.ttl)),
        keyed: None,
    })
}
