//! A UDP socket that is registered for readability only, or, at high rates, [polled by a
//! timer](super::pace).
//!
//! Sending never waits for buffer space here: a datagram that finds none is lost. A socket registered for
//! writability would wake a thread whenever a datagram has left, which on the way to this machine itself
//! happens at every send.

#[cfg(not(unix))]
pub(super) use plain::Heard;
#[cfg(unix)]
pub(super) use unix::Heard;

#[cfg(unix)]
mod unix {
    use std::future::poll_fn;
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::AsRawFd;
    use std::sync::{Mutex, PoisonError};
    use std::task::{Context, Poll};
    use std::time::Instant;

    use quinn_udp::UdpSockRef;
    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::super::beat::Beat;
    use super::super::pace::{BEAT, Pace, Verdict};
    use crate::asked::Descriptor;

    /// A bound socket, registered with the runtime in which it was created.
    #[derive(Debug)]
    pub(in super::super) struct Heard {
        /// Declared before the socket that owns its descriptor, so that it is dropped first.
        watch: Mutex<Watch>,
        socket: Socket,
    }

    #[derive(Debug)]
    struct Watch {
        how: How,
        pace: Pace,
    }

    #[derive(Debug)]
    enum How {
        Always(AsyncFd<Descriptor>),
        InBeat(Beat),
    }

    impl Heard {
        pub(in super::super) fn new(socket: Socket) -> io::Result<Self> {
            let how = How::Always(watched(&socket)?);
            let pace = Pace::default();
            let watch = Mutex::new(Watch { how, pace });
            Ok(Self { watch, socket })
        }

        pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
            let addr = self.socket.local_addr()?;
            addr.as_socket()
                .ok_or_else(|| io::ErrorKind::InvalidData.into())
        }

        /// Returns a reference for setting options.
        pub(in super::super) fn options(&self) -> SockRef<'_> {
            SockRef::from(&self.socket)
        }

        /// Returns a reference for sending, which needs no readiness, and for receiving within
        /// [`take`](Self::take).
        pub(in super::super) fn datagrams(&self) -> UdpSockRef<'_> {
            UdpSockRef::from(&self.socket)
        }

        /// Waits until there may be something to receive.
        pub(in super::super) async fn readable(&self) -> io::Result<()> {
            poll_fn(|cx| self.poll_readable(cx)).await
        }

        /// Like [`readable`](Self::readable). If several tasks poll, only the last one is woken.
        pub(in super::super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            match &mut self.watch().how {
                How::Always(watched) => watched.poll_read_ready(cx).map_ok(drop),
                How::InBeat(beat) => beat.poll(cx),
            }
        }

        /// Receives with `receive` if there may be something; if that returns
        /// [`WouldBlock`](io::ErrorKind::WouldBlock), the socket counts as empty until something arrives.
        pub(in super::super) fn take(
            &self,
            receive: impl FnOnce() -> io::Result<()>,
        ) -> io::Result<()> {
            match &mut self.watch().how {
                How::Always(watched) => watched.try_io(Interest::READABLE, |_| receive()),
                How::InBeat(beat) if beat.is_waiting() => Err(io::ErrorKind::WouldBlock.into()),
                How::InBeat(beat) => {
                    let received = receive();
                    if matches!(&received, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
                        beat.wait(BEAT)?;
                    }
                    received
                }
            }
        }

        /// Records that all available datagrams, or one batch, have been received, and how many.
        pub(in super::super) fn looked(&self, datagrams: usize) {
            let mut watch = self.watch();
            match watch.pace.looked(datagrams, Instant::now) {
                Verdict::Same => {}
                Verdict::Beat if crate::udp::portable_io() => {}
                Verdict::Beat => {
                    // Without such a timer, the socket stays registered.
                    let beat = Beat::new().and_then(|mut beat| beat.wait(BEAT).map(|()| beat));
                    if let Ok(beat) = beat {
                        watch.how = How::InBeat(beat);
                    }
                }
                Verdict::Watched => {
                    if let Ok(watched) = watched(&self.socket) {
                        watch.how = How::Always(watched);
                    }
                }
            }
        }

        fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
            self.watch.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[allow(unsafe_code, reason = "no safe API registers for one direction alone")]
    fn watched(socket: &Socket) -> io::Result<AsyncFd<Descriptor>> {
        let descriptor = Descriptor::of(socket.as_raw_fd());
        // SAFETY: the descriptor is that of a socket of `Heard`, which is dropped after its registration
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

    use quinn_udp::UdpSockRef;
    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// A bound socket, registered with the runtime in which it was created.
    #[derive(Debug)]
    pub(in super::super) struct Heard(UdpSocket);

    impl Heard {
        pub(in super::super) fn new(socket: Socket) -> io::Result<Self> {
            UdpSocket::from_std(socket.into()).map(Self)
        }

        pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
            self.0.local_addr()
        }

        /// Returns a reference for setting options.
        pub(in super::super) fn options(&self) -> SockRef<'_> {
            SockRef::from(&self.0)
        }

        /// Returns a reference for sending, which needs no readiness, and for receiving within
        /// [`take`](Self::take).
        pub(in super::super) fn datagrams(&self) -> UdpSockRef<'_> {
            UdpSockRef::from(&self.0)
        }

        /// Waits until there is something to receive.
        pub(in super::super) async fn readable(&self) -> io::Result<()> {
            self.0.readable().await
        }

        /// Like [`readable`](Self::readable). If several tasks poll, only the last one is woken.
        pub(in super::super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_recv_ready(cx)
        }

        /// Receives with `receive` if there may be something; if that returns
        /// [`WouldBlock`](io::ErrorKind::WouldBlock), the socket counts as empty until something arrives.
        pub(in super::super) fn take(
            &self,
            receive: impl FnOnce() -> io::Result<()>,
        ) -> io::Result<()> {
            self.0.try_io(Interest::READABLE, receive)
        }

        /// Does nothing: the socket is always registered.
        pub(in super::super) const fn looked(&self, _: usize) {}
    }
}
