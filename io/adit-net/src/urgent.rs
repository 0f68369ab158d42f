//! TCP's urgent data (RFC 9293, section 3.8.5; RFC 6093): FTP's ABOR, telnet's break.
//!
//! A read stops before urgent data and `splice(2)` never passes it, so neither a short read nor `EAGAIN`
//! from a splice means that the socket is empty.

/// Returns true if the next byte is urgent data.
#[cfg(target_os = "linux")]
pub fn is_urgent_next(socket: &impl std::os::fd::AsFd) -> bool {
    crate::socket_option::is_at_mark(socket)
}

/// Returns true: it may be, so callers look at the socket once more.
#[cfg(not(target_os = "linux"))]
pub fn is_urgent_next<S>(_: &S) -> bool {
    true
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::is_urgent_next;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn it_is_seen_where_a_read_stops() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        assert!(!is_urgent_next(&far));
        let near = socket2::SockRef::from(&near);
        near.send(b"before").unwrap();
        near.send_out_of_band(b"!").unwrap();
        near.send(b"after").unwrap();
        let far_ref = socket2::SockRef::from(&far);
        far_ref.set_out_of_band_inline(true).unwrap();
        let mut heard = [0; 99];
        assert_eq!(far.read(&mut heard).unwrap(), 6);
        assert!(is_urgent_next(&far));
        far.read_exact(&mut heard[..6]).unwrap();
        assert_eq!(&heard[..6], b"!after");
        assert!(!is_urgent_next(&far));
    }
}
