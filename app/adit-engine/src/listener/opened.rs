//! What a way to a listener makes of its address.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use adit_config::ListenAddr;
use adit_net::Buffers;
use adit_stream::Meter;

use crate::udp::{PacketCodec, Share, Ttl};
use crate::{Router, StartError};

/// The bound sockets of a listener, of whatever kind, with what serves them.
pub(crate) struct Opened {
    pub(crate) addr: SocketAddr,
    /// What the sockets take, in a word.
    pub(crate) carries: &'static str,
    /// What the system gave each socket for datagrams that wait, if it takes datagrams.
    pub(crate) buffers: Option<Buffers>,
    pub(crate) tasks: Vec<Task>,
}

/// Work that begins when it is spawned.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) fn task(work: impl Future<Output = ()> + Send + 'static) -> Task {
    Box::pin(work)
}

/// What everything that serves a listener shares.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) router: Arc<Router>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) share: Arc<Share>,
    pub(crate) ttl: Ttl,
}

/// The datagram codecs of a listener, one for each of its sockets, and how long associations are
/// kept.
pub(super) type Packets = (Vec<Box<dyn PacketCodec>>, Ttl);

/// The address of a listener cannot be bound.
pub(crate) fn listen_error(addr: &ListenAddr, why: io::Error) -> StartError {
    StartError::Listen {
        addr: addr.to_string(),
        why,
    }
}
