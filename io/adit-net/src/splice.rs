//! A pool of pipes for `splice(2)`, which moves bytes between sockets without a copy to user space.
//!
//! A pipe is leased while data flows and returned when it is empty. A pipe with bytes left in it is closed,
//! never reused for another connection. On systems other than Linux there are no pipes, and callers copy.

#[cfg(target_os = "linux")]
pub use linux::{Pipe, lease_pipe};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Pipe, lease_pipe};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::pipe::{
        PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
    };

    /// Maximum number of leased pipes; each has two descriptors.
    const MAX_LEASED: usize = 256;
    /// Maximum number of pipes grown to [`LARGE`]: an unprivileged user has 64 MiB of pipe pages in total,
    /// and beyond that even new pipes shrink to two pages.
    const MAX_GROWN: usize = 32;
    const LARGE: usize = 1 << 20;
    /// A pipe smaller than this, in bytes, moves so little per call that copying is cheaper.
    const MIN_CAPACITY: usize = 64 << 10;

    static LEASED_NOW: AtomicUsize = AtomicUsize::new(0);
    static GROWN_NOW: AtomicUsize = AtomicUsize::new(0);
    static FREE: Mutex<Vec<Pipe>> = Mutex::new(Vec::new());

    /// A pipe between two sockets.
    #[derive(Debug)]
    pub struct Pipe {
        ends: Option<(OwnedFd, OwnedFd)>,
        capacity: usize,
        held: usize,
        /// Maximum number of bytes that are moved into it at once.
        limit: usize,
    }

    /// Leases an empty pipe; returns `None` if too many are leased, or the system grants only small ones.
    #[must_use]
    pub fn lease_pipe() -> Option<Pipe> {
        if crate::udp::portable_io() {
            return None;
        }
        if LEASED_NOW.fetch_add(1, Ordering::Relaxed) >= MAX_LEASED {
            LEASED_NOW.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let kept = lock_pool().pop();
        let pipe = kept.or_else(Pipe::open);
        if pipe.is_none() {
            LEASED_NOW.fetch_sub(1, Ordering::Relaxed);
        }
        pipe
    }

    fn lock_pool() -> MutexGuard<'static, Vec<Pipe>> {
        FREE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Pipe {
        fn open() -> Option<Self> {
            let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
            let mut capacity = fcntl_getpipe_size(&write).ok()?;
            if GROWN_NOW.fetch_add(1, Ordering::Relaxed) < MAX_GROWN
                && let Ok(grown) = fcntl_setpipe_size(&write, LARGE)
            {
                capacity = grown;
            } else {
                GROWN_NOW.fetch_sub(1, Ordering::Relaxed);
            }
            let pipe = Self {
                ends: Some((read, write)),
                capacity,
                held: 0,
                limit: usize::MAX,
            };
            if capacity < MIN_CAPACITY {
                // Dropping it would return it to the pool.
                pipe.close();
                return None;
            }
            Some(pipe)
        }

        fn close(mut self) {
            self.discard_ends();
        }

        fn discard_ends(&mut self) {
            if self.ends.take().is_some() && self.capacity >= LARGE {
                GROWN_NOW.fetch_sub(1, Ordering::Relaxed);
            }
        }

        /// Returns the number of bytes in the pipe.
        #[must_use]
        pub const fn buffered(&self) -> usize {
            self.held
        }

        /// Sets the maximum number of bytes that are moved into the pipe at once; at least 1.
        pub const fn set_limit(&mut self, limit: usize) {
            debug_assert!(limit > 0, "no bytes look like the end of the stream");
            self.limit = limit;
        }

        /// Returns the capacity of the pipe in pages, or its limit if that is less. Each page in use has at least one
        /// byte, so if fewer bytes than this were moved into an empty pipe, the socket had no more.
        #[must_use]
        pub fn page_capacity(&self) -> usize {
            (self.capacity / rustix::param::page_size()).min(self.limit)
        }

        /// Moves available bytes from the socket into the pipe, which must be empty. Returns the number of
        /// bytes; 0 is the end of the stream.
        ///
        /// # Errors
        /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is available, and errors of the system.
        pub fn fill_from(&mut self, from: &impl AsFd) -> io::Result<usize> {
            let Some((_, write)) = &self.ends else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let most = self.capacity.min(self.limit);
            let n = splice(from, None, write, None, most, flags)?;
            self.held += n;
            Ok(n)
        }

        /// Like [`fill_from`](Self::fill_from), for a socket whose next byte may be urgent data, which splicing never
        /// passes: the error is then [`InvalidInput`](io::ErrorKind::InvalidInput), and the available data
        /// has to be copied.
        ///
        /// # Errors
        /// Those of [`fill_from`](Self::fill_from), and [`InvalidInput`](io::ErrorKind::InvalidInput) as described.
        pub fn fill_or_copy(&mut self, from: &impl AsFd) -> io::Result<usize> {
            match self.fill_from(from) {
                Err(e)
                    if e.kind() == io::ErrorKind::WouldBlock
                        && crate::urgent::is_urgent_next(from) =>
                {
                    Err(io::ErrorKind::InvalidInput.into())
                }
                done => done,
            }
        }

        /// Moves bytes from the pipe into the socket and returns their number.
        ///
        /// # Errors
        /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the socket accepts nothing, and errors of the system. The bytes stay in the
        /// pipe.
        pub fn drain_to(&mut self, to: &impl AsFd) -> io::Result<usize> {
            let Some((read, _)) = &self.ends else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let n = splice(read, None, to, None, self.held, flags)?;
            self.held -= n;
            Ok(n)
        }
    }

    impl Drop for Pipe {
        fn drop(&mut self) {
            let Some(ends) = self.ends.take() else { return };
            LEASED_NOW.fetch_sub(1, Ordering::Relaxed);
            let mut back = Self {
                ends: Some(ends),
                capacity: self.capacity,
                held: 0,
                limit: usize::MAX,
            };
            let mut free = lock_pool();
            // Small pipes are not worth two descriptors each while nothing flows.
            if self.held == 0 && back.capacity >= LARGE && free.len() < MAX_GROWN {
                free.push(back);
            } else {
                drop(free);
                back.discard_ends();
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use tokio::net::TcpStream;

        #[tokio::test]
        async fn bytes_pass_and_a_pipe_with_bytes_is_not_given_on() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (a, b) = tokio::join!(
                TcpStream::connect(listener.local_addr().unwrap()),
                listener.accept()
            );
            let (a, (b, _)) = (a.unwrap(), b.unwrap());
            if crate::udp::portable_io() {
                return assert!(lease_pipe().is_none());
            }
            let mut pipe = lease_pipe().unwrap();
            a.writable().await.unwrap();
            a.try_write(b"left behind").unwrap();
            b.readable().await.unwrap();
            assert_eq!(pipe.fill_from(&b).unwrap(), 11);
            assert_eq!(pipe.drain_to(&b).unwrap(), 11);
            assert_eq!(pipe.buffered(), 0);
            let mut back = [0; 11];
            a.readable().await.unwrap();
            a.try_read(&mut back).unwrap();
            assert_eq!(&back, b"left behind");
            a.try_write(b"stuck").unwrap();
            b.readable().await.unwrap();
            assert_eq!(pipe.fill_from(&b).unwrap(), 5);
            drop(pipe);
            for _ in 0..MAX_GROWN + 1 {
                let mut next = lease_pipe().unwrap();
                next.held = 64;
                let e = next.drain_to(&b).unwrap_err();
                assert_eq!(
                    e.kind(),
                    io::ErrorKind::WouldBlock,
                    "another's bytes are in it"
                );
                next.held = 0;
            }
            let many: Vec<_> = std::iter::from_fn(lease_pipe)
                .take(MAX_LEASED + 1)
                .collect();
            assert!(many.len() <= MAX_LEASED, "loans are bounded");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::io;

    /// An uninhabited type: this system has no such pipes.
    #[derive(Debug)]
    pub enum Pipe {}

    /// Returns `None`: callers copy.
    #[must_use]
    pub fn lease_pipe() -> Option<Pipe> {
        None
    }

    impl Pipe {
        /// Never called.
        #[must_use]
        pub const fn buffered(&self) -> usize {
            match *self {}
        }

        /// Never called.
        pub const fn set_limit(&mut self, _: usize) {
            match *self {}
        }

        /// Never called.
        #[must_use]
        pub const fn page_capacity(&self) -> usize {
            match *self {}
        }

        /// Never called.
        pub fn fill_from<S>(&mut self, _: &S) -> io::Result<usize> {
            match *self {}
        }

        /// Never called.
        pub fn fill_or_copy<S>(&mut self, _: &S) -> io::Result<usize> {
            match *self {}
        }

        /// Never called.
        pub fn drain_to<S>(&mut self, _: &S) -> io::Result<usize> {
            match *self {}
        }
    }
}
