//! A socket that is watched for what arrives, and for nothing else; or, when that is very much,
//! looked at in a [beat](super::pace).
//!
//! Nobody waits for room to send here: a datagram that finds none is lost. A socket that were
//! watched for it would wake a thread whenever a datagram has left, which on the way to this
//! machine itself is at every send.

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

    /// A bound socket, watched by the runtime that was there when it was made.
    #[derive(Debug)]
    pub(in super::super) struct Heard {
        /// Before the socket whose descriptor it has, so that it goes first.
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

        /// For its options.
        pub(in super::super) fn options(&self) -> SockRef<'_> {
            SockRef::from(&self.socket)
        }

        /// For sending, which needs no readiness, and for receiving within
        /// [`take`](Self::take).
        pub(in super::super) fn datagrams(&self) -> UdpSockRef<'_> {
            UdpSockRef::from(&self.socket)
        }

        /// Waits until there may be something to receive.
        pub(in super::super) async fn readable(&self) -> io::Result<()> {
            poll_fn(|cx| self.poll_readable(cx)).await
        }

        /// As [`readable`](Self::readable). Of several tasks only the last to ask is woken.
        pub(in super::super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            match &mut self.watch().how {
                How::Always(watched) => watched.poll_read_ready(cx).map_ok(drop),
                How::InBeat(beat) => beat.poll(cx),
            }
        }

        /// Receives by `receive` if there may be something; when that says
        /// [`WouldBlock`](io::ErrorKind::WouldBlock), there is nothing until something arrives.
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

        /// All was received that was there, or as much as is taken at once: so many datagrams.
        pub(in super::super) fn looked(&self, datagrams: usize) {
            let mut watch = self.watch();
            match watch.pace.looked(datagrams, Instant::now) {
                Verdict::Same => {}
                Verdict::Beat if crate::udp::portable_io() => {}
                Verdict::Beat => {
                    // Where there is no such timer, it is watched as before.
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

    #[allow(unsafe_code, reason = "no safe way watches for one direction alone")]
    fn watched(socket: &Socket) -> io::Result<AsyncFd<Descriptor>> {
        let descriptor = Descriptor::of(socket.as_raw_fd());
        // SAFETY: the descriptor is that of a socket of `Heard`, which is dropped behind what
        // watches it, and which nobody can take out or replace: nothing there gives anything but
        // shared references to it.
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

    /// A bound socket, watched by the runtime that was there when it was made.
    #[derive(Debug)]
    pub(in super::super) struct Heard(UdpSocket);

    impl Heard {
        pub(in super::super) fn new(socket: Socket) -> io::Result<Self> {
            UdpSocket::from_std(socket.into()).map(Self)
        }

        pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
            self.0.local_addr()
        }

        /// For its options.
        pub(in super::super) fn options(&self) -> SockRef<'_> {
            SockRef::from(&self.0)
        }

        /// For sending, which needs no readiness, and for receiving within
        /// [`take`](Self::take).
        pub(in super::super) fn datagrams(&self) -> UdpSockRef<'_> {
            UdpSockRef::from(&self.0)
        }

        /// Waits until there is something to receive.
        pub(in super::super) async fn readable(&self) -> io::Result<()> {
            self.0.readable().await
        }

        /// As [`readable`](Self::readable); of several tasks only the last to ask is woken.
        pub(in super::super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_recv_ready(cx)
        }

        /// Receives by `receive` if there may be something; when that says
        /// [`WouldBlock`](io::ErrorKind::WouldBlock), there is nothing until something arrives.
        pub(in super::super) fn take(
            &self,
            receive: impl FnOnce() -> io::Result<()>,
        ) -> io::Result<()> {
            self.0.try_io(Interest::READABLE, receive)
        }

        /// So many datagrams were received at once: it is watched all the same.
        pub(in super::super) const fn looked(&self, _: usize) {}
    }
}
