//! `+kcp`: any dialect of streams over a few sessions of KCP.

pub(crate) mod text;

use core::time::Duration;

use adit_crypto::packet::{Check, PacketKind};
use adit_kcp_proto::{Config, ConfigError};
use adit_shadowsocks::Edition;
use adit_smux_proto::{Role as End, Version};
use adit_wire::{narrow, usize_from};

use self::text::{Cc, Crypt, Mode};
use crate::schema::{Count, Key, Role, SecretValue, Typed, Whole, both, hop as for_hop};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Carrier;
use crate::scheme::keys;
use crate::scheme::typed::{
    Carried, Hop, HopKind, Kcp, Listen, ListenKind, PacketSeal, ServerHop, Shards, SsRole, UdpWay,
};
use crate::text::{Flaw, Secret, WarningKind};

pub(crate) static KEY: Key<Option<SecretValue>> = Key {
    name: "key",
    default: None,
    otherwise: "the password of `ss` and `ssr`",
    doc: "Secret from which datagrams are sealed: itself, `@FILE` or `$NAME`.",
};
pub(crate) static CRYPT: Key<Crypt> = Key::new(
    "crypt",
    Crypt::Aead,
    "How datagrams are sealed. `aead` is for two adits: keys of each session, no replays, and \
     a client may change its address. Ciphers of kcptun: aes, aes-128, aes-192, aes-128-gcm, \
     salsa20, blowfish, twofish, cast5, 3des, tea, xtea, xor, sm4, none, null; of these only \
     aes-128-gcm authenticates.",
);
pub(crate) static KCP9: Key<bool> = Key::new(
    "kcp9",
    false,
    "With a cipher of kcptun a keyed checksum (HighwayHash) and a matrix of its own (Cauchy): a \
     mode between two adits, which both must have. No other program knows it; `adit kcp \
     --kcp9` is the same.",
);
pub(crate) static MODE: Key<Mode> = Key::new(
    "mode",
    Mode::Fast,
    "How hasty it is: a flush every 40, 30, 20 or 10 ms, or what the next three keys say.",
);
pub(crate) static NODELAY: Key<Whole> = Key::new(
    "nodelay",
    Whole(0),
    "Hasty time-outs (1) or patient ones (0); for `mode=manual`.",
);
pub(crate) static INTERVAL: Key<Whole> = Key::new(
    "interval",
    Whole(50),
    "Milliseconds between flushes, 10 to 5000; for `mode=manual`.",
);
pub(crate) static RESEND: Key<Whole> = Key::new(
    "resend",
    Whole(0),
    "Later segments acknowledged before one is sent again, 0 waits for its time-out; for \
     `mode=manual`.",
);
static CC: Key<Cc> = Key::new(
    "cc",
    Cc(adit_kcp_proto::Congestion::Auto),
    "What holds the sender back besides the windows: a measured pace once it overruns the \
     path (`auto`) or always (`bbr`), the window of KCP (`reno`), nothing (`off`).",
);
static DATA: Key<Whole> = Key::new(
    "data",
    Whole(10),
    "Datagrams of a group of the error correction; 0 is none.",
);
static PARITY: Key<Whole> = Key::new(
    "parity",
    Whole(3),
    "How many of a group may be lost without being sent again; 0 is no correction.",
);
pub(crate) static MTU: Key<Count> = Key::new(
    "mtu",
    Count(1350),
    "Bytes of the largest UDP payload, at most 1500.",
);
pub(crate) static SNDWND: Key<Option<Count>> = Key {
    name: "sndwnd",
    default: None,
    otherwise: "1024 as listener, 128 as hop",
    doc: "Segments in flight at most.",
};
pub(crate) static RCVWND: Key<Option<Count>> = Key {
    name: "rcvwnd",
    default: None,
    otherwise: "1024 as listener, 512 as hop",
    doc: "Segments received and not read at most.",
};
pub(crate) static ACKNODELAY: Key<bool> = Key::new(
    "acknodelay",
    false,
    "Acknowledge at once, not with the next flush.",
);
static RATE: Key<Whole> = Key::new(
    "rate",
    Whole(0),
    "Bytes a second that a session may send; 0 is no limit.",
);
static SMUX: Key<Count> = Key::new("smux", Count(2), "Version of the multiplexer, 1 or 2.");
static COMP: Key<bool> = Key::new("comp", false, "Compress all streams with snappy.");
pub(crate) static CONN: Key<Count> = Key::new(
    "conn",
    Count(1),
    "Sessions that are kept, 64 at most; streams take turns.",
);
static KEEPALIVE: Key<Duration> = Key::new(
    "keepalive",
    Duration::from_secs(10),
    "How often a session shows that it lives; three times of silence end it, 30s at least.",
);
static EXPIRE: Key<Option<Duration>> = Key {
    name: "expire",
    default: None,
    otherwise: "never",
    doc: "Age at which a session gets no new streams and a fresh one begins.",
};

