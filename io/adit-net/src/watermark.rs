//! Watermarks of TCP sockets: `SO_RCVLOWAT`, how much must have arrived before a socket counts as readable,
//! and `TCP_NOTSENT_LOWAT`, how much may wait to be sent before it counts as full.
//!
//! A bulk transfer wakes its reader for every few segments; with a receive mark it is woken once for many.
//! A mark must never outlive the flow that it was set for: data below the mark is not announced.
//!
//! Data waiting in the kernel to be sent cannot be overtaken. Where small messages share a socket with
//! bulk, the unsent limit makes bulk wait before that queue. Data in flight that is not yet acknowledged
//! does not count, so a long fast link stays full.

use std::io;

/// Sets the receive mark, in bytes; 1 is the system's default.
///
/// The system enlarges a receive buffer that is too small for a mark. Older kernels then leave a window of
/// just the mark, and the sender would stall whenever it is reached: so space for two marks is requested
/// first.
///
/// # Errors
/// Errors of the system.
#[cfg(target_os = "linux")]
pub fn set_receive_mark(socket: &impl std::os::fd::AsFd, bytes: u32) -> io::Result<()> {
    let set = |bytes| {
        crate::socket_option::set_int_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
    };
    if bytes > 1 {
        set(bytes.saturating_mul(2).min(i32::MAX.unsigned_abs()))?;
    }
    set(bytes)
}

/// Returns the receive mark, in bytes.
///
/// # Errors
/// Errors of the system.
#[cfg(target_os = "linux")]
pub fn receive_mark(socket: &impl std::os::fd::AsFd) -> io::Result<u32> {
    crate::socket_option::int_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT)
}

/// Limits the data waiting in the socket to be sent, in bytes; 0 is the system's default, which usually
/// means no limit except the socket's buffer.
///
/// # Errors
/// Errors of the system.
#[cfg(target_os = "linux")]
pub fn set_unsent_limit(socket: &impl std::os::fd::AsFd, bytes: u32) -> io::Result<()> {
    socket2::SockRef::from(socket).set_tcp_notsent_lowat(bytes)
}

/// Returns the unsent limit, in bytes.
///
/// # Errors
/// Errors of the system.
#[cfg(target_os = "linux")]
pub fn unsent_limit(socket: &impl std::os::fd::AsFd) -> io::Result<u32> {
    socket2::SockRef::from(socket).tcp_notsent_lowat()
}

/// Returns [`Unsupported`](io::ErrorKind::Unsupported): this system has no such limit.
#[cfg(not(target_os = "linux"))]
pub fn set_unsent_limit<S>(_: &S, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns [`Unsupported`](io::ErrorKind::Unsupported): this system has no such mark.
#[cfg(not(target_os = "linux"))]
pub fn set_receive_mark<S>(_: &S, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    #[tokio::test]
    async fn no_more_waits_to_be_sent_than_the_limit() {
        const LIMIT: usize = 64 << 10;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut taken = Vec::new();
        for limit in [0, LIMIT] {
            let (near, (far, _)) =
                tokio::try_join!(TcpStream::connect(at), listener.accept()).unwrap();
            let bytes = u32::try_from(limit).unwrap();
            set_unsent_limit(&near, bytes).unwrap();
            assert_eq!(unsent_limit(&near).unwrap(), bytes);
            // Nothing is read: everything that does not fit the receiver's buffer waits.
            let mut bytes = 0;
            while timeout(Duration::from_millis(200), near.writable())
                .await
                .is_ok()
            {
                bytes += near.try_write(&[7; 16 << 10]).unwrap_or_default();
            }
            let waits = rustix::io::ioctl_fionread(&far).unwrap();
            taken.push(bytes - usize::try_from(waits).unwrap());
        }
        // One write may exceed the limit, and segments are whole.
        assert!(taken[1] <= LIMIT + (128 << 10), "{taken:?}");
        assert!(taken[0] > 2 * taken[1], "without a limit: {taken:?}");
    }

    #[tokio::test]
    async fn a_mark_holds_back_and_lets_go() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (mut near, (far, _)) =
            tokio::try_join!(TcpStream::connect(at), listener.accept()).unwrap();
        // A new socket counts as readable until a read has found nothing.
        assert!(far.try_read(&mut [0]).is_err());
        set_receive_mark(&far, 100_000).unwrap();
        assert_eq!(receive_mark(&far).unwrap(), 100_000);
        near.write_all(&[7; 9_999]).await.unwrap();
        let early = timeout(Duration::from_millis(100), far.readable()).await;
        assert!(early.is_err(), "a tenth of the mark was announced");
        set_receive_mark(&far, 1).unwrap();
        timeout(Duration::from_secs(5), far.readable())
            .await
            .expect("what is there is announced when the mark falls")
            .unwrap();
    }
}
