//! `ssh://`: a hop is a client of any SSH server, a listener is a server for streams only.

mod login;
mod text;

use core::time::Duration;
use std::path::PathBuf;

use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use crate::schema::{
    Count, EndpointRoles, FilePath, Key, SecretValue, Tristate, both, hop as for_hop, listener,
};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::keys;
use crate::scheme::typed::{
    Hop, HopKind, HostTrust, Limits, Listen, ListenKind, ServerHop, SshHop, SshOffer, SshServer,
    UdpWay,
};
use crate::text::Flaw;
use text::{Algorithms, HostKeys, Strict, names};

static KEY: Key<Option<FilePath>> = Key {
    name: "key",
    alias: None,
    default: None,
    otherwise: "id_ed25519, id_ecdsa, id_rsa in ~/.ssh, or a password",
    doc: "Private key for the login, with the certificate in `FILE-cert.pub` if there is one.",
};
static PASSPHRASE: Key<Option<SecretValue>> = Key {
    name: "passphrase",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "Passphrase of the file of `key`.",
};
static AGENT: Key<Tristate> = Key::new(
    "agent",
    Tristate::Auto,
    "Use keys of the agent at SSH_AUTH_SOCK. `auto` does so unless there is `key` or a \
     password.",
);
static KNOWN_HOSTS: Key<Option<FilePath>> = Key {
    name: "known_hosts",
    alias: None,
    default: None,
    otherwise: "~/.ssh/known_hosts, /etc/ssh/ssh_known_hosts",
    doc: "File of known hosts and their keys.",
};
static HOST_KEY: Key<HostKeys> = Key {
    name: "host_key",
    alias: None,
    default: HostKeys::Unwritten,
    otherwise: "from known_hosts; a listener makes a key and stores it",
    doc: "For a hop: fingerprints of the server's key, separated by commas, instead of known_hosts. \
          For a listener: `@FILE` of its private key, which is created if it does not exist.",
};
static STRICT: Key<Strict> = Key::new(
    "strict",
    Strict::Yes,
    "Treatment of an unknown host: `yes` refuses it, `accept-new` accepts and stores its key. A \
     host whose key has changed is always refused.",
);
static AUTHORIZED_KEYS: Key<Option<FilePath>> = Key {
    name: "authorized_keys",
    alias: None,
    default: None,
    otherwise: "none",
    doc: "File of the accepted keys, with OpenSSH's options (`from`, `permitopen`, \
          `expiry-time`, `cert-authority`…), read at every login. Without a user in the URL, a \
          `cert-authority` needs `principals=`.",
};
static CIPHER: Key<Algorithms<Cipher>> = Key {
    name: "cipher",
    alias: None,
    default: Algorithms(Vec::new()),
    otherwise: "depends on this machine",
    doc: "Ciphers to offer, separated by commas, the preferred one first.",
};
static MAC: Key<Algorithms<Mac>> = Key {
    name: "mac",
    alias: None,
    default: Algorithms(Vec::new()),
    otherwise: "all, UMAC first",
    doc: "MACs to offer, for ciphers without a tag.",
};
static KEX: Key<Algorithms<Kex>> = Key {
    name: "kex",
    alias: None,
    default: Algorithms(Vec::new()),
    otherwise: "all, post-quantum first; for a listener without `diffie-hellman-…`",
    doc: "Key exchanges to offer.",
};
static COMPRESSION: Key<bool> = Key::new(
    "compression",
    false,
    "Compress with Deflate, if the peer does too.",
);
static KEEPALIVE: Key<Duration> = Key::new(
    "keepalive",
    Duration::from_secs(30),
    "Silence after which a keepalive request is sent to the peer; three unanswered requests end \
     the connection.",
);
static HANDSHAKE: Key<Duration> = Key::new(
    keys::HANDSHAKE.name,
    Duration::from_mins(2),
    "Maximum time from accepting a connection until the user is logged in; typing a password takes time.",
);
static SESSIONS: Key<Count> = Key::new(
    "sessions",
    Count(1),
    "Number of connections kept open, up to 64; streams are distributed over them in turn. More connections use more processor cores.",
);
static UDP: Key<UdpWay> = Key::new(
    "udp",
    UdpWay::Off,
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
        both(&HOST_KEY),
        for_hop(&STRICT),
        listener(&AUTHORIZED_KEYS),
        listener(&keys::USERS),
        both(&CIPHER),
        both(&MAC),
        both(&KEX),
        both(&COMPRESSION),
        both(&KEEPALIVE),
        for_hop(&SESSIONS),
        for_hop(&UDP),
        listener(&keys::ALLOW_PRIVATE),
        listener(&keys::PREFER),
        listener(&HANDSHAKE),
        both(&keys::DIAL),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::UDP_IDLE),
        listener(&keys::MAX_CONNECTIONS),
        listener(&keys::PROXY_PROTOCOL),
    ],
    lists: || {
        vec![
            ("Ciphers", names::<Cipher>()),
            ("MACs", names::<Mac>()),
            ("Key exchanges", names::<Kex>()),
        ]
    },
    listen,
    hop,
    ..Scheme::BLANK
};

