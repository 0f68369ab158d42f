//! `ssh://`: a hop is a client of any SSH server, a listener is a server for streams only.

mod login;
mod text;

use core::time::Duration;
use std::path::PathBuf;

use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use crate::schema::{
    EndpointRoles, FilePath, ParamKey, PositiveNumber, SecretValue, Tristate, hop_param as for_hop,
    listener_param, shared_param,
};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::{
    Hop, HopKind, HostTrust, ListenerConfig, ListenerKind, ListenerLimits, ServerHop,
    SshAlgorithms, SshHop, SshServer, UdpTransport,
};
use crate::scheme::shared_keys;
use crate::text::ConfigError;
pub use login::DEFAULT_SSH_AGENT;
use text::{AlgorithmList, HostKeys, UnknownHostPolicy, all_names};

static KEY: ParamKey<Option<FilePath>> = ParamKey {
    name: "key",
    alias: None,
    default: None,
    default_note: "id_ed25519, id_ecdsa, id_rsa in ~/.ssh, or a password",
    doc: "Private key for the login, with the certificate in `FILE-cert.pub` if there is one.",
};
static PASSPHRASE: ParamKey<Option<SecretValue>> = ParamKey {
    name: "passphrase",
    alias: None,
    default: None,
    default_note: "none",
    doc: "Passphrase of the file of `key`.",
};
static AGENT: ParamKey<Tristate> = ParamKey::new(
    "agent",
    Tristate::Auto,
    "Use keys of the agent at SSH_AUTH_SOCK, or on Windows of OpenSSH's service. `auto` does so \
     unless there is `key` or a password.",
);
static KNOWN_HOSTS: ParamKey<Option<FilePath>> = ParamKey {
    name: "known_hosts",
    alias: None,
    default: None,
    default_note: "~/.ssh/known_hosts, /etc/ssh/ssh_known_hosts",
    doc: "File of known hosts and their keys.",
};
static HOST_KEY: ParamKey<HostKeys> = ParamKey {
    name: "host_key",
    alias: None,
    default: HostKeys::NotConfigured,
    default_note: "from known_hosts; a listener makes a key and stores it",
    doc: "For a hop: fingerprints of the server's key, separated by commas, instead of known_hosts. \
          For a listener: `@FILE` of its private key, which is created if it does not exist.",
};
static STRICT: ParamKey<UnknownHostPolicy> = ParamKey::new(
    "strict",
    UnknownHostPolicy::Yes,
    "Treatment of an unknown host: `yes` refuses it, `accept-new` accepts and stores its key. A \
     host whose key has changed is always refused.",
);
static AUTHORIZED_KEYS: ParamKey<Option<FilePath>> = ParamKey {
    name: "authorized_keys",
    alias: None,
    default: None,
    default_note: "none",
    doc: "File of the accepted keys, with OpenSSH's options (`from`, `permitopen`, \
          `expiry-time`, `cert-authority`…), read at every login. Without a user in the URL, a \
          `cert-authority` needs `principals=`.",
};
static CIPHER: ParamKey<AlgorithmList<Cipher>> = ParamKey {
    name: "cipher",
    alias: None,
    default: AlgorithmList(Vec::new()),
    default_note: "depends on this machine",
    doc: "Ciphers to offer, separated by commas, the preferred one first.",
};
static MAC: ParamKey<AlgorithmList<Mac>> = ParamKey {
    name: "mac",
    alias: None,
    default: AlgorithmList(Vec::new()),
    default_note: "all, UMAC first",
    doc: "MACs to offer, for ciphers without a tag.",
};
static KEX: ParamKey<AlgorithmList<Kex>> = ParamKey {
    name: "kex",
    alias: None,
    default: AlgorithmList(Vec::new()),
    default_note: "all, post-quantum first; listeners omit `diffie-hellman-…`",
    doc: "Key exchanges to offer.",
};
static COMPRESSION: ParamKey<bool> = ParamKey::new(
    "compression",
    false,
    "Compress with Deflate, if the peer does too.",
);
static KEEPALIVE: ParamKey<Duration> = ParamKey::new(
    "keepalive",
    Duration::from_secs(30),
    "Silence after which a keepalive request is sent to the peer; three unanswered requests end \
     the connection.",
);
static HANDSHAKE: ParamKey<Duration> = ParamKey::new(
    shared_keys::HANDSHAKE.name,
    Duration::from_secs(120),
    "Maximum time from accepting a connection until the user is logged in; typing a password takes time.",
);
static SESSIONS: ParamKey<PositiveNumber> = ParamKey::new(
    "sessions",
    PositiveNumber(1),
    "Number of connections kept open, up to 64; streams are distributed over them in turn. More connections use more processor cores.",
);
static UDP: ParamKey<UdpTransport> = ParamKey::new(
    "udp",
    UdpTransport::Off,
    "`over-tcp` sends UDP in streams, which requires adit as the server; SSH itself does not \
     carry UDP.",
);

