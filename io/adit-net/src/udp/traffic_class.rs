//! The traffic class of outgoing datagrams.

#[cfg(not(windows))]
pub(super) use socket_options::set;
#[cfg(windows)]
pub(super) use unsupported::set;

#[cfg(not(windows))]
mod socket_options {
    use std::io;

    use socket2::SockRef;

    pub(in super::super) fn set(socket: SockRef<'_>, class: u32, v6: bool) -> io::Result<()> {
        if v6 {
            socket.set_tclass_v6(class)?;
            // For IPv4 through the same socket, which may support IPv6 alone.
            let _ = socket.set_tos_v4(class);
            return Ok(());
        }
        socket.set_tos_v4(class)
    }
}

#[cfg(windows)]
mod unsupported {
    use std::io;

    use socket2::SockRef;

    pub(in super::super) fn set(_: SockRef<'_>, _: u32, _: bool) -> io::Result<()> {
        let why = "on Windows, policies of the system alone mark datagrams";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}
