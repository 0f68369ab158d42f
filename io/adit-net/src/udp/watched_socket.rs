//! A UDP socket that is registered for readability only, or, at high rates, [polled by a
//! timer](super::poll_policy).
//!
//! Sending never waits for buffer space here: a datagram that finds none is lost. A socket registered for
//! writability would wake a thread whenever a datagram has left, which on the way to this machine itself
//! happens at every send.

#[cfg(not(unix))]
pub(super) use plain::WatchedSocket;
#[cfg(unix)]
pub(super) use unix::WatchedSocket;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::sync::{Mutex, PoisonError};
    use std::task::{Context, Poll};
    use std::time::Instant;

    use quinn_udp::UdpSockRef;
    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::super::poll_policy::{POLL_INTERVAL, PollPolicy, Verdict};
    use super::super::poll_timer::PollTimer;
    use crate::on_demand::Descriptor;

    /// A bound socket, registered with the runtime in which it was created.
    #[derive(Debug)]
    pub(in super::super) struct WatchedSocket {
        /// Declared before the socket that owns its descriptor, so that it is dropped first.
        watch: Mutex<Watch>,
        socket: Socket,
    }

    #[derive(Debug)]
    struct Watch {
        how: WatchMode,
        pace: PollPolicy,
    }

    #[derive(Debug)]
    enum WatchMode {
        Reactor(AsyncFd<Descriptor>),
        Timer(PollTimer),
    }

    impl WatchedSocket {
        pub(in super::super) fn new(socket: Socket) -> io::Result<Self> {
            let how = WatchMode::Reactor(register_readable(&socket)?);
            let pace = PollPolicy::default();
            let watch = Mutex::new(Watch { how, pace });
            Ok(Self { watch, socket })
        }

        pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
            let addr = self.socket.local_addr()?;
            addr.as_socket()
                .ok_or_else(|| io::ErrorKind::InvalidData.into())
        }

        /// Returns a reference for setting options.
        pub(in super::super) fn socket_ref(&self) -> SockRef<'_> {
            SockRef::from(&self.socket)
        }

        /// Returns a reference for sending, which needs no readiness, and for receiving within
        /// [`try_recv_with`](Self::try_recv_with).
        pub(in super::super) fn udp_socket_ref(&self) -> UdpSockRef<'_> {
            UdpSockRef::from(&self.socket)
        }

        /// Returns the descriptor of the socket.
        pub(in super::super) fn as_fd(&self) -> BorrowedFd<'_> {
            self.socket.as_fd()
        }

        /// Waits until there may be something to receive. If several tasks poll, only the last one is woken.
        pub(in super::super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            match &mut self.lock_watch().how {
                WatchMode::Reactor(watched) => watched.poll_read_ready(cx).map_ok(drop),
                WatchMode::Timer(beat) => beat.poll_expired(cx),
            }
        }

        /// Receives with `receive` if there may be something; if that returns
        /// [`WouldBlock`](io::ErrorKind::WouldBlock), the socket counts as empty until something arrives.
        pub(in super::super) fn try_recv_with(
            &self,
            receive: impl FnOnce() -> io::Result<()>,
        ) -> io::Result<()> {
            match &mut self.lock_watch().how {
                WatchMode::Reactor(watched) => watched.try_io(Interest::READABLE, |_| receive()),
                WatchMode::Timer(beat) if beat.is_armed() => Err(io::ErrorKind::WouldBlock.into()),
                WatchMode::Timer(beat) => {
                    let received = receive();
                    if matches!(&received, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
                        beat.arm(POLL_INTERVAL)?;
                    }
                    received
                }
            }
        }

        /// Records that all available datagrams, or one batch, have been received, and how many.
        pub(in super::super) fn record_poll(&self, datagrams: usize) {
            let mut watch = self.lock_watch();
            match watch.pace.record_poll(datagrams, Instant::now) {
                Verdict::Same => {}
                Verdict::Poll if crate::udp::portable_io() => {}
                Verdict::Poll => {
                    // Without such a timer, the socket stays registered.
                    let beat = PollTimer::new()
                        .and_then(|mut beat| beat.arm(POLL_INTERVAL).map(|()| beat));
                    if let Ok(beat) = beat {
                        watch.how = WatchMode::Timer(beat);
                    }
                }
                Verdict::Register => {
                    if let Ok(watched) = register_readable(&self.socket) {
                        watch.how = WatchMode::Reactor(watched);
                    }
                }
            }
        }

        fn lock_watch(&self) -> std::sync::MutexGuard<'_, Watch> {
            self.watch.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[allow(unsafe_code, reason = "no safe API registers for one direction alone")]
    fn register_readable(socket: &Socket) -> io::Result<AsyncFd<Descriptor>> {
        let descriptor = Descriptor::new(socket.as_raw_fd());
        // SAFETY: the descriptor is that of a socket of `WatchedSocket`, which is dropped after its registration
        // and cannot be moved out or replaced: only shared references to it are available there.
        let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        Ok(watched?)
    }
}

#[cfg(not(unix))]
mod plain {
    use std::io;
    use std::net::SocketAddr;
    use std::task::{Context, Poll};

    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// A bound socket, registered with the runtime in which it was created.
    #[derive(Debug)]
    pub(in super::super) struct WatchedSocket(UdpSocket);

    impl WatchedSocket {
        pub(in super::super) fn new(socket: Socket) -> io::Result<Self> {
            UdpSocket::from_std(socket.into()).map(Self)
        }

        pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
            self.0.local_addr()
        }

        /// Returns a reference for setting options.
        pub(in super::super) fn socket_ref(&self) -> SockRef<'_> {
            SockRef::from(&self.0)
        }

        /// Returns a reference for sending, which needs no readiness, and for receiving within
        /// [`try_recv_with`](Self::try_recv_with).
        pub(in super::super) fn udp_socket_ref(&self) -> SockRef<'_> {
            SockRef::from(&self.0)
        }

        /// Waits until there is something to receive. If several tasks poll, only the last one is woken.
        pub(in super::super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_recv_ready(cx)
        }

        /// Receives with `receive` if there may be something; if that returns
        /// [`WouldBlock`](io::ErrorKind::WouldBlock), the socket counts as empty until something arrives.
        pub(in super::super) fn try_recv_with(
            &self,
            receive: impl FnOnce() -> io::Result<()>,
        ) -> io::Result<()> {
            self.0.try_io(Interest::READABLE, receive)
        }

        /// Does nothing: the socket is always registered.
        pub(in super::super) const fn record_poll(&self, _: usize) {}
    }
}