pub(crate) static SCHEME: Scheme = Scheme {
    name: "ssh",
    form: "ssh://[USER[:PASSWORD]@][HOST][:PORT]",
    doc: "SSH (RFC 4251 to 4254). A hop is any SSH server that allows forwarding \
          (`direct-tcpip`): connections are kept open, and every stream is a channel on one of \
          them. A listener opens only channels to targets, for `ssh -D`, `-L`, `-W` and `-J` and \
          for adit: no shell, no command, no file transfer.",
    roles: EndpointRoles::Both,
    params: &[
        for_hop(&KEY),
        for_hop(&PASSPHRASE),
        for_hop(&AGENT),
        for_hop(&KNOWN_HOSTS),
        shared_param(&HOST_KEY),
        for_hop(&STRICT),
        listener_param(&AUTHORIZED_KEYS),
        listener_param(&shared_keys::USERS),
        shared_param(&CIPHER),
        shared_param(&MAC),
        shared_param(&KEX),
        shared_param(&COMPRESSION),
        shared_param(&KEEPALIVE),
        for_hop(&SESSIONS),
        for_hop(&UDP),
        listener_param(&shared_keys::ALLOW_PRIVATE),
        listener_param(&shared_keys::SNIFF),
        listener_param(&shared_keys::PREFER),
        listener_param(&HANDSHAKE),
        shared_param(&shared_keys::DIAL),
        listener_param(&shared_keys::IDLE),
        listener_param(&shared_keys::HALF_CLOSE_IDLE),
        listener_param(&shared_keys::UDP_IDLE),
        listener_param(&shared_keys::MAX_CONNECTIONS),
        listener_param(&shared_keys::PROXY_PROTOCOL),
    ],
    extra_lists: || {
        vec![
            ("Ciphers", all_names::<Cipher>()),
            ("MACs", all_names::<Mac>()),
            ("Key exchanges", all_names::<Kex>()),
        ]
    },
    listen: build_listener,
    hop: build_hop,
    ..Scheme::BASE
};

/// Default port of SSH.
pub(crate) const PORT: u16 = 22;
/// Maximum number of connections of a hop.
const MAX_SESSIONS: usize = 64;

/// Builds an SSH server.
fn build_listener(builder: &mut EndpointBuilder<'_, '_>) -> Option<ListenerConfig> {
    builder.check_no_target();
    let addr = builder.listen_addr();
    let offer = read_algorithms(builder);
    let host_key = match builder.get(&HOST_KEY) {
        HostKeys::File(path) => Some(builder.resolve_path(&path)),
        HostKeys::NotConfigured => builder.state_path("ssh_host_ed25519_key"),
        HostKeys::Pinned(_) => {
            let flaw = ConfigError::new(
                builder.value_span(&HOST_KEY),
                "a listener needs a private key, not a fingerprint",
            )
            .with_label("expected `@FILE`");
            builder.report_error(flaw);
            None
        }
    };
    let authorized_keys = builder.get(&AUTHORIZED_KEYS);
    let (user, users, fleet_users) = login::listener_users(builder, authorized_keys.is_some())?;
    let authorized_keys = match authorized_keys {
        None => None,
        Some(path) => Some(login::check_authorized_keys(
            builder,
            &path.0,
            &AUTHORIZED_KEYS,
        )?),
    };
    let limits = ListenerLimits {
        handshake: builder.get(&HANDSHAKE),
        ..builder.read_limits()
    };
    let proxy_protocol = builder.read_proxy_protocol(addr.as_ref(), false);
    let private = builder.get(&shared_keys::ALLOW_PRIVATE);
    let sniff = builder.get(&shared_keys::SNIFF);
    let prefer = builder.get(&shared_keys::PREFER);
    let keepalive = builder.get(&KEEPALIVE);
    let addr = addr?;
    Some(ListenerConfig {
        access: addr.access_rules(private, false),
        addr,
        kind: ListenerKind::Ssh(Box::new(SshServer {
            user,
            users,
            fleet_users,
            authorized_keys,
            host_key: host_key?,
            algorithms: offer,
            keepalive,
        })),
        limits,
        prefer,
        carrier: None,
        proxy_protocol,
        sniff,
    })
}

