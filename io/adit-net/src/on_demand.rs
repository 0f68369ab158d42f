//! A TCP socket that is registered with the reactor only while a reader waits for data.
//!
//! A socket that is always registered reports everything that arrives, also to a reader that is busy or
//! waits for its destination. In a fast flow this is a considerable part of a relay's cost.

#[cfg(unix)]
pub(crate) use unix::Descriptor;
#[cfg(unix)]
pub use unix::OnDemandTcp;
#[cfg(not(unix))]
pub use unsupported::OnDemandTcp;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::{AsRawFd, RawFd};
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::net::TcpStream;

    /// A connected socket that is registered only when [`poll_read_with`](Self::poll_read_with) finds no data.
    #[derive(Debug)]
    pub struct OnDemandTcp {
        /// Declared before the socket that owns its descriptor, so that it is dropped first.
        registration: Option<AsyncFd<Descriptor>>,
        socket: std::net::TcpStream,
    }

    /// The raw descriptor of a socket that outlives it.
    #[derive(Debug)]
    pub(crate) struct Descriptor(RawFd);

    impl Descriptor {
        pub(crate) const fn new(descriptor: RawFd) -> Self {
            Self(descriptor)
        }
    }

    impl AsRawFd for Descriptor {
        fn as_raw_fd(&self) -> RawFd {
            self.0
        }
    }

    impl OnDemandTcp {
        /// Returns true if this platform supports such sockets.
        #[must_use]
        pub fn is_supported() -> bool {
            !crate::udp::portable_io()
        }

        /// Deregisters a socket. Tasks that waited for it have to poll again.
        ///
        /// # Errors
        /// Errors of the system; the socket is closed then.
        pub fn new(socket: TcpStream) -> io::Result<Self> {
            let socket = socket.into_std()?;
            Ok(Self {
                registration: None,
                socket,
            })
        }

        /// Converts the socket to one that is always registered. Tasks that waited for it have to poll
        /// again.
        ///
        /// # Errors
        /// Errors of the system, and those of the runtime's registration; the socket is closed then.
        pub fn into_registered(self) -> io::Result<TcpStream> {
            let Self {
                registration: wait,
                socket,
            } = self;
            drop(wait);
            TcpStream::from_std(socket)
        }

        /// Returns the socket, which is non-blocking.
        #[must_use]
        pub const fn socket(&self) -> &std::net::TcpStream {
            &self.socket
        }

        /// Waits until requested data arrives; ready immediately if none was requested.
        pub fn poll_requested(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            if let Some(wait) = &self.registration {
                ready!(wait.poll_read_ready(cx))?.retain_ready();
                self.registration = None;
            }
            Poll::Ready(Ok(()))
        }

        /// Reads with `take`, and waits if that returns [`WouldBlock`](io::ErrorKind::WouldBlock).
        pub fn poll_read_with<R>(
            &mut self,
            cx: &mut Context<'_>,
            mut take: impl FnMut(&std::net::TcpStream) -> io::Result<R>,
        ) -> Poll<io::Result<R>> {
            loop {
                ready!(self.poll_requested(cx))?;
                match take(&self.socket) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        self.register_read_interest()?;
                    }
                    done => return Poll::Ready(done),
                }
            }
        }

        #[allow(unsafe_code, reason = "no safe API registers for one direction alone")]
        fn register_read_interest(&mut self) -> io::Result<()> {
            let descriptor = Descriptor::new(self.socket.as_raw_fd());
            // SAFETY: the descriptor is that of `self.socket`, which stays the same and open until after
            // `self.wait` is gone: it is dropped after it, also in `watched`, and nothing replaces it.
            let wait = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
            self.registration = Some(wait?);
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod unsupported {
    use std::io;
    use std::task::{Context, Poll};

    use tokio::net::TcpStream;

    /// An uninhabited type: this platform has no such socket.
    #[derive(Debug)]
    pub enum OnDemandTcp {}

    impl OnDemandTcp {
        /// Returns false.
        #[must_use]
        pub const fn is_supported() -> bool {
            false
        }

        /// Never called: returns [`Unsupported`](io::ErrorKind::Unsupported).
        pub fn new(_: TcpStream) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Never called.
        pub fn into_registered(self) -> io::Result<TcpStream> {
            match self {}
        }

        /// Never called.
        #[must_use]
        pub const fn socket(&self) -> &std::net::TcpStream {
            match *self {}
        }

        /// Never called.
        pub fn poll_requested(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            match *self {}
        }

        /// Never called.
        pub fn poll_read_with<R>(
            &mut self,
            _: &mut Context<'_>,
            _: impl FnMut(&std::net::TcpStream) -> io::Result<R>,
        ) -> Poll<io::Result<R>> {
            match *self {}
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::time::Duration;

    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::OnDemandTcp;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(at), listener.accept());
        (near.unwrap(), far.unwrap().0)
    }

    async fn take(asked: &mut OnDemandTcp) -> Vec<u8> {
        let mut bytes = [0; 64];
        let n = poll_fn(|cx| asked.poll_read_with(cx, |mut socket| socket.read(&mut bytes)));
        let n = n.await.unwrap();
        bytes[..n].to_vec()
    }

    #[tokio::test]
    async fn what_comes_wakes_who_has_asked() {
        let (near, far) = pair().await;
        let (mut near, mut far) = (
            OnDemandTcp::new(near).unwrap(),
            OnDemandTcp::new(far).unwrap(),
        );
        for turn in 0..3u8 {
            let early = timeout(Duration::from_millis(20), take(&mut far)).await;
            assert!(early.is_err(), "nothing has come");
            near.socket().write_all(&[turn; 5]).unwrap();
            assert_eq!(take(&mut far).await, [turn; 5]);
            far.socket().write_all(&[turn; 7]).unwrap();
            assert_eq!(take(&mut near).await, [turn; 7]);
        }
        drop(near);
        assert_eq!(take(&mut far).await, [], "the end comes too");
    }

    #[tokio::test]
    async fn it_can_be_watched_again() {
        let (near, far) = pair().await;
        let mut far = OnDemandTcp::new(far).unwrap();
        assert!(
            timeout(Duration::from_millis(20), take(&mut far))
                .await
                .is_err()
        );
        let far = far.into_registered().unwrap();
        near.try_write(b"again").unwrap();
        far.readable().await.unwrap();
        assert_eq!(far.try_read(&mut [0; 9]).unwrap(), 5);
    }
}
