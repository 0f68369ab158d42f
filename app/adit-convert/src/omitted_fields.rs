//! Fields of the classic JSON object that have no equivalent, and why.

use crate::fields::OmitReasons;

const CHOSEN_BY_ADIT: &str = "adit sets this itself";
const SERVICE_MANAGER: &str = "belongs to the service manager, such as systemd; left out";
const NAME_RESOLUTION: &str = "names are looked up by the system's resolver; left out";
const OUTGOING_INTERFACE: &str = "the system chooses the way out; left out";

pub(super) const OMITTED_FIELDS: OmitReasons = &[
    (
        &[
            "dscp",
            "keep_alive",
            "mptcp",
            "mtu",
            "no_delay",
            "outbound_udp_allow_fragmentation",
            "reuse_port",
            "tcp_incoming_rcvbuf",
            "tcp_incoming_sndbuf",
            "tcp_outgoing_rcvbuf",
            "tcp_outgoing_sndbuf",
            "udp_mtu",
        ],
        CHOSEN_BY_ADIT,
    ),
    (
        &["nofile", "use_syslog", "user", "workdir", "log", "runtime"],
        SERVICE_MANAGER,
    ),
    (&["dns", "dns_cache_size", "nameserver"], NAME_RESOLUTION),
    (
        &[
            "outbound_bind_addr",
            "outbound_bind_interface",
            "outbound_fwmark",
            "outbound_user_cookie",
            "local_ipv4_address",
            "local_ipv6_address",
        ],
        OUTGOING_INTERFACE,
    ),
    (
        &["balancer", "tcp_weight", "udp_weight"],
        "a group takes the first server that works, in the order of the list",
    ),
    (
        &["manager_address", "manager_port"],
        "`adit manager` is a command of its own; left out",
    ),
    (
        &["online_config"],
        "`adit client --subscribe URL` fetches it; left out",
    ),
    (
        &["auth"],
        "one-time authentication is dead and insecure; left out",
    ),
    (
        &["prefix"],
        "bytes before the salt are not written; left out",
    ),
    (
        &[
            "local_address",
            "local_port",
            "protocol",
            "tunnel_address",
            "locals",
        ],
        "belongs to a client; left out",
    ),
    (
        &["additional_ports", "additional_ports_only"],
        "users of a port stand in its `protocol_param`; left out",
    ),
    (
        &["speed_limit_per_con", "speed_limit_per_user"],
        "there is no speed limit; left out",
    ),
    (
        &["forbidden_ip", "forbidden_port"],
        "private destinations are refused unless `allow_private` names them; left out",
    ),
    (
        &["connect_verbose_info", "workers", "dns_ipv6", "udp_cache"],
        CHOSEN_BY_ADIT,
    ),
    (
        &[
            "authPass",
            "authUser",
            "autoBan",
            "connectTimeout",
            "dnsServer",
            "enabled",
            "group",
            "index",
            "isHideTips",
            "keepVisitTime",
            "localDnsServer",
            "logEnable",
            "nodeFeedAutoUpdate",
            "pacDirectGoProxy",
            "portMap",
            "proxyRuleMode",
            "proxyUserAgent",
            "random",
            "randomAlgorithm",
            "randomInGroup",
            "reconnectTimes",
            "remarks_base64",
            "sameHostForSameTarget",
            "serverSubscribes",
            "sysProxyMode",
            "token",
            "TTL",
        ],
        "belongs to the window program; left out",
    ),
    (
        &["udp_over_tcp", "server_udp_port", "udpport"],
        "UDP goes to the server's one port, as UDP; left out",
    ),
    (
        &["udp_max_associations", "ipv6_only", "tcp_tproxy"],
        "has no equivalent; left out",
    ),
    (
        &["security"],
        "replays are always detected and refused; left out",
    ),
];
