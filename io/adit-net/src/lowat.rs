//! `SO_RCVLOWAT`: how much must have arrived before a socket counts as readable.
//!
//! A bulk transfer wakes its reader for every few segments; with a mark it is woken once for many.
//! A mark must never outlive the flow that it was set for: what is below it is not announced.

use std::io;

/// Sets the mark, in bytes; 1 is the system's default.
///
/// The system raises a receive buffer that is too small for a mark. Older kernels then leave a
/// window of just the mark, and the sender would stand still whenever it is reached: so room for two
/// is asked for first.
#[cfg(target_os = "linux")]
pub fn set_receive_mark(socket: &impl std::os::fd::AsFd, bytes: u32) -> io::Result<()> {
    let set = |bytes| crate::option::set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    if bytes > 1 {
        set(bytes.saturating_mul(2).min(i32::MAX.unsigned_abs()))?;
    }
    set(bytes)
}

/// Returns the mark, in bytes.
#[cfg(target_os = "linux")]
pub fn receive_mark(socket: &impl std::os::fd::AsFd) -> io::Result<u32> {
    crate::option::get(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT)
}

/// Other systems have no mark.
#[cfg(not(target_os = "linux"))]
pub fn set_receive_mark<S>(_: &S, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

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