pub(crate) static CARRIER: Carrier = Carrier {
    name: "kcp",
    doc: "Streams over a few sessions of KCP: reliable UDP with forward error correction, for \
          links that lose. Both ends need the same `key`, `crypt`, `kcp9`, `smux` and `comp`. \
          What of the dialect is UDP does not go through KCP: with `ss` it rides in a stream \
          (UDP-over-TCP), with others there is none.",
    params: &[
        both(&KEY),
        both(&CRYPT),
        both(&KCP9),
        both(&MODE),
        both(&NODELAY),
        both(&INTERVAL),
        both(&RESEND),
        both(&CC),
        both(&DATA),
        both(&PARITY),
        both(&MTU),
        both(&SNDWND),
        both(&RCVWND),
        both(&ACKNODELAY),
        both(&RATE),
        both(&SMUX),
        both(&COMP),
        for_hop(&CONN),
        both(&KEEPALIVE),
        for_hop(&EXPIRE),
    ],
    listen,
    hop,
};

/// Sessions of a hop at most.
pub(crate) const MAX_CONN: usize = 64;
/// How long a session that has expired may go on, as with kcptun.
const LINGER: Duration = Duration::from_secs(600);

fn listen(builder: &mut EndpointBuilder<'_, '_>, mut listen: Listen) -> Option<Listen> {
    no_plugin(builder, listen.kind.plugin().is_some());
    match &mut listen.kind {
        ListenKind::Proxy(proxy) => {
            no_udp(builder);
            proxy.udp = false;
        }
        ListenKind::ShadowsocksR(server) => {
            no_udp(builder);
            server.udp = false;
            if !server.tcp {
                builder.problem(no_streams(builder));
            }
        }
        ListenKind::Shadowsocks(server) => {
            if !server.tcp {
                builder.problem(no_streams(builder));
            }
        }
        ListenKind::Forward(_) | ListenKind::Transparent(_) | ListenKind::Ssh(_) => {}
    }
    let own = match &listen.kind {
        ListenKind::Shadowsocks(server) => match &server.role {
            SsRole::Single(secret) => Some(secret),
            SsRole::Users { identity, .. } => identity.as_ref(),
            SsRole::Relay { identity, .. } => Some(identity),
        },
        ListenKind::ShadowsocksR(server) => Some(&server.password),
        _ => None,
    };
    let kcp = read(builder, own.map(|own| Secret::from(own.expose())))?;
    listen.carried = Some(Carried::Kcp(Box::new(kcp)));
    Some(listen)
}

fn hop(builder: &mut EndpointBuilder<'_, '_>, mut hop: ServerHop) -> Option<Hop> {
    no_plugin(builder, hop.kind.plugin().is_some());
    let mut own = None;
    match &mut hop.kind {
        HopKind::Socks5 { udp, .. } => {
            no_udp(builder);
            *udp = false;
        }
        HopKind::ShadowsocksR(ssr) => {
            no_udp(builder);
            ssr.udp = UdpWay::Off;
            own = Some(ssr.password.expose());
        }
        HopKind::Shadowsocks {
            method,
            secret,
            udp,
            ..
        } => {
            // KCP has the UDP port of the server.
            if *udp == UdpWay::Native {
                *udp = UdpWay::OverTcp;
            }
            own = match method.edition() {
                // The server knows the first of the keys (SIP023).
                Edition::Aead2022 => secret.expose().split(':').next(),
                _ => Some(secret.expose()),
            };
        }
        HopKind::Socks4a { .. } | HopKind::Http { .. } | HopKind::Ssh(_) | HopKind::Far => {}
    }
    let own = own.map(Secret::from);
    let kcp = read(builder, own)?;
    hop.carried = Some(Carried::Kcp(Box::new(kcp)));
    Some(Hop::Server(hop))
}

/// Datagrams of these dialects would go around KCP, and in clear.
fn no_udp(builder: &mut EndpointBuilder<'_, '_>) {
    let asked = builder.endpoint().param(keys::UDP.name);
    if let Some(pair) = asked.filter(|pair| pair.value.value == "true") {
        let flaw = Flaw::new(pair.value.span, "KCP carries no UDP of this dialect")
            .label("it would go around the tunnel")
            .help("`ss+kcp://` puts UDP into a stream; `udp+fec://` carries UDP to one target");
        builder.problem(flaw);
    }
}

