//! Ports that receive connections and datagrams addressed to other machines.

use adit_config::{ListenAddr, Transparent};

use super::opened::{Common, Opened, listen_error, task};
use super::ports::accepting;
use crate::StartError;
use crate::listen_port;
use crate::serve::Worker;
use crate::udp::Listener as Table;

pub(super) async fn open(
    plan: &Transparent,
    worker: Worker,
    addr: &ListenAddr,
    common: &Common,
) -> Result<Opened, StartError> {
    let sockets = listen_port::bind_transparent(&addr.host, addr.port, plan).await;
    let sockets = sockets.map_err(|why| listen_error(addr, why))?;
    let carries = match (sockets.tcp.is_some(), sockets.udp.is_some()) {
        (true, true) => "tcp+udp",
        (false, true) => "udp",
        _ => "tcp",
    };
    let buffers = sockets.udp.as_ref().map(|udp| udp.buffers());
    let mut tasks = Vec::new();
    if let Some(socket) = sockets.tcp {
        tasks.push(accepting(worker, socket));
    }
    if let Some(udp) = sockets.udp {
        let Common {
            router,
            meter,
            share,
            ttl,
        } = common.clone();
        let table = Table::transparent(udp, router, meter, ttl, share);
        tasks.push(task(table.run()));
    }
    Ok(Opened {
        addr: sockets.addr,
        carries,
        buffers,
        tasks,
    })
}