/// Builds an SSH client.
fn build_hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.check_no_target();
    let server = builder.server_with_default_port(Some(PORT));
    let offer = read_algorithms(builder);
    let udp = match builder.get(&UDP) {
        UdpTransport::Off => false,
        UdpTransport::OverTcp => true,
        UdpTransport::Native => {
            let flaw = ConfigError::new(builder.value_span(&UDP), "SSH does not carry UDP")
                .with_help("`?udp=over-tcp` sends it in streams, if the server is adit");
            builder.report_error(flaw);
            false
        }
    };
    let sessions = builder.get(&SESSIONS).0;
    if sessions > MAX_SESSIONS {
        let title = format!("a hop keeps at most {MAX_SESSIONS} connections");
        builder.report_error(ConfigError::new(builder.value_span(&SESSIONS), title));
    }
    let trust = read_trust(builder);
    let user = login::hop_user(builder);
    let means = login::hop_credentials(builder);
    let dial = builder.get(&shared_keys::DIAL);
    let keepalive = builder.get(&KEEPALIVE);
    let means = means?;
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Ssh(Box::new(SshHop {
            user: user?,
            password: means.password,
            keys: means.keys,
            agent: means.agent,
            trust: trust?,
            algorithms: offer,
            keepalive,
            sessions,
            udp,
        })),
        dial,
        carrier: None,
    }))
}

/// Reads the algorithms.
fn read_algorithms(builder: &mut EndpointBuilder<'_, '_>) -> SshAlgorithms {
    SshAlgorithms {
        kex: builder.get(&KEX).0,
        cipher: builder.get(&CIPHER).0,
        mac: builder.get(&MAC).0,
        compression: builder.get(&COMPRESSION),
    }
}

/// Reads the trust in host keys.
fn read_trust(builder: &mut EndpointBuilder<'_, '_>) -> Option<HostTrust> {
    let accept_new = builder.get(&STRICT) == UnknownHostPolicy::AcceptNew;
    let known = builder.get(&KNOWN_HOSTS);
    match builder.get(&HOST_KEY) {
        HostKeys::Pinned(pins) => {
            for key in [KNOWN_HOSTS.name, STRICT.name] {
                if let Some(pair) = builder.endpoint().param(key) {
                    let title = format!("`{key}` has no effect with `host_key`");
                    builder.report_error(ConfigError::new(pair.key.span, title));
                }
            }
            return Some(HostTrust::Pinned(pins));
        }
        HostKeys::File(_) => {
            let flaw = ConfigError::new(
                builder.value_span(&HOST_KEY),
                "a hop's `host_key` is a fingerprint, not a file",
            )
            .with_help(
                "`ssh-keygen -lf FILE.pub` prints it; `known_hosts=@FILE` names a file of hosts",
            );
            builder.report_error(flaw);
            return None;
        }
        HostKeys::NotConfigured => {}
    }
    let files = match known {
        Some(path) => vec![builder.resolve_path(&path.0)],
        None => vec![
            builder.resolve_path("~/.ssh/known_hosts"),
            PathBuf::from("/etc/ssh/ssh_known_hosts"),
        ],
    };
    Some(HostTrust::Known { files, accept_new })
}