fn no_plugin(builder: &mut EndpointBuilder<'_, '_>, plugin: bool) {
    if plugin {
        let flaw = Flaw::new(
            builder.key_span(&keys::PLUGIN),
            "a plugin and KCP cannot both carry the bytes",
        );
        builder.problem(flaw.help("leave one of them away"));
    }
}

fn no_streams(builder: &EndpointBuilder<'_, '_>) -> Flaw {
    let span = builder.value_span(&keys::TCP);
    Flaw::new(span, "KCP carries streams, and `tcp=false` leaves none")
}

fn read(builder: &mut EndpointBuilder<'_, '_>, own: Option<Secret>) -> Option<Kcp> {
    let keyed = own.is_some();
    let seal = seal(builder, own);
    let cc = builder.get(&CC).0;
    let arq = arq(builder, cc);
    let (data, parity) = (builder.get(&DATA).0, builder.get(&PARITY).0);
    let span = builder.value_span(&PARITY);
    let fec = shards(builder, data, parity, span);
    let mut smux = smux(builder, &SMUX)?;
    let keepalive = builder.get(&KEEPALIVE);
    // What is read over a link that is long and loses waits for what is sent again: 100 Mbit/s
    // over 100 ms need more than two MiB.
    (smux.stream_buffer, smux.session_buffer) = (4 << 20, 8 << 20);
    smux.keepalive = Some(keepalive);
    smux.timeout = smux.timeout.max(keepalive * 3);
    let kcp = Kcp {
        kcptun: false,
        arq,
        mtu: builder.get(&MTU).0,
        fec: fec?,
        seal: seal?,
        smux,
        compress: builder.get(&COMP),
        sessions: sessions(builder),
        expire: builder.get(&EXPIRE),
        linger: LINGER,
        rate: builder.get(&RATE).0,
        qpp: None,
    };
    check_mtu(builder, kcp.mtu, kcp.overhead())?;
    if !keyed {
        clear(builder, &kcp.seal);
    }
    Some(kcp)
}

/// Whether only those who have a key are understood.
pub(crate) fn is_keyed(builder: &mut EndpointBuilder<'_, '_>) -> bool {
    match builder.get(&CRYPT) {
        Crypt::Aead => true,
        Crypt::Packets(kind) => {
            builder.get(&KCP9) && kind != PacketKind::Null
                || !matches!(kind, PacketKind::None | PacketKind::Null)
        }
    }
}

/// How datagrams are sealed; without `key` from the secret of the dialect.
pub(crate) fn seal(
    builder: &mut EndpointBuilder<'_, '_>,
    own: Option<Secret>,
) -> Option<PacketSeal> {
    let crypt = builder.get(&CRYPT);
    let kcp9 = builder.get(&KCP9);
    let password = match builder.get(&KEY) {
        Some(written) => Some(builder.written_secret(&written, builder.value_span(&KEY))?),
        None => own.filter(|own| !own.expose().is_empty()),
    };
    if password.is_none() && is_keyed(builder) {
        let flaw = Flaw::new(
            builder.endpoint().address,
            "the key of the datagrams is missing",
        )
        .help("write `?key=SECRET`, `?key=@FILE` or `?key=$NAME`, the same at both ends")
        .help("`crypt=null` does without: everybody can read and change the traffic");
        builder.problem(flaw);
        return None;
    }
    let password = password.unwrap_or_default();
    Some(match crypt {
        Crypt::Aead => {
            if kcp9 {
                let about = Flaw::new(builder.key_span(&KCP9), "`kcp9` is for ciphers of kcptun");
                builder.warn(WarningKind::IgnoredKey, about.label("ignored with `aead`"));
            }
            PacketSeal::Session(password)
        }
        Crypt::Packets(kind) => PacketSeal::Packets {
            kind,
            check: if kcp9 {
                Check::HighwayHash
            } else {
                Check::Crc32
            },
            password,
        },
    })
}

