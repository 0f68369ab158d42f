//! The sockets and tasks of a bound listener.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use adit_config::ListenAddr;
use adit_net::{BatchUdpSocket, BufferSizes};

use crate::carrier::CarrierControl;
use crate::handover::{SharedSockets, SocketHandle};
use crate::serve::{AcceptSwitch, HandlerSlot};
use crate::session_table::ListenerSessions;
use crate::udp::{AssociationTableUpdater, AssociationTtl, ListenerQuota, PacketCodec};
use crate::{Router, StartError};

/// The bound sockets of a listener of any kind, and the tasks that serve them.
pub(crate) struct OpenSockets {
    pub(crate) addr: SocketAddr,
    /// The transports of the sockets: `tcp`, `udp`, `tcp+udp`, `kcp` or `fec`.
    pub(crate) transports: &'static str,
    /// Receive and send buffer sizes of each UDP socket, if there is one.
    pub(crate) buffers: Option<BufferSizes>,
    /// Accepts streams.
    pub(crate) streams: Option<StreamService>,
    /// Changes the carrier's settings.
    pub(crate) carrier: Option<CarrierControl>,
    /// Receive datagrams, one for each socket.
    pub(crate) datagrams: Vec<DatagramService>,
    /// Serves the channels of a carrier that has no streams.
    pub(crate) channels: Option<StreamTask>,
    /// All other tasks.
    pub(crate) tasks: Vec<ListenerTask>,
    /// Pause those of `tasks` that receive requests.
    pub(crate) switches: Vec<AcceptSwitch>,
    /// The sockets that a successor can continue.
    pub(crate) exports: Vec<SocketHandle>,
}

/// The task that accepts streams.
pub(crate) struct StreamService {
    /// The handler of the next stream.
    pub(crate) slot: HandlerSlot,
    pub(crate) task: StreamTask,
    /// Pauses the task, if it accepts TCP connections.
    pub(crate) accepting: Option<AcceptSwitch>,
}

/// The work of a [`StreamService`].
pub(crate) enum StreamTask {
    /// On sockets of its own.
    Own(ListenerTask),
    /// Created for a UDP socket, which may be shared with the predecessor of this process.
    #[cfg_attr(
        not(feature = "kcp"),
        expect(dead_code, reason = "only carriers have such sockets")
    )]
    OnSocket(Box<BatchUdpSocket>, SocketStart<ListenerTask>),
}

/// The work that receives the datagrams of a socket.
pub(crate) enum DatagramService {
    /// On a socket of its own.
    Own(AssociationTableUpdater, ListenerTask),
    /// Created for a UDP socket, which may be shared with the predecessor of this process.
    OnSocket(
        Box<BatchUdpSocket>,
        SocketStart<(AssociationTableUpdater, ListenerTask)>,
    ),
}

/// Creates work for a socket when the listener starts.
pub(crate) type SocketStart<T> = Box<dyn FnOnce(BatchUdpSocket) -> T + Send>;

impl StreamTask {
    /// Returns the work. A socket that the predecessor still serves peers on is taken from `shared`.
    pub(crate) fn start(self, shared: &mut SharedSockets) -> ListenerTask {
        match self {
            Self::Own(task) => task,
            Self::OnSocket(socket, start) => start(shared.take_for(*socket)),
        }
    }
}

impl DatagramService {
    /// Returns the work and its control. A socket that the predecessor still serves peers on is taken from `shared`.
    pub(crate) fn start(
        self,
        shared: &mut SharedSockets,
    ) -> (AssociationTableUpdater, ListenerTask) {
        match self {
            Self::Own(control, task) => (control, task),
            Self::OnSocket(socket, start) => start(shared.take_for(*socket)),
        }
    }
}

/// Work that starts when it is spawned.
pub(crate) type ListenerTask = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) fn box_task(work: impl Future<Output = ()> + Send + 'static) -> ListenerTask {
    Box::pin(work)
}

/// State that everything serving one listener shares.
#[derive(Clone)]
pub(crate) struct ListenerState {
    pub(crate) router: Arc<Router>,
    pub(crate) sessions: Arc<ListenerSessions>,
    pub(crate) share: Arc<ListenerQuota>,
    pub(crate) ttl: AssociationTtl,
}

/// The datagram codecs of a listener, one for each of its sockets, and the lifetime of associations.
pub(crate) type PacketHandlers = (Vec<Box<dyn PacketCodec>>, AssociationTtl);

/// Creates the error of a listener whose address cannot be bound.
pub(crate) fn listen_error(addr: &ListenAddr, why: io::Error) -> StartError {
    StartError::Listen {
        addr: addr.to_string(),
        why,
    }
}
