//! Ordinary ports for connections, datagrams or both.

use std::net::Ipv4Addr;

use adit_config::{ListenAddr, Plugin};
use adit_net::tcp::FastOpen;
use adit_net::{Udp, accept};
use adit_wire::Host as WireHost;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::opened::{Common, Opened, Packets, Task, listen_error, task};
use crate::StartError;
use crate::chain::spec;
use crate::listen_port;
use crate::plugin::{Host, Side};
use crate::serve::{Worker, accept_loop};
use crate::udp::Listener as Table;

/// The handlers of a port's clients.
pub(super) struct Ports {
    pub(super) worker: Option<Worker>,
    pub(super) packets: Option<Packets>,
    pub(super) fast_open: FastOpen,
}

impl Ports {
    fn tcp(&self) -> Option<FastOpen> {
        self.worker.as_ref().map(|_| self.fast_open)
    }

    fn udp(&self) -> usize {
        let packets = self.packets.as_ref();
        packets.map_or(0, |(codecs, _)| codecs.len())
    }

    pub(super) async fn open(
        self,
        addr: &ListenAddr,
        common: &Common,
    ) -> Result<Opened, StartError> {
        let failed = |why| listen_error(addr, why);
        let sockets = listen_port::bind(&addr.host, addr.port, self.tcp(), self.udp()).await;
        let sockets = sockets.map_err(failed)?;
        let (at, tcp, udp) = (sockets.addr, sockets.tcp, sockets.udp);
        Ok(self.opened(at, tcp, udp, common))
    }

    /// Binds behind a plugin, which listens on the address itself.
    pub(super) async fn open_behind(
        self,
        plugin: &Plugin,
        addr: &ListenAddr,
        common: &Common,
    ) -> Result<(Opened, Host), StartError> {
        let failed = |why| listen_error(addr, why);
        let spec = spec(plugin);
        let (tcp, udp) = (self.tcp(), self.udp());
        let inner_tcp = tcp.filter(|_| spec.mode.tcp());
        let inner_udp = if spec.mode.udp() { udp } else { 0 };
        let outer_tcp = tcp.filter(|_| inner_tcp.is_none());
        let outer_udp = udp - inner_udp;
        let here = Some(WireHost::Ip(Ipv4Addr::LOCALHOST.into()));
        let inner = listen_port::bind(&here, 0, inner_tcp, inner_udp).await;
        let inner = inner.map_err(failed)?;
        let public = listen_port::address(&addr.host, addr.port).await;
        let public = public.map_err(failed)?;
        let (mut tcp, mut udp) = (inner.tcp, inner.udp);
        if outer_tcp.is_some() || outer_udp > 0 {
            let outer = listen_port::bind(&addr.host, addr.port, outer_tcp, outer_udp).await;
            let outer = outer.map_err(failed)?;
            tcp = tcp.or(outer.tcp);
            udp.extend(outer.udp);
        }
        let side = Side::Server {
            public,
            local: inner.addr,
        };
        let host = Host::start(spec, side).await?;
        Ok((self.opened(public, tcp, udp, common), host))
    }

    fn opened(
        self,
        addr: std::net::SocketAddr,
        tcp: Option<TcpListener>,
        udp: Vec<Udp>,
        common: &Common,
    ) -> Opened {
        let carries = match (tcp.is_some(), udp.is_empty()) {
            (true, false) => "tcp+udp",
            (true, true) => "tcp",
            (false, _) => "udp",
        };
        let buffers = udp.first().map(Udp::buffers);
        let mut tasks = Vec::new();
        if let (Some(worker), Some(socket)) = (self.worker, tcp) {
            tasks.push(accepting(worker, socket));
        }
        if let Some((codecs, ttl)) = self.packets {
            // If fewer sockets than requested were bound, the remaining codecs are unused.
            for (codec, socket) in codecs.into_iter().zip(udp) {
                let Common {
                    router,
                    meter,
                    share,
                    ..
                } = common.clone();
                let table = Table::new(socket.into(), codec, router, meter, ttl, share);
                tasks.push(task(table.run()));
            }
        }
        Opened {
            addr,
            carries,
            buffers,
            tasks,
        }
    }
}

/// Returns the task that serves the connections of a socket. Connections in progress are notified when
/// the listener ends.
pub(super) fn accepting(mut worker: Worker, socket: TcpListener) -> Task {
    let (running, over) = watch::channel(());
    worker.over = Some(over);
    task(async move {
        accept_loop(accept::Acceptor::new(socket), worker.into()).await;
        drop(running);
    })
}
