//! Keys that more than one table can have, each declared once.

use core::net::IpAddr;
use core::time::Duration;

use crate::schema::{
    FilePath, FleetIdentity, FleetWord, ParamKey, PositiveNumber, ShortWait, Tristate, UserSource,
};
use crate::scheme::endpoint_types::{
    AddressPreference, PluginMode, PrivateAccess, RejectPolicy, RestartPolicy, UdpTransport,
};
use crate::text::PluginText;

// Access to a listener, and through it to destinations.

pub(crate) static ALLOW_OPEN_PROXY: ParamKey<bool> = ParamKey::new(
    "allow_open_proxy",
    false,
    "Serve everyone who can reach a non-loopback address, without authentication.",
);
pub(crate) static USERS: ParamKey<Option<UserSource>> = ParamKey {
    name: "users",
    alias: None,
    default: None,
    default_note: "none",
    doc: "File of users, one `user:password` per line, in addition to the user in the URL. `fleet`: \
          the users of the fleet of `[fleet]`.",
};
pub(crate) static ALLOW_PRIVATE: ParamKey<Option<PrivateAccess>> = ParamKey {
    name: "allow_private",
    alias: None,
    default: None,
    default_note: "all on loopback without a key, otherwise none",
    doc: "Private destinations that clients may reach: networks, `all` or `none`.",
};

// Limits.

pub(crate) static HANDSHAKE: ParamKey<Duration> = ParamKey::new(
    "handshake",
    Duration::from_secs(10),
    "Maximum time from accepting a connection to its complete request.",
);
pub(crate) static DIAL: ParamKey<Duration> = ParamKey::new(
    "dial",
    Duration::from_secs(10),
    "Maximum time to connect to the next server or the destination.",
);
pub(crate) static IDLE: ParamKey<Duration> = ParamKey::new(
    "idle",
    Duration::from_secs(3600),
    "A connection without data in either direction is closed after this time.",
);
pub(crate) static HALF_CLOSE_IDLE: ParamKey<Duration> = ParamKey::new(
    "half_close_idle",
    Duration::from_secs(120),
    "Like `idle`, for a connection on which one side has finished sending.",
);
pub(crate) static UDP_IDLE: ParamKey<Duration> = ParamKey::new(
    "udp_idle",
    Duration::from_secs(300),
    "A UDP association without a packet is dropped after this time.",
);
pub(crate) static MAX_CONNECTIONS: ParamKey<Option<PositiveNumber>> = ParamKey {
    name: "max_connections",
    alias: None,
    default: None,
    default_note: "from the descriptor limit",
    doc: "Maximum number of simultaneous connections. At the limit, a new connection replaces the \
          oldest one that has sent no request yet; if there is none, the new one is closed.",
};

pub(crate) static PROXY_PROTOCOL: ParamKey<bool> = ParamKey::new(
    "proxy_protocol",
    false,
    "Connections come from a proxy on this machine (HAProxy, nginx), which sends the client's address first: PROXY protocol, version 2.",
);

pub(crate) static SNIFF: ParamKey<bool> = ParamKey::new(
    "sniff",
    false,
    "For requests of addresses, take the name that rules see from the client's first bytes (TLS, HTTP), up to 300 ms later. The client gets its success reply before the connection is open.",
);

// Connections to destinations.

pub(crate) static PREFER: ParamKey<AddressPreference> = ParamKey::new(
    "prefer",
    AddressPreference::Auto,
    "Address family to try first, or to use exclusively.",
);
pub(crate) static FIRST_WAIT: ParamKey<ShortWait> = ParamKey::new(
    "first_wait",
    ShortWait(Duration::from_millis(250)),
    "Maximum wait for the client's first bytes, which can then be sent together with the request.",
);

pub(crate) static FAST_OPEN: ParamKey<bool> = ParamKey::new(
    "fast_open",
    false,
    "Send the first bytes in the SYN (TCP Fast Open), which saves a round trip. Both ends and their systems must allow it, and some networks drop such packets. Among hops, only the first uses it.",
);

// Offered services.

pub(crate) static UDP: ParamKey<bool> = ParamKey::new("udp", true, "Carry UDP.");
pub(crate) static TCP: ParamKey<bool> = ParamKey::new("tcp", true, "Carry TCP.");
pub(crate) static BIND: ParamKey<bool> =
    ParamKey::new("bind", false, "Offer the SOCKS command BIND.");
