//! Every key that more than one table can have, declared once.

use core::net::IpAddr;
use core::time::Duration;

use crate::schema::{Count, FilePath, Key, Tristate, Wait};
use crate::scheme::typed::{PluginMode, Prefer, Private, RejectPolicy, Restart, UdpWay};
use crate::text::PluginText;

// Who may use a listener, and for what.

pub(crate) static ALLOW_OPEN_PROXY: Key<bool> = Key::new(
    "allow_open_proxy",
    false,
    "Serve everyone who reaches a non-loopback address, without users.",
);
pub(crate) static USERS: Key<Option<FilePath>> = Key {
    name: "users",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "File of users, one `user:password` a line; besides the user of the URL itself.",
};
pub(crate) static ALLOW_PRIVATE: Key<Option<Private>> = Key {
    name: "allow_private",
    alias: None,
    default: None,
    otherwise: "all on loopback without a key, else none",
    doc: "Private destinations that may be reached: networks, `all` or `none`.",
};

// Limits.

pub(crate) static HANDSHAKE: Key<Duration> = Key::new(
    "handshake",
    Duration::from_secs(10),
    "Time from accept to the complete request.",
);
pub(crate) static DIAL: Key<Duration> = Key::new(
    "dial",
    Duration::from_secs(10),
    "Time to reach the next server, or the destination.",
);
pub(crate) static IDLE: Key<Duration> = Key::new(
    "idle",
    Duration::from_secs(3600),
    "A connection without a byte in either direction is closed after this time.",
);
pub(crate) static HALF_CLOSE_IDLE: Key<Duration> = Key::new(
    "half_close_idle",
    Duration::from_secs(120),
    "The same, once one side has finished.",
);
pub(crate) static UDP_IDLE: Key<Duration> = Key::new(
    "udp_idle",
    Duration::from_secs(300),
    "A UDP association without a packet is dropped after this time.",
);
pub(crate) static MAX_CONNECTIONS: Key<Option<Count>> = Key {
    name: "max_connections",
    alias: None,
    default: None,
    otherwise: "by the descriptor limit",
    doc: "Connections at the same time; the oldest without a request makes room for a further \
          one, which is closed if there is none.",
};

pub(crate) static PROXY_PROTOCOL: Key<bool> = Key::new(
    "proxy_protocol",
    false,
    "A proxy of this machine (HAProxy, nginx) brings the connections and says before each whose it is: PROXY protocol, version 2.",
);

// How to reach destinations.

pub(crate) static PREFER: Key<Prefer> = Key::new(
    "prefer",
    Prefer::Auto,
    "Address family that is tried first, or alone.",
);
pub(crate) static FIRST_WAIT: Key<Wait> = Key::new(
    "first_wait",
    Wait(Duration::from_millis(250)),
    "Longest wait for first bytes that can travel with the request.",
);

pub(crate) static FAST_OPEN: Key<bool> = Key::new(
    "fast_open",
    false,
    "First bytes travel with the SYN (TCP Fast Open), which saves a round trip; both ends and their systems have to allow it, and some networks lose such packets. Of hops, the first.",
);

// What is offered.

pub(crate) static UDP: Key<bool> = Key::new("udp", true, "Carry UDP.");
pub(crate) static TCP: Key<bool> = Key::new("tcp", true, "Carry TCP.");
pub(crate) static BIND: Key<bool> = Key::new("bind", false, "Offer the SOCKS command BIND.");
pub(crate) static SOCKS4: Key<Tristate> = Key::new(
    "socks4",
    Tristate::Auto,
    "Speak SOCKS4 and SOCKS4a too; `auto` means: unless there are users, whom SOCKS4 cannot check.",
);
pub(crate) static UDP_ADVERTISE: Key<Option<IpAddr>> = Key {
    name: "udp_advertise",
    alias: None,
    default: None,
    otherwise: "address of the control connection",
    doc: "Address that clients are told to send UDP to; for servers behind address translation.",
};
pub(crate) static UDP_REASSEMBLY: Key<bool> = Key::new(
    "udp_reassembly",
    false,
    "Put fragments of SOCKS5 datagrams together instead of dropping them.",
);
pub(crate) static FULL_CONE: Key<bool> = Key::new(
    "full_cone",
    false,
    "Give a client UDP from everyone, not only from destinations it has written to.",
);
pub(crate) static HIDE_BIND: Key<Tristate> = Key::new(
    "hide_bind",
    Tristate::Auto,
    "Answer with zeros instead of our outgoing address; `auto` means: unless on loopback.",
);
pub(crate) static VERBOSE_ERRORS: Key<bool> = Key::new(
    "verbose_errors",
    false,
    "Name the cause of a failure in an `X-Adit-Error` header.",
);

// Keyed listeners.

pub(crate) static REJECT: Key<RejectPolicy> = Key::new(
    "reject",
    RejectPolicy::Drain,
    "What a connection without the key sees: silence, reset, close, or another server.",
);
pub(crate) static RESTART: Key<Restart> = Key::new(
    "restart",
    Restart::Strict,
    "After a start, refuse requests made before it (they could be replays), or do not.",
);

// Shadowsocks alone.

pub(crate) static SS_USERS: Key<Option<FilePath>> = Key {
    name: "users",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "File of users: `{\"NAME\": \"KEY\"}`, `[{\"name\": …, \"password\": …}]`, or one \
          `NAME:KEY` a line. The key of the URL is then the server's identity key (2022 edition, \
          AES), or left out (AEAD edition).",
};
pub(crate) static RELAY: Key<Option<FilePath>> = Key {
    name: "relay",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "File of servers to relay to, by identity header: `[{\"server\": …, \"port\": …, \
          \"psk\": …}]`; a `name` is for logs. The key of the URL is then the relay's own.",
};
pub(crate) static STATE: Key<Option<FilePath>> = Key {
    name: "state",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "File in which the filter against replays of the AEAD edition, or of a legacy method, \
          is kept over restarts.",
};
pub(crate) static SS_UDP: Key<UdpWay> = Key::new(
    "udp",
    UdpWay::Native,
    "Carry UDP; `over-tcp` puts it into a connection (UDP-over-TCP, version 2; in ssr the original's own). A listener serves that always and opens a UDP socket for `true` alone.",
);
pub(crate) static PLUGIN: Key<Option<PluginText>> = Key {
    name: "plugin",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "Program that carries the bytes in a disguise (SIP003); `\\` before a `;` of its name.",
};
pub(crate) static PLUGIN_MODE: Key<PluginMode> = Key::new(
    "plugin_mode",
    PluginMode::TcpOnly,
    "What goes through the plugin; the rest goes around it.",
);
