//! Where a server of shadowsocks-go listens: TCP and UDP are written apart there.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use adit_config::text::{Problem, read_duration, write_duration};
use adit_wire::Host;

use crate::clerk::Clerk;
use crate::fields::{Fields, Reasons};
use crate::server::{self, duration, objects};

const LISTENER: Reasons = &[(
    &[
        "fwmark",
        "trafficClass",
        "reusePort",
        "fastOpen",
        "fastOpenFallback",
        "fastOpenBacklog",
        "multipath",
        "deferAcceptSecs",
        "userTimeoutMsecs",
        "disableInitialPayloadWait",
        "initialPayloadWaitTimeout",
        "initialPayloadWaitBufferSize",
        "batchMode",
        "relayBatchSize",
        "serverRecvBatchSize",
        "sendChannelCapacity",
    ],
    "adit sets this itself",
)];

/// An address, and what listens there.
#[derive(Default)]
pub(super) struct Carried {
    pub(super) tcp: bool,
    pub(super) udp: bool,
}

/// Where a server listens, TCP and UDP of one address together.
pub(super) fn read(
    fields: &mut Fields<'_>,
    udp_idle: &mut Option<String>,
    clerk: &mut Clerk<'_>,
) -> Vec<((Option<Host>, u16), Carried)> {
    // In the order of the addresses' texts, which a reader of the result can foresee.
    let mut found: BTreeMap<String, ((Option<Host>, u16), Carried)> = BTreeMap::new();
    let mut add = |text: &str, path: &str, network: &str, udp: bool, clerk: &mut Clerk<'_>| {
        let Some((host, port)) = server::address(text, path, clerk) else {
            return;
        };
        let Some(port) = port else {
            let title = format!("`{path}` has no port");
            clerk.problem(Problem::without_place(title, "write `ADDRESS:PORT`"));
            return;
        };
        let host = host.or_else(|| match network.as_bytes().last() {
            Some(b'4') => Some(Host::Ip(Ipv4Addr::UNSPECIFIED.into())),
            Some(b'6') => Some(Host::Ip(Ipv6Addr::UNSPECIFIED.into())),
            _ => None,
        });
        let (_, carried) = found
            .entry(format!("{host:?} {port}"))
            .or_insert_with(|| ((host, port), Carried::default()));
        if udp {
            carried.udp = true;
        } else {
            carried.tcp = true;
        }
    };
    let simple = fields.text("listen", clerk);
    let path = fields.path("listen");
    for (flag, udp) in [("enableTCP", false), ("enableUDP", true)] {
        let enabled = fields.flag(flag, clerk) == Some(true);
        if let Some(text) = simple.filter(|_| enabled) {
            add(text, &path, "", udp, clerk);
        }
    }
    if let Some(idle) = server::seconds(fields, "natTimeoutSec", clerk) {
        *udp_idle = Some(duration(idle));
    }
    for (list, udp) in [("tcpListeners", false), ("udpListeners", true)] {
        for mut listener in objects(fields, list, clerk) {
            let network = listener.text("network", clerk).unwrap_or_default();
            let path = listener.path("address");
            match listener.text("address", clerk) {
                Some(text) => add(text, &path, network, udp, clerk),
                None => {
                    let title = format!("`{path}` is missing");
                    clerk.problem(Problem::without_place(title, "write `ADDRESS:PORT`"));
                }
            }
            if let Some(text) = listener.text("natTimeout", clerk) {
                let zeros = text.replace("m0s", "m").replace("h0m", "h");
                match read_duration(&zeros).filter(|idle| !idle.is_zero()) {
                    Some(idle) => *udp_idle = Some(write_duration(idle)),
                    None => {
                        let path = listener.path("natTimeout");
                        clerk.note(path, "not a time with one unit; left out");
                    }
                }
            }
            listener.finish(LISTENER, clerk);
        }
    }
    found.into_values().collect()
}
