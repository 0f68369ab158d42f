//! Addresses on which the server listens for the client: connections to any others are refused.

use core::net::IpAddr;

use super::{GlobalAnswer, GlobalRequest};
use crate::error::SshError;
use crate::wire::MessageReader;

/// Addresses and sockets on which the server has agreed to listen.
#[derive(Debug, Default)]
pub(super) struct GrantedForwards {
    addresses: Vec<(String, u16)>,
    paths: Vec<Vec<u8>>,
}

/// Change of [`GrantedForwards`] when the server grants a request.
#[derive(Debug)]
pub(super) enum ForwardChange {
    /// No change.
    Nothing,
    /// The server starts listening on the address.
    Listen { address: String, port: u16 },
    /// The server stops listening on the address.
    Stop { address: String, port: u16 },
    /// The server starts listening on a Unix socket.
    ListenPath(Vec<u8>),
    /// The server stops listening on a Unix socket.
    StopPath(Vec<u8>),
}

impl ForwardChange {
    pub(super) fn for_request(request: &GlobalRequest) -> Self {
        match request {
            GlobalRequest::TcpipForward { address, port } => Self::Listen {
                address: address.clone(),
                port: *port,
            },
            GlobalRequest::CancelTcpipForward { address, port } => Self::Stop {
                address: address.clone(),
                port: *port,
            },
            GlobalRequest::StreamlocalForward { path } => Self::ListenPath(path.clone()),
            GlobalRequest::CancelStreamlocalForward { path } => Self::StopPath(path.clone()),
            _ => Self::Nothing,
        }
    }
}

impl GrantedForwards {
    /// Applies a request that the server has granted; `data` is from the answer.
    pub(super) fn apply_granted(
        &mut self,
        change: ForwardChange,
        data: &[u8],
    ) -> Result<GlobalAnswer, SshError> {
        match change {
            ForwardChange::Nothing => return Ok(GlobalAnswer::Granted { data: data.into() }),
            ForwardChange::Listen { address, port: 0 } => {
                let mut r = MessageReader::new(data, "port of a forward");
                let port = u16::try_from(r.read_u32()?).map_err(|_| r.malformed_error())?;
                r.expect_end()?;
                self.addresses.push((address, port));
                return Ok(GlobalAnswer::Bound { port });
            }
            ForwardChange::Listen { address, port } => self.addresses.push((address, port)),
            ForwardChange::Stop { address, port } => {
                remove_first(&mut self.addresses, |(a, p)| (a, *p) == (&address, port));
            }
            ForwardChange::ListenPath(path) => self.paths.push(path),
            ForwardChange::StopPath(path) => remove_first(&mut self.paths, |p| *p == path),
        }
        Ok(GlobalAnswer::Granted { data: data.into() })
    }

    /// True if a connection to this address may be opened.
    pub(super) fn allows_address(&self, address: &str, port: u16) -> bool {
        let mut forwards = self.addresses.iter();
        forwards.any(|(asked, p)| *p == port && covers_address(asked, address))
    }

    /// True if a connection to this socket may be opened.
    pub(super) fn allows_path(&self, path: &[u8]) -> bool {
        self.paths.iter().any(|p| p == path)
    }
}

fn remove_first<T>(all: &mut Vec<T>, is_it: impl FnMut(&T) -> bool) {
    if let Some(place) = all.iter().position(is_it) {
        all.swap_remove(place);
    }
}

/// True if `asked` includes the address `connected` (RFC 4254 section 7.1): servers report the
/// requested address, or the one that a client has connected to.
fn covers_address(asked: &str, connected: &str) -> bool {
    if asked.eq_ignore_ascii_case(connected) {
        return true;
    }
    let ip = connected.parse::<IpAddr>().map(|ip| ip.to_canonical());
    if asked.eq_ignore_ascii_case("localhost") {
        return ip.is_ok_and(|ip| ip.is_loopback());
    }
    match asked.parse::<IpAddr>() {
        Ok(any) if any.is_unspecified() => true,
        Ok(one) => ip == Ok(one.to_canonical()),
        Err(_) => asked.is_empty() || asked == "*",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_covers_what_the_rfc_says() {
        for (asked, connected, yes) in [
            ("", "192.0.2.1", true),
            ("0.0.0.0", "", true),
            ("::", "2001:db8::1", true),
            ("localhost", "127.0.0.1", true),
            ("localhost", "::1", true),
            ("LOCALHOST", "localhost", true),
            ("localhost", "192.0.2.1", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("127.0.0.1", "localhost", false),
            ("192.0.2.1", "192.0.2.2", false),
            ("a.example", "A.example", true),
            ("a.example", "192.0.2.1", false),
        ] {
            assert_eq!(covers_address(asked, connected), yes, "{asked} {connected}");
        }
    }

    #[test]
    fn a_forward_lasts_from_the_grant_to_the_cancel() {
        let mut forwards = GrantedForwards::default();
        let address = || "localhost".to_owned();
        let listen = |port| ForwardChange::Listen {
            address: address(),
            port,
        };
        let bound = forwards
            .apply_granted(listen(0), &[0, 0, 0x12, 0x34])
            .unwrap();
        assert_eq!(bound, GlobalAnswer::Bound { port: 0x1234 });
        assert!(
            forwards.allows_address("localhost", 0x1234)
                && !forwards.allows_address("localhost", 0x1235)
        );
        assert!(forwards.apply_granted(listen(0), &[0, 1, 0, 0]).is_err());
        assert!(forwards.apply_granted(listen(0), &[]).is_err());
        let leave = ForwardChange::Stop {
            address: address(),
            port: 0x1234,
        };
        forwards.apply_granted(leave, &[]).unwrap();
        assert!(!forwards.allows_address("localhost", 0x1234));
    }
}