/// The ARQ, by name or by numbers.
pub(crate) fn arq(
    builder: &mut EndpointBuilder<'_, '_>,
    congestion: adit_kcp_proto::Congestion,
) -> Config {
    let (mode, listens) = (builder.get(&MODE), builder.role() == Role::Listener);
    let named = mode.config().unwrap_or_else(|| Config {
        nodelay: narrow(builder.get(&NODELAY).0.min(2)),
        interval_ms: builder.get(&INTERVAL).0,
        resend: u16::try_from(builder.get(&RESEND).0).unwrap_or(u16::MAX),
        ..Config::fast()
    });
    if mode != Mode::Manual {
        for key in [&NODELAY, &INTERVAL, &RESEND] {
            if builder.endpoint().param(key.name).is_some() {
                let title = format!("`{}` is for `mode=manual`", key.name);
                let about = Flaw::new(builder.key_span(key), title).label("ignored here");
                builder.warn(WarningKind::IgnoredKey, about);
            }
        }
    }
    let window = |count: Option<Count>, listener, hop| match count {
        Some(count) => u32::try_from(count.0).unwrap_or(u32::MAX),
        None if listens => listener,
        None => hop,
    };
    let config = Config {
        congestion,
        send_window: window(builder.get(&SNDWND), 1024, 128),
        recv_window: window(builder.get(&RCVWND), 1024, 512),
        ack_nodelay: builder.get(&ACKNODELAY),
        ..named
    };
    if let Err(why) = config.check() {
        let span = match why {
            ConfigError::SendWindow(_) => builder.value_span(&SNDWND),
            ConfigError::RecvWindow { .. } => builder.value_span(&RCVWND),
            _ => builder.value_span(&INTERVAL),
        };
        builder.problem(Flaw::new(span, "KCP cannot run with this").label(why.to_string()));
    }
    config
}

/// The correction; none if either is 0.
#[expect(clippy::option_option, reason = "wrong, or none wanted")]
pub(crate) fn shards(
    builder: &mut EndpointBuilder<'_, '_>,
    data: u32,
    parity: u32,
    span: crate::text::Span,
) -> Option<Option<Shards>> {
    if data == 0 || parity == 0 {
        return Some(None);
    }
    if data.saturating_add(parity) > 256 {
        let flaw = Flaw::new(span, "a group has at most 256 datagrams with its parity");
        builder.problem(flaw);
        return None;
    }
    let count = |n: u32| usize_from(n);
    Some(Some(Shards {
        data: count(data),
        parity: count(parity),
    }))
}

/// Within the bounds of kcp-go, and with room for something.
pub(crate) fn check_mtu(
    builder: &mut EndpointBuilder<'_, '_>,
    mtu: usize,
    overhead: usize,
) -> Option<()> {
    /// The shortest KCP datagram that is worth sending.
    const SHORTEST: usize = 50;
    let least = overhead + SHORTEST;
    if (least..=1500).contains(&mtu) {
        return Some(());
    }
    let span = builder.value_span(&MTU);
    let flaw = Flaw::new(span, format!("the MTU must lie between {least} and 1500"));
    builder.problem(flaw);
    None
}

pub(crate) fn sessions(builder: &mut EndpointBuilder<'_, '_>) -> usize {
    let conn = builder.get(&CONN).0;
    if conn > MAX_CONN {
        let span = builder.value_span(&CONN);
        let title = format!("a hop keeps at most {MAX_CONN} sessions");
        builder.problem(Flaw::new(span, title));
    }
    conn
}

/// Streams of this end, in the version of the multiplexer that a key says.
pub(crate) fn smux(
    builder: &mut EndpointBuilder<'_, '_>,
    key: &Key<Count>,
) -> Option<adit_smux_proto::Config> {
    let version = match builder.get(key).0 {
        1 => Version::V1,
        2 => Version::V2,
        _ => {
            let span = builder.value_span(key);
            builder.problem(Flaw::new(span, "smux has the versions 1 and 2"));
            return None;
        }
    };
    let end = match builder.role() {
        Role::Listener => End::Server,
        Role::Hop => End::Client,
    };
    Some(adit_smux_proto::Config::new(version, end))
}

/// What is in the datagrams has no protection of its own.
pub(crate) fn clear(builder: &mut EndpointBuilder<'_, '_>, seal: &PacketSeal) {
    let span = builder.value_span(&CRYPT);
    let name = seal.name();
    if !seal.hides() {
        let about = Flaw::new(span, format!("`{name}` does not encrypt"))
            .label("everyone on the way can read and change the traffic");
        builder.warn(WarningKind::NoEncryption, about);
    } else if !seal.authenticates() {
        let about = Flaw::new(span, format!("`{name}` does not authenticate"))
            .label("who knows what is said can change it on the way")
            .help("`aead` does, between two adits; `aes-128-gcm` does where kcptun has it");
        builder.warn(WarningKind::LegacyCipher, about);
    }
}

/// The name of a mode.
pub(crate) fn mode_name(config: &Config) -> String {
    Mode::of(config).write()
}
