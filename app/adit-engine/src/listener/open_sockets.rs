//! The sockets and tasks of a bound listener.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use adit_config::ListenAddr;
use adit_net::BufferSizes;
use adit_stream::TrafficMeter;

use crate::carrier::CarrierControl;
use crate::serve::HandlerSlot;
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
    pub(crate) streams: Option<(HandlerSlot, ListenerTask)>,
    /// Changes the carrier's settings.
    pub(crate) carrier: Option<CarrierControl>,
    /// Receive datagrams, one for each socket.
    pub(crate) datagrams: Vec<(AssociationTableUpdater, ListenerTask)>,
    /// All other tasks.
    pub(crate) tasks: Vec<ListenerTask>,
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
    pub(crate) meter: Arc<TrafficMeter>,
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
