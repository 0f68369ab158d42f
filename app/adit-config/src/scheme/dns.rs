//! `dns://`: a DNS server whose answers follow the rules of its route.

use core::time::Duration;

use crate::schema::{
    EndpointRoles, FakeIpNets, FilePath, ParamKey, PositiveNumber, listener_param,
};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    AccessRules, AddressPreference, DnsListener, ListenerConfig, ListenerKind, PrivateAccess,
};
use crate::scheme::shared_keys;
use crate::text::{ConfigError, format_network};

/// The idle timeout of TCP connections (RFC 7766, section 6.2.3).
static IDLE: ParamKey<Duration> = ParamKey::new(
    "idle",
    Duration::from_secs(10),
    "A TCP connection without a query is closed after this time.",
);
static FAKE_IP: ParamKey<Option<FakeIpNets>> = ParamKey {
    name: "fake_ip",
    alias: None,
    default: None,
    default_note: "none",
    doc: "Answer with addresses of these networks, one for IPv4 and one for IPv6, such as `198.18.0.0/15`: every \
          listener of the process sends a request for such an address to its name, without a lookup.",
};
static STATE: ParamKey<Option<FilePath>> = ParamKey {
    name: shared_keys::STATE.name,
    alias: None,
    default: None,
    default_note: "in adit's state folder",
    doc: "File that keeps the names of `fake_ip` addresses across restarts.",
};
static MAX_CONNECTIONS: ParamKey<Option<PositiveNumber>> = ParamKey {
    name: shared_keys::MAX_CONNECTIONS.name,
    alias: None,
    default: Some(PositiveNumber(256)),
    default_note: "",
    doc: "Maximum number of simultaneous TCP connections. A client has at most a quarter of them.",
};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "dns",
    form: "dns://[HOST]:PORT",
    doc: "A DNS server, over UDP and TCP. It asks the servers of its route's `dns`; names that a rule of the route \
          rejects do not exist (NXDOMAIN).",
    roles: EndpointRoles::Listener,
    params: &[
        listener_param(&shared_keys::ALLOW_OPEN_PROXY),
        listener_param(&shared_keys::TCP),
        listener_param(&shared_keys::UDP),
        listener_param(&FAKE_IP),
        listener_param(&STATE),
        listener_param(&IDLE),
        listener_param(&MAX_CONNECTIONS),
    ],
    listen: build_listener,
    ..Scheme::BASE
};

/// Builds a DNS listener.
fn build_listener(builder: &mut EndpointBuilder<'_, '_>) -> Option<ListenerConfig> {
    builder.check_no_user();
    builder.check_no_target();
    let addr = builder.listen_addr();
    let open = builder.get(&shared_keys::ALLOW_OPEN_PROXY);
    let tcp = builder.get(&shared_keys::TCP);
    let udp = builder.get(&shared_keys::UDP);
    if !tcp && !udp {
        let span = builder.value_span(&shared_keys::UDP);
        builder.report_error(ConfigError::new(span, "both TCP and UDP are off"));
    }
    let fake_ip = builder.get(&FAKE_IP).map(|nets| nets.0);
    let state = builder.get(&STATE);
    let state = match (&fake_ip, state) {
        (None, None) => None,
        (None, Some(_)) => {
            let span = builder.key_span(&STATE);
            let flaw = ConfigError::new(span, "`state` keeps the addresses of `fake_ip`");
            builder.report_error(flaw.with_help("add `fake_ip=198.18.0.0/15`, or remove it"));
            None
        }
        (Some(_), Some(path)) => Some(builder.resolve_path(&path.0)),
        (Some(nets), None) => {
            let nets: Vec<String> = nets.iter().map(format_network).collect();
            let name = format!(
                "fake-ip-{}",
                nets.join("-").replace('/', "_").replace(':', ".")
            );
            Some(builder.state_path(&name)?)
        }
    };
    let idle = builder.get(&IDLE);
    let max_connections = builder.get(&MAX_CONNECTIONS).map(|count| count.0);
    let mut limits = builder.read_limits();
    limits.idle = idle;
    limits.max_connections = max_connections;
    let addr = addr?;
    if !addr.is_loopback() && !open {
        builder.report_error(open_resolver_error(builder, addr.port));
    }
    Some(ListenerConfig {
        addr,
        kind: ListenerKind::Dns(DnsListener {
            tcp,
            udp,
            fake_ip: fake_ip.unwrap_or_default(),
            state,
        }),
        limits,
        // It connects to no destinations.
        access: AccessRules {
            private: PrivateAccess::All,
        },
        prefer: AddressPreference::Auto,
        carrier: None,
        proxy_protocol: false,
        sniff: false,
    })
}

/// Returns the error of a listener that would answer everyone (SEC-E1): attackers send queries with the address of
/// their victim, which receives the longer answers.
fn open_resolver_error(builder: &EndpointBuilder<'_, '_>, port: u16) -> ConfigError {
    ConfigError::new(
        builder.endpoint().address,
        "refusing to be an open resolver: everyone who can reach this address could use it",
    )
    .with_label("not a loopback address")
    .with_help(format!("for this machine only: `dns://127.0.0.1:{port}`"))
    .with_help("for everyone, behind a firewall: `?allow_open_proxy=true`")
}
