//! Where a server of shadowsocks-go listens: TCP and UDP are written apart there.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use adit_config::text::{Problem, format_duration, parse_duration};
use adit_wire::Host;

use crate::conversion_context::ConversionContext;
use crate::fields::{ObjectFields, OmitReasons};
use crate::server_entry::{self, format_seconds, read_objects};

const OMITTED_LISTENER_FIELDS: OmitReasons = &[(
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
pub(super) struct ListenTransports {
    pub(super) tcp: bool,
    pub(super) udp: bool,
}

/// Where a server listens, TCP and UDP of one address together.
pub(super) fn read_listen_addresses(
    fields: &mut ObjectFields<'_>,
    udp_idle: &mut Option<String>,
    clerk: &mut ConversionContext<'_>,
) -> Vec<((Option<Host>, u16), ListenTransports)> {
    // In the order of the addresses' texts, which a reader of the result can foresee.
    let mut found: BTreeMap<String, ((Option<Host>, u16), ListenTransports)> = BTreeMap::new();
    let mut add =
        |text: &str, path: &str, network: &str, udp: bool, clerk: &mut ConversionContext<'_>| {
            let Some((host, port)) = server_entry::parse_address(text, path, clerk) else {
                return;
            };
            let Some(port) = port else {
                let title = format!("`{path}` has no port");
                clerk.add_problem(Problem::without_place(title, "write `ADDRESS:PORT`"));
                return;
            };
            let host = host.or_else(|| match network.as_bytes().last() {
                Some(b'4') => Some(Host::Ip(Ipv4Addr::UNSPECIFIED.into())),
                Some(b'6') => Some(Host::Ip(Ipv6Addr::UNSPECIFIED.into())),
                _ => None,
            });
            let (_, carried) = found
                .entry(format!("{host:?} {port}"))
                .or_insert_with(|| ((host, port), ListenTransports::default()));
            if udp {
                carried.udp = true;
            } else {
                carried.tcp = true;
            }
        };
    let simple = fields.string_field("listen", clerk);
    let path = fields.field_path("listen");
    for (flag, udp) in [("enableTCP", false), ("enableUDP", true)] {
        let enabled = fields.bool_field(flag, clerk) == Some(true);
        if let Some(text) = simple.filter(|_| enabled) {
            add(text, &path, "", udp, clerk);
        }
    }
    if let Some(idle) = server_entry::read_seconds(fields, "natTimeoutSec", clerk) {
        *udp_idle = Some(format_seconds(idle));
    }
    for (list, udp) in [("tcpListeners", false), ("udpListeners", true)] {
        for mut listener in read_objects(fields, list, clerk) {
            let network = listener.string_field("network", clerk).unwrap_or_default();
            let path = listener.field_path("address");
            match listener.string_field("address", clerk) {
                Some(text) => add(text, &path, network, udp, clerk),
                None => {
                    let title = format!("`{path}` is missing");
                    clerk.add_problem(Problem::without_place(title, "write `ADDRESS:PORT`"));
                }
            }
            if let Some(text) = listener.string_field("natTimeout", clerk) {
                let zeros = text.replace("m0s", "m").replace("h0m", "h");
                match parse_duration(&zeros).filter(|idle| !idle.is_zero()) {
                    Some(idle) => *udp_idle = Some(format_duration(idle)),
                    None => {
                        let path = listener.field_path("natTimeout");
                        clerk.add_note(path, "not a time with one unit; left out");
                    }
                }
            }
            listener.note_unread(OMITTED_LISTENER_FIELDS, clerk);
        }
    }
    found.into_values().collect()
}