/// Default port of SSH.
pub(crate) const PORT: u16 = 22;
/// Maximum number of connections of a hop.
const MAX_SESSIONS: usize = 64;

/// Builds an SSH server.
fn listen(builder: &mut EndpointBuilder<'_, '_>) -> Option<Listen> {
    builder.no_target();
    let addr = builder.listen_addr();
    let offer = offer(builder);
    let host_key = match builder.get(&HOST_KEY) {
        HostKeys::File(path) => Some(builder.resolve(&path)),
        HostKeys::Unwritten => builder.state("ssh_host_ed25519_key"),
        HostKeys::Pinned(_) => {
            let flaw = Flaw::new(
                builder.value_span(&HOST_KEY),
                "a listener needs a private key, not a fingerprint",
            )
            .label("expected `@FILE`");
            builder.problem(flaw);
            None
        }
    };
    let authorized_keys = builder.get(&AUTHORIZED_KEYS);
    let (user, users) = login::users(builder, authorized_keys.is_some())?;
    let authorized_keys = match authorized_keys {
        None => None,
        Some(path) => Some(login::authorized(builder, &path.0, &AUTHORIZED_KEYS)?),
    };
    let limits = Limits {
        handshake: builder.get(&HANDSHAKE),
        ..builder.limits()
    };
    let proxy_protocol = builder.proxy_protocol(addr.as_ref(), false);
    let private = builder.get(&keys::ALLOW_PRIVATE);
    let prefer = builder.get(&keys::PREFER);
    let keepalive = builder.get(&KEEPALIVE);
    let addr = addr?;
    Some(Listen {
        access: addr.access(private, false),
        addr,
        kind: ListenKind::Ssh(Box::new(SshServer {
            user,
            users,
            authorized_keys,
            host_key: host_key?,
            offer,
            keepalive,
        })),
        limits,
        prefer,
        carried: None,
        proxy_protocol,
    })
}

/// Builds an SSH client.
fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    let server = builder.server_or(Some(PORT));
    let offer = offer(builder);
    let udp = match builder.get(&UDP) {
        UdpWay::Off => false,
        UdpWay::OverTcp => true,
        UdpWay::Native => {
            let flaw = Flaw::new(builder.value_span(&UDP), "SSH does not carry UDP")
                .help("`?udp=over-tcp` sends it in streams, if the server is adit");
            builder.problem(flaw);
            false
        }
    };
    let sessions = builder.get(&SESSIONS).0;
    if sessions > MAX_SESSIONS {
        let title = format!("a hop keeps at most {MAX_SESSIONS} connections");
        builder.problem(Flaw::new(builder.value_span(&SESSIONS), title));
    }
    let trust = trust(builder);
    let user = login::user(builder);
    let means = login::means(builder);
    let dial = builder.get(&keys::DIAL);
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
            offer,
            keepalive,
            sessions,
            udp,
        })),
        dial,
        carried: None,
    }))
}

/// Reads the algorithms.
fn offer(builder: &mut EndpointBuilder<'_, '_>) -> SshOffer {
    SshOffer {
        kex: builder.get(&KEX).0,
        cipher: builder.get(&CIPHER).0,
        mac: builder.get(&MAC).0,
        compression: builder.get(&COMPRESSION),
    }
}

/// Reads the trust in host keys.
fn trust(builder: &mut EndpointBuilder<'_, '_>) -> Option<HostTrust> {
    let accept_new = builder.get(&STRICT) == Strict::AcceptNew;
    let known = builder.get(&KNOWN_HOSTS);
    match builder.get(&HOST_KEY) {
        HostKeys::Pinned(pins) => {
            for key in [KNOWN_HOSTS.name, STRICT.name] {
                if let Some(pair) = builder.endpoint().param(key) {
                    let title = format!("`{key}` has no effect with `host_key`");
                    builder.problem(Flaw::new(pair.key.span, title));
                }
            }
            return Some(HostTrust::Pinned(pins));
        }
        HostKeys::File(_) => {
            let flaw = Flaw::new(
                builder.value_span(&HOST_KEY),
                "a hop's `host_key` is a fingerprint, not a file",
            )
            .help("`ssh-keygen -lf FILE.pub` prints it; `known_hosts=@FILE` names a file of hosts");
            builder.problem(flaw);
            return None;
        }
        HostKeys::Unwritten => {}
    }
    let files = match known {
        Some(path) => vec![builder.resolve(&path.0)],
        None => vec![
            builder.resolve("~/.ssh/known_hosts"),
            PathBuf::from("/etc/ssh/ssh_known_hosts"),
        ],
    };
    Some(HostTrust::Known { files, accept_new })
}
