//! UDP sockets that are handed over to the next process, and continued by it.

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use super::BatchUdpSocket;
use crate::handover::{HandedOverUdp, ServedPeers, UdpHandover, continue_udp_socket};

impl BatchUdpSocket {
    /// Hands the socket over to the next process: from now on this one receives only what that forwards, and sends as
    /// before. The caller adds the addresses of the peers that it serves to the result, so that their datagrams
    /// are forwarded; it must not start to serve others before, and calls [`release_source`](Self::release_source)
    /// for each that it does not serve any more. If the result, or the socket that is [continued](Self::continue_from)
    /// from it, is dropped, this process receives on the socket again.
    ///
    /// A task that waits for datagrams has to be woken by the caller.
    ///
    /// # Errors
    /// `AlreadyExists` if the socket has been handed over, and errors of the system.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with I/O.
    pub fn hand_over(&self) -> io::Result<HandedOverUdp> {
        let socket = self.socket.socket_ref().as_fd().try_clone_to_owned()?;
        let (link, served) = self.handover.hand_over()?;
        Ok(HandedOverUdp {
            socket,
            link,
            sources: served.sources,
            sessions: served.sessions,
        })
    }

    /// Returns true if the next process receives on the socket.
    #[must_use]
    pub fn is_handed_over(&self) -> bool {
        self.handover.is_handed_over()
    }

    /// Informs the next process that this one does not serve a peer any more. Has no effect if the socket has not
    /// been handed over.
    pub fn release_source(&self, source: SocketAddr) {
        self.handover.release(&[source]);
    }

    /// Continues a socket of the previous process, and forwards the datagrams of the peers which that one
    /// serves.
    ///
    /// # Errors
    /// `InvalidInput` if a descriptor is not of a bound UDP socket and of a link, and errors of the system.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with I/O.
    pub fn continue_from(before: HandedOverUdp) -> io::Result<Self> {
        let HandedOverUdp {
            socket,
            link,
            sources,
            sessions,
        } = before;
        let served = ServedPeers { sources, sessions };
        let mut socket = Self::from_std(continue_udp_socket(socket)?)?;
        socket.handover = UdpHandover::continue_from(link, served)?;
        Ok(socket)
    }

    /// Returns true if the previous process may still serve peers on the socket.
    #[must_use]
    pub fn is_forwarding(&self) -> bool {
        self.handover.is_forwarding()
    }

    /// Passes all datagrams on before any of them is forwarded, so that this process can check them first. Then
    /// forward them with [`forward_opened`](Self::forward_opened).
    pub fn open_before_forwarding(&self) {
        self.handover.set_opens_first();
    }

    /// Forwards a datagram to the previous process if that serves the sender; otherwise returns false. A datagram for
    /// which there is no space is lost.
    pub fn forward_opened(&self, datagram: &[u8], from: SocketAddr) -> bool {
        self.handover.forward_opened(datagram, from)
    }

    /// Records a datagram that is not forwarded, after [`open_before_forwarding`](Self::open_before_forwarding): now and
    /// then the end of the previous process is noticed by that.
    pub fn note_other_datagram(&self) {
        self.handover.note_other();
    }

    /// Forwards a datagram to the previous process although it does not serve the sender: its client has moved. Returns
    /// false if that process has ended. A datagram for which there is no space is lost.
    pub fn forward_datagram(&self, datagram: &[u8], from: SocketAddr) -> bool {
        self.handover.forward_datagram(datagram, None, from)
    }

    /// Forwards a datagram of a session, whose client may have moved, if the previous process has
    /// [handed it over](HandedOverUdp::sessions) and has not ended; otherwise returns false. A datagram for which there
    /// is no space is lost.
    pub fn forward_session(&self, session: u64, datagram: &[u8], from: SocketAddr) -> bool {
        let session = Some(session);
        self.handover.forward_datagram(datagram, session, from)
    }

    /// Returns the number of peers that the previous process serves.
    #[must_use]
    pub fn forwarded_count(&self) -> usize {
        self.handover.forwarded_count()
    }
}
