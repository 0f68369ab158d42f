//! Requests to targets: a web server, a DNS server.

use adit_engine::probe::ProbeRequest;
use adit_wire::{Host, Target};

/// A web server and the HEAD request to it.
#[derive(Debug, Clone)]
pub(super) struct WebTarget {
    pub(super) target: Target,
    request: String,
}

impl WebTarget {
    pub(super) fn new(target: Target) -> Self {
        let host = match &target.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.as_str().to_owned(),
        };
        let request = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        Self { target, request }
    }

    pub(super) fn probe_request(&self) -> ProbeRequest<'_> {
        ProbeRequest::for_target(self.target.clone(), self.request.as_bytes(), b"HTTP/")
    }
}

/// Returns a query for the IPv4 address of `example.com` (RFC 1035 section 4.1).
pub(super) fn dns_query(id: u16) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(b"\x07example\x03com\x00\x00\x01\x00\x01");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_well_formed() {
        let query = dns_query(0x1234);
        assert_eq!(query.len(), 12 + 13 + 4);
        assert_eq!(query[..4], [0x12, 0x34, 1, 0]);
    }
}
