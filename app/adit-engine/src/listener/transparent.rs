//! Ports that receive connections and datagrams addressed to other machines.

use adit_config::{ListenAddr, TransparentListener};

use super::open_sockets::{DatagramService, ListenerState, OpenSockets, box_task, listen_error};
use super::ports::accept_task;
use crate::StartError;
use crate::handover::SocketSource;
use crate::listen_port;
use crate::serve::ConnectionHandler;
use crate::udp::UdpListener as Table;

pub(super) async fn open_transparent(
    plan: &TransparentListener,
    worker: ConnectionHandler,
    addr: &ListenAddr,
    common: &ListenerState,
    source: SocketSource<'_>,
) -> Result<OpenSockets, StartError> {
    let sockets = listen_port::bind_transparent(&addr.host, addr.port, plan, source).await;
    let sockets = sockets.map_err(|why| listen_error(addr, why))?;
    let carries = match (sockets.tcp.is_some(), sockets.udp.is_some()) {
        (true, true) => "tcp+udp",
        (false, true) => "udp",
        _ => "tcp",
    };
    let buffers = sockets.udp.as_ref().map(|udp| udp.buffers());
    let streams = sockets.tcp.map(|socket| accept_task(worker, socket));
    let mut datagrams = Vec::new();
    if let Some(udp) = sockets.udp {
        let ListenerState {
            router,
            sessions,
            share,
            ttl,
        } = common.clone();
        let table = Table::transparent(udp, router, sessions, ttl, share);
        datagrams.push(DatagramService::Own(table.control(), box_task(table.run())));
    }
    Ok(OpenSockets {
        addr: sockets.addr,
        transports: carries,
        buffers,
        streams,
        carrier: None,
        datagrams,
        channels: None,
        tasks: Vec::new(),
        switches: Vec::new(),
        exports: sockets.handles,
    })
}