pub(crate) static SOCKS4: ParamKey<Tristate> = ParamKey::new(
    "socks4",
    Tristate::Auto,
    "Accept SOCKS4 and SOCKS4a too. `auto` turns it off if there are users, since SOCKS4 has no passwords.",
);
pub(crate) static UDP_ADVERTISE: ParamKey<Option<IpAddr>> = ParamKey {
    name: "udp_advertise",
    alias: None,
    default: None,
    default_note: "address of the control connection",
    doc: "Address to which clients should send UDP, for servers behind address translation.",
};
pub(crate) static UDP_REASSEMBLY: ParamKey<bool> = ParamKey::new(
    "udp_reassembly",
    false,
    "Reassemble fragmented SOCKS5 datagrams instead of dropping them.",
);
pub(crate) static FULL_CONE: ParamKey<bool> = ParamKey::new(
    "full_cone",
    false,
    "Pass UDP from any address to a client, not only from destinations that it has contacted.",
);
pub(crate) static HIDE_BIND: ParamKey<Tristate> = ParamKey::new(
    "hide_bind",
    Tristate::Auto,
    "Send zeros in replies instead of the server's outgoing address. `auto` does so unless the listener is on loopback.",
);
pub(crate) static VERBOSE_ERRORS: ParamKey<bool> = ParamKey::new(
    "verbose_errors",
    false,
    "Report the cause of a failure in an `X-Adit-Error` header.",
);

// Keyed listeners: those that require a key.

pub(crate) static REJECT: ParamKey<RejectPolicy> = ParamKey::new(
    "reject",
    RejectPolicy::Drain,
    "Reaction to a connection without the key: silence, a reset, a close, or forwarding to another server.",
);
pub(crate) static RESTART: ParamKey<RestartPolicy> = ParamKey::new(
    "restart",
    RestartPolicy::Strict,
    "After a start, refuse (`strict`) or accept (`lenient`) requests made before it, which could be replays.",
);

// Shadowsocks and ShadowsocksR.

pub(crate) static SS_USERS: ParamKey<Option<UserSource>> = ParamKey {
    name: "users",
    alias: None,
    default: None,
    default_note: "none",
    doc: "File of users: `{\"NAME\": \"KEY\"}`, `[{\"name\": …, \"password\": …}]`, or one \
          `NAME:KEY` per line. The key in the URL is then the server's identity key (2022 edition, \
          AES), or omitted (AEAD edition). `fleet`: the users of the fleet of `[fleet]`, without a \
          key in the URL.",
};
pub(crate) static FLEET_USERS: ParamKey<Option<FleetWord>> = ParamKey {
    name: "users",
    alias: None,
    default: None,
    default_note: "those of `protocol_param`",
    doc: "`fleet`: the users of the fleet of `[fleet]`, by the numbers that `adit fleet` shows.",
};
pub(crate) static IDENTITY: ParamKey<FleetIdentity> = ParamKey::new(
    "identity",
    FleetIdentity::Node,
    "With `users=fleet`, the server's own key (2022 edition): one of this node, or `shared` by all nodes of the realm, for nodes behind one address.",
);
pub(crate) static RELAY: ParamKey<Option<FilePath>> = ParamKey {
    name: "relay",
    alias: None,
    default: None,
    default_note: "none",
    doc: "File of servers to relay to, chosen by identity header: `[{\"server\": …, \"port\": …, \
          \"psk\": …}]`; an optional `name` is for logs. The key in the URL is then the relay's own.",
};
pub(crate) static STATE: ParamKey<Option<FilePath>> = ParamKey {
    name: "state",
    alias: None,
    default: None,
    default_note: "none",
    doc: "File that keeps the replay filter of the AEAD edition, or of a legacy method, across \
          restarts.",
};
pub(crate) static SS_UDP: ParamKey<UdpTransport> = ParamKey::new(
    "udp",
    UdpTransport::Native,
    "Carry UDP. `over-tcp` sends it through a connection (UDP-over-TCP, version 2; in ssr the original's own form). A listener always accepts that form, and opens a UDP socket only for `true`.",
);
pub(crate) static PLUGIN: ParamKey<Option<PluginText>> = ParamKey {
    name: "plugin",
    alias: None,
    default: None,
    default_note: "none",
    doc: "Program that disguises the traffic (SIP003), with its options. Write `\\` before a `;` in its name.",
};
pub(crate) static PLUGIN_MODE: ParamKey<PluginMode> = ParamKey::new(
    "plugin_mode",
    PluginMode::TcpOnly,
    "Transports that go through the plugin; the others bypass it.",
);
