//! ShadowsocksR listeners.

use std::sync::Arc;

use adit_config::SsrServer;
use adit_net::ambient::{self, Chance, SystemChance, SystemClock};
use adit_obfs::{ServerSettings, ServerState};
use adit_shadowsocksr::{ReplayStore, ServerParam, ServerStack};
use adit_wire::{Entropy, narrow};

use super::{Bench, Served};
use crate::StartError;
use crate::acceptor::{Accounts, Rejects, ShadowsocksR};
use crate::udp::{PacketCodec, SsrPackets};

pub(super) fn served(server: &SsrServer, bench: &Bench<'_>) -> Result<Served, StartError> {
    let (method, kind, obfs) = (server.method, server.protocol.kind, server.obfs);
    let password = server.password.expose().as_bytes();
    let param = ServerParam::parse(kind, server.protocol_param.expose())?;
    let started = ambient::unix();
    let mut seed = [0; 16];
    SystemChance.fill(&mut seed);
    let replays = Arc::new(ReplayStore::new(seed, started));
    let overhead = narrow(obfs.overhead());
    let stack = ServerStack::new(method, password, server.protocol, &param, overhead, replays)?;
    let key = method.key_from_password(password);
    let settings = ServerSettings {
        kind: obfs,
        strangers: server.strangers,
        param: &server.obfs_param,
        key: key.expose(),
        password,
        clock: Arc::new(SystemClock),
        started,
    };
    let stack = Arc::new(stack);
    let accounts = Arc::new(Accounts::new(param.uids()));
    let rejects = Rejects::new(server.reject.clone()).redirecting(server.redirect.clone());
    let acceptor = ShadowsocksR {
        stack: stack.clone(),
        obfs: ServerState::new(&settings, &mut Chance)?,
        accounts: accounts.clone(),
        rejects: Arc::new(rejects),
        deadline: bench.listen.limits.handshake,
    };
    let codec: Box<dyn PacketCodec> = Box::new(SsrPackets::new(stack, accounts));
    Ok(Served {
        worker: server.tcp.then(|| bench.worker(Box::new(acceptor))),
        packets: server.udp.then(|| (vec![codec], bench.common.ttl)),
        keyed: None,
    })
}
