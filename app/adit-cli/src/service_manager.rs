//! Notifications to the service manager (`sd_notify(3)` of systemd).

use std::io;
use std::time::Duration;

/// Sends a state, such as `READY=1`, to the service manager. Returns false if there is none that waits for it.
///
/// # Errors
/// `NOTIFY_SOCKET` does not name a socket, or the system cannot send to it.
#[cfg(target_os = "linux")]
pub fn notify_service_manager(state: &str) -> io::Result<bool> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(false);
    };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(true)
}

/// Returns false: there is no such service manager on this system.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn notify_service_manager(_: &str) -> io::Result<bool> {
    Ok(false)
}

/// Returns the state that reports the begin of the end, which may take up to `time`, for [`notify_service_manager`]:
/// systemd would kill a service after 90 seconds otherwise.
#[must_use]
pub fn stopping_state(time: Duration) -> String {
    format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", time.as_micros())
}

/// Returns the state that reports the begin of a reload, for [`notify_service_manager`]. `READY=1` reports its end.
#[must_use]
pub fn reloading_state() -> String {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        format!(
            "RELOADING=1\nMONOTONIC_USEC={}",
            now.tv_sec * 1_000_000 + now.tv_nsec / 1000
        )
    }
    #[cfg(not(target_os = "linux"))]
    "RELOADING=1".to_owned()
}
