//! Ordinary ports for connections, datagrams or both.

use std::future::pending;

use adit_config::{ListenAddr, Plugin};
use adit_net::tcp::FastOpen;
use adit_net::{BatchUdpSocket, accept};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::open_sockets::{
    DatagramService, ListenerState, OpenSockets, PacketHandlers, StreamService, StreamTask,
    box_task, listen_error,
};
use crate::StartError;
use crate::chain_builder::plugin_spec;
use crate::handover::{SocketHandle, SocketSource};
use crate::listen_port;
use crate::plugin::{PluginHost, PluginSide};
use crate::serve::{AcceptSwitch, ConnectionHandler, HandlerSlot, accept_loop};
use crate::udp::UdpListener as Table;

/// The handlers of a port's clients.
pub(super) struct PortHandlers {
    pub(super) worker: Option<ConnectionHandler>,
    pub(super) packets: Option<PacketHandlers>,
    pub(super) fast_open: FastOpen,
}

impl PortHandlers {
    fn tcp_options(&self) -> Option<FastOpen> {
        self.worker.as_ref().map(|_| self.fast_open)
    }

    fn udp_socket_count(&self) -> usize {
        let packets = self.packets.as_ref();
        packets.map_or(0, |(codecs, _)| codecs.len())
    }

    pub(super) async fn bind_ports(
        self,
        addr: &ListenAddr,
        common: &ListenerState,
        source: SocketSource<'_>,
    ) -> Result<OpenSockets, StartError> {
        let failed = |why| listen_error(addr, why);
        let sockets = listen_port::bind_port(
            &addr.host,
            addr.port,
            self.tcp_options(),
            self.udp_socket_count(),
            source,
        )
        .await;
        let sockets = sockets.map_err(failed)?;
        let handles = sockets.handles().map_err(failed)?;
        let (at, tcp, udp) = (sockets.addr, sockets.tcp, sockets.udp);
        Ok(self.spawnable_sockets(at, tcp, udp, common, handles))
    }

    /// Binds behind a plugin, which listens on the address itself. Continues a plugin of `source`, once
    /// [`PluginHost::resume`] is called.
    pub(super) async fn bind_behind_plugin(
        self,
        plugin: &Plugin,
        addr: &ListenAddr,
        common: &ListenerState,
        source: SocketSource<'_>,
    ) -> Result<(OpenSockets, PluginHost), StartError> {
        let failed = |why| listen_error(addr, why);
        let spec = plugin_spec(plugin);
        let (tcp, udp) = (self.tcp_options(), self.udp_socket_count());
        let inner_tcp = tcp.filter(|_| spec.mode.carries_tcp());
        let inner_udp = if spec.mode.carries_udp() { udp } else { 0 };
        let outer_tcp = tcp.filter(|_| inner_tcp.is_none());
        let outer_udp = udp - inner_udp;
        let public = listen_port::resolve_listen_addr(&addr.host, addr.port).await;
        let public = public.map_err(failed)?;
        #[cfg(target_os = "linux")]
        let inherited = source.take_plugin(public);
        #[cfg(target_os = "linux")]
        let port = inherited.as_ref().map_or(0, |plugin| plugin.local.port());
        #[cfg(not(target_os = "linux"))]
        let port = 0;
        let inner = listen_port::bind_behind_plugin(port, inner_tcp, inner_udp, source).await;
        let inner = inner.map_err(failed)?;
        let mut handles = inner.handles().map_err(failed)?;
        let (mut tcp, mut udp) = (inner.tcp, inner.udp);
        if outer_tcp.is_some() || outer_udp > 0 {
            let (host, port) = (&addr.host, addr.port);
            let outer = listen_port::bind_port(host, port, outer_tcp, outer_udp, source).await;
            let outer = outer.map_err(failed)?;
            handles.extend(outer.handles().map_err(failed)?);
            tcp = tcp.or(outer.tcp);
            udp.extend(outer.udp);
        }
        let side = PluginSide::Server {
            public,
            local: inner.addr,
        };
        #[cfg(target_os = "linux")]
        let host = match inherited {
            Some(plugin) => PluginHost::continue_plugin(spec, side, plugin)?,
            None => PluginHost::start_plugin(spec, side).await?,
        };
        #[cfg(not(target_os = "linux"))]
        let host = PluginHost::start_plugin(spec, side).await?;
        let sockets = self.spawnable_sockets(public, tcp, udp, common, handles);
        Ok((sockets, host))
    }

    fn spawnable_sockets(
        self,
        addr: std::net::SocketAddr,
        tcp: Option<TcpListener>,
        udp: Vec<BatchUdpSocket>,
        common: &ListenerState,
        exports: Vec<SocketHandle>,
    ) -> OpenSockets {
        let carries = match (tcp.is_some(), udp.is_empty()) {
            (true, false) => "tcp+udp",
            (true, true) => "tcp",
            (false, _) => "udp",
        };
        let buffers = udp.first().map(BatchUdpSocket::buffer_sizes);
        let streams = self.worker.zip(tcp);
        let streams = streams.map(|(worker, socket)| accept_task(worker, socket));
        let mut datagrams = Vec::new();
        if let Some((codecs, ttl)) = self.packets {
            // If fewer sockets than requested were bound, the remaining codecs are unused.
            for (codec, socket) in codecs.into_iter().zip(udp) {
                let ListenerState {
                    router,
                    sessions,
                    share,
                    ..
                } = common.clone();
                let serve = move |socket: BatchUdpSocket| {
                    let table = Table::new(socket.into(), codec, router, sessions, ttl, share);
                    (table.control(), box_task(table.run()))
                };
                datagrams.push(DatagramService::OnSocket(Box::new(socket), Box::new(serve)));
            }
        }
        OpenSockets {
            addr,
            transports: carries,
            buffers,
            streams,
            carrier: None,
            datagrams,
            channels: None,
            tasks: Vec::new(),
            switches: Vec::new(),
            exports,
        }
    }
}

/// Returns the task that serves the connections of a socket, and the slot of its handler. Connections in progress are notified when
/// the listener ends, which is not yet the case while its successor accepts connections.
pub(super) fn accept_task(worker: ConnectionHandler, socket: TcpListener) -> StreamService {
    let (running, over) = watch::channel(());
    let slot = HandlerSlot::new(worker, Some(over));
    let current = slot.clone();
    let (accepting, permit) = AcceptSwitch::new();
    let task = box_task(async move {
        accept_loop(permit, accept::TcpAcceptor::new(socket), current).await;
        pending::<()>().await;
        drop(running);
    });
    StreamService {
        slot,
        task: StreamTask::Own(task),
        accepting: Some(accepting),
    }
}
