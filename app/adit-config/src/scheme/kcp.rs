//! `+kcp`: any dialect of streams over a small number of KCP sessions.

mod keys;
mod seal;
pub(crate) mod text;

use adit_kcp_proto::{Config, ConfigError as KcpError, CongestionControl};
use adit_shadowsocks::Edition;
use adit_smux_proto::{ConfigError as SmuxError, Role as SmuxRole, Version};
use adit_wire::{Time, narrow_int, usize_from};

use self::keys::{
    ACKNODELAY, CC, COMP, CONN, DATA, EXPIRE, FRAMESIZE, HOP_RCVWND, HOP_SNDWND, INTERVAL,
    KEEPALIVE, LINGER, LISTENER_RCVWND, LISTENER_SNDWND, MAX_CONN, MODE, MTU, NC, NOCOMP, NODELAY,
    PARITY, QPP, QPPCOUNT, RATE, RCVWND, RESEND, SMUX, SMUXBUF, SNDWND, STREAMBUF,
};
pub(crate) use self::keys::{CRYPT, KCP9, KEY, PARAMS};
use self::seal::warn_default_key;
pub(crate) use self::seal::{is_keyed, read_seal, warn_unprotected};
use self::text::{KcpCrypt, KcpMode};
use crate::schema::{EndpointRole, PositiveNumber, Typed};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Carrier;
use crate::scheme::endpoint_types::{
    AdoptedFromPeer, CarrierSettings, Hop, HopKind, KcpSettings, ListenerConfig, ListenerKind,
    PacketSeal, ServerHop, ShardCounts, SsRole, UdpTransport,
};
use crate::scheme::shared_keys as common;
use crate::text::{ConfigError, Secret, WarningKind};

/// The defaults that differ between `+kcp` and `kcptun`.
pub(crate) struct KcpDefaults {
    /// True for `kcptun`.
    pub(crate) kcptun: bool,
    /// Encryption of datagrams.
    pub(crate) crypt: KcpCrypt,
    /// The well-known password that is used if none is configured.
    pub(crate) password: Option<&'static str>,
    /// `nc` in `mode=manual`. If it is `None`, `cc` is `auto` in that mode, too.
    pub(crate) nc: Option<u32>,
    /// True if streams are compressed.
    pub(crate) compress: bool,
    /// Receive buffer of a session, in bytes.
    pub(crate) session_buffer: usize,
    /// Receive buffer of a stream, in bytes.
    pub(crate) stream_buffer: usize,
}

/// The defaults of `+kcp`.
const DEFAULTS: KcpDefaults = KcpDefaults {
    kcptun: false,
    crypt: KcpCrypt::Aead,
    password: None,
    nc: None,
    compress: false,
    // On a long and lossy link, received data waits in the buffer for retransmissions: 100 Mbit/s
    // over 100 ms need more than two MiB.
    session_buffer: 8 << 20,
    stream_buffer: 4 << 20,
};

pub(crate) static CARRIER: Carrier = Carrier {
    name: "kcp",
    doc: "Streams over a small number of KCP sessions: reliable UDP with forward error correction, \
          for lossy links. Both ends need the same `key`, `crypt`, `kcp9`, `smux` and `comp`. \
          UDP of the dialect does not go through KCP as datagrams: with `ss` it is sent in a stream \
          (UDP-over-TCP), other dialects carry no UDP.",
    params: &PARAMS,
    listen: add_to_listener,
    hop: add_to_hop,
};

/// Adds KCP to a listener.
fn add_to_listener(
    builder: &mut EndpointBuilder<'_, '_>,
    mut listen: ListenerConfig,
) -> Option<ListenerConfig> {
    check_no_plugin(builder, listen.kind.plugin().is_some());
    match &mut listen.kind {
        ListenerKind::Proxy(proxy) => {
            check_no_udp(builder);
            proxy.udp = false;
        }
        ListenerKind::ShadowsocksR(server) => {
            check_no_udp(builder);
            server.udp = false;
            if !server.tcp {
                builder.report_error(no_streams_error(builder));
            }
        }
        ListenerKind::Shadowsocks(server) => {
            if !server.tcp {
                builder.report_error(no_streams_error(builder));
            }
        }
        ListenerKind::Forward(_)
        | ListenerKind::Transparent(_)
        | ListenerKind::Ssh(_)
        | ListenerKind::Dns(_) => {}
    }
    let own = match &listen.kind {
        ListenerKind::Shadowsocks(server) => match &server.role {
            SsRole::Single(secret) => Some(secret),
            SsRole::Users { identity, .. } => identity.as_ref(),
            // It is not known before the fleet is.
            SsRole::Fleet { .. } => None,
            SsRole::Relay { identity, .. } => Some(identity),
        },
        ListenerKind::ShadowsocksR(server) => Some(&server.password),
        _ => None,
    };
    let own = own.cloned();
    let kcp = read_settings(builder, &DEFAULTS, own, listen.addr.port)?;
    listen.carrier = Some(CarrierSettings::Kcp(Box::new(kcp)));
    Some(listen)
}

/// Adds KCP to a hop.
fn add_to_hop(builder: &mut EndpointBuilder<'_, '_>, mut hop: ServerHop) -> Option<Hop> {
    check_no_plugin(builder, hop.kind.plugin().is_some());
    let mut own = None;
    match &mut hop.kind {
        HopKind::Socks5 { udp, .. } => {
            check_no_udp(builder);
            *udp = false;
        }
        HopKind::ShadowsocksR(ssr) => {
            check_no_udp(builder);
            ssr.udp = UdpTransport::Off;
            own = Some(ssr.password.expose());
        }
        HopKind::Shadowsocks {
            method,
            secret,
            udp,
            ..
        } => {
            // KCP occupies the UDP port of the server.
            if *udp == UdpTransport::Native {
                *udp = UdpTransport::OverTcp;
            }
            own = match method.edition() {
                // The server knows the first of the keys (SIP023).
                Edition::Aead2022 => secret.expose().split(':').next(),
                _ => Some(secret.expose()),
            };
        }
        HopKind::Socks4a { .. }
        | HopKind::Http { .. }
        | HopKind::Ssh(_)
        | HopKind::RemoteTarget => {}
    }
    let own = own.map(Secret::from);
    let kcp = read_settings(builder, &DEFAULTS, own, hop.server.port)?;
    hop.carrier = Some(CarrierSettings::Kcp(Box::new(kcp)));
    Some(Hop::Server(hop))
}

/// Reports `udp=true`: datagrams of these dialects would bypass KCP, in clear text.
fn check_no_udp(builder: &mut EndpointBuilder<'_, '_>) {
    let asked = builder.endpoint().param(common::UDP.name);
    if let Some(pair) = asked.filter(|pair| pair.value.value == "true") {
        let flaw = ConfigError::new(pair.value.span, "KCP cannot carry UDP of this dialect")
            .with_label("it would bypass the tunnel")
            .with_help("`ss+kcp://` sends UDP in a stream; `udp+fec://` carries UDP to one target");
        builder.report_error(flaw);
    }
}

/// Reports a plugin, which cannot be combined with KCP.
fn check_no_plugin(builder: &mut EndpointBuilder<'_, '_>, plugin: bool) {
    if plugin {
        let flaw = ConfigError::new(
            builder.key_span(&common::PLUGIN),
            "a plugin cannot be combined with KCP",
        );
        builder.report_error(flaw.with_help("remove one of them"));
    }
}

/// Returns the error of a listener that serves UDP only.
fn no_streams_error(builder: &EndpointBuilder<'_, '_>) -> ConfigError {
    let span = builder.value_span(&common::TCP);
    ConfigError::new(
        span,
        "KCP carries only streams, and `tcp=false` turns them off",
    )
}

/// Reads all keys of KCP. `own` is the secret that applies without `key`, `last_port` the end of the
/// range that begins with the port.
pub(crate) fn read_settings(
    builder: &mut EndpointBuilder<'_, '_>,
    defaults: &KcpDefaults,
    own: Option<Secret>,
    last_port: u16,
) -> Option<KcpSettings> {
    let keyed = own.is_some() && !defaults.kcptun;
    let own = own.or_else(|| defaults.password.map(Secret::from));
    let seal = read_seal(builder, defaults.crypt, own);
    let arq = read_arq(builder, defaults);
    let (data, parity) = (builder.get(&DATA).0, builder.get(&PARITY).0);
    let span = builder.value_span(&PARITY);
    let fec = read_shards(builder, data, parity, span);
    let smux = read_smux(builder, defaults);
    let compress = read_compression(builder, defaults);
    let (fec, seal, smux) = (fec?, seal?, smux?);
    let kcp = KcpSettings {
        kcptun: defaults.kcptun,
        arq,
        mtu: builder.get(&MTU).0,
        fec,
        smux,
        compress,
        sessions: read_sessions(builder),
        expire: builder
            .get(&EXPIRE)
            .map(|age| age.0)
            .filter(|age| !age.is_zero()),
        linger: builder.get(&LINGER).0,
        rate: builder.get(&RATE).0,
        qpp: read_qpp(builder, &seal)?,
        adopts: settings_to_adopt(builder, &seal),
        last_port,
        seal,
    };
    let span = builder.value_span(&MTU);
    check_mtu(builder, kcp.mtu, kcp.overhead(), span)?;
    if !keyed {
        match defaults.password {
            Some(known) if kcp.seal.is_confidential() && kcp.seal.password().expose() == known => {
                warn_default_key(builder);
            }
            _ => warn_unprotected(builder, &kcp.seal),
        }
    }
    Some(kcp)
}

/// Returns the settings that are not configured and are therefore adopted from the peer. Between two
/// adits none are.
fn settings_to_adopt(builder: &EndpointBuilder<'_, '_>, seal: &PacketSeal) -> AdoptedFromPeer {
    if matches!(seal, PacketSeal::Session(_)) {
        return AdoptedFromPeer::default();
    }
    AdoptedFromPeer {
        smux: builder.param(&SMUX).is_none(),
        comp: builder.param(&COMP).is_none() && builder.param(&NOCOMP).is_none(),
        fec: builder.param(&DATA).is_none() && builder.param(&PARITY).is_none(),
    }
}

/// True if streams are compressed. Two opposite keys can set it.
fn read_compression(builder: &mut EndpointBuilder<'_, '_>, defaults: &KcpDefaults) -> bool {
    if let (Some(comp), Some(nocomp)) = (builder.param(&COMP), builder.param(&NOCOMP)) {
        let later = comp.key.span.start.max(nocomp.key.span.start);
        let span = if later == comp.key.span.start {
            comp.key.span
        } else {
            nocomp.key.span
        };
        let flaw = ConfigError::new(span, "`comp` and `nocomp` set the same option")
            .with_label("one is the opposite of the other")
            .with_help("remove one of them");
        builder.report_error(flaw);
    }
    let opposite = builder.get(&NOCOMP).map(|nocomp| !nocomp);
    builder.get(&COMP).or(opposite).unwrap_or(defaults.compress)
}

/// Returns the number of pads: `None` if it is wrong, `Some(None)` without QPP. The warnings are those
/// of kcptun.
#[expect(clippy::option_option, reason = "wrong, or not configured")]
fn read_qpp(builder: &mut EndpointBuilder<'_, '_>, seal: &PacketSeal) -> Option<Option<u16>> {
    let (wanted, count) = (builder.get(&QPP), builder.get(&QPPCOUNT).0);
    let span = builder.value_span(&QPPCOUNT);
    let about = |title: String| ConfigError::new(span, title);
    if !wanted {
        if builder.param(&QPPCOUNT).is_some() {
            let about = about("`qppcount` needs `qpp=true`".to_owned()).with_label("ignored here");
            builder.add_warning(WarningKind::IgnoredKey, about);
        }
        return Some(None);
    }
    let PacketSeal::Packets { password, .. } = seal else {
        let flaw = ConfigError::new(builder.key_span(&QPP), "`qpp` is for ciphers of kcptun")
            .with_label("`crypt=aead` has no pads")
            .with_help("remove it: `aead` encrypts and authenticates everything");
        builder.report_error(flaw);
        return None;
    };
    let Some(count) = u16::try_from(count).ok().filter(|count| *count > 0) else {
        builder.report_error(about(
            "the number of QPP pads must be 1 to 65535".to_owned(),
        ));
        return None;
    };
    for title in adit_crypto::packet::qpp::weak_setting_warnings(password.expose().len(), count) {
        builder.add_warning(WarningKind::LegacyCipher, about(title));
    }
    Some(Some(count))
}

/// Returns the settings of the ARQ, by mode name or by numbers.
fn read_arq(builder: &mut EndpointBuilder<'_, '_>, defaults: &KcpDefaults) -> Config {
    let (mode, listens) = (builder.get(&MODE), builder.role() == EndpointRole::Listener);
    let named = mode.arq_config().unwrap_or_else(|| Config {
        nodelay: narrow_int(builder.get(&NODELAY).0.min(2)),
        interval_ms: builder.get(&INTERVAL).0,
        resend: u16::try_from(builder.get(&RESEND).0).unwrap_or(u16::MAX),
        ..Config::fast()
    });
    let nc = builder.param(&NC);
    if mode != KcpMode::Manual {
        let numbers = [&NODELAY, &INTERVAL, &RESEND].map(|key| builder.param(key));
        for pair in numbers.into_iter().chain([nc]).flatten() {
            let title = format!("`{}` is for `mode=manual`", pair.key.value);
            let about = ConfigError::new(pair.key.span, title).with_label("ignored here");
            builder.add_warning(WarningKind::IgnoredKey, about);
        }
    } else if let (Some(nc), Some(_)) = (nc, builder.param(&CC)) {
        let about = ConfigError::new(nc.key.span, "`cc` overrides `nc`").with_label("ignored here");
        builder.add_warning(WarningKind::IgnoredKey, about);
    }
    let nc = builder.get(&NC).map(|nc| nc.0).or(defaults.nc);
    let congestion = match (builder.get(&CC), mode, nc) {
        (Some(cc), ..) => cc.0,
        (None, KcpMode::Manual, Some(0)) => CongestionControl::Reno,
        (None, KcpMode::Manual, Some(_)) => CongestionControl::Off,
        // `Auto` measures whether the path is overrun and slows down.
        (None, ..) => CongestionControl::Auto,
    };
    let window = |count: Option<PositiveNumber>, listener, hop| match count {
        Some(count) => u32::try_from(count.0).unwrap_or(u32::MAX),
        None if listens => listener,
        None => hop,
    };
    let config = Config {
        congestion,
        send_window: window(builder.get(&SNDWND), LISTENER_SNDWND, HOP_SNDWND),
        recv_window: window(builder.get(&RCVWND), LISTENER_RCVWND, HOP_RCVWND),
        ack_nodelay: builder.get(&ACKNODELAY),
        ..named
    };
    if let Err(why) = config.check() {
        let span = match why {
            KcpError::SendWindow(_) => builder.value_span(&SNDWND),
            KcpError::RecvWindow { .. } => builder.value_span(&RCVWND),
            _ => builder.value_span(&INTERVAL),
        };
        builder.report_error(
            ConfigError::new(span, "KCP cannot run with this").with_label(why.to_string()),
        );
    }
    config
}

/// Returns the error correction: `None` if it is wrong, `Some(None)` if either number is 0.
#[expect(clippy::option_option, reason = "wrong, or not configured")]
pub(crate) fn read_shards(
    builder: &mut EndpointBuilder<'_, '_>,
    data: u32,
    parity: u32,
    span: crate::text::Span,
) -> Option<Option<ShardCounts>> {
    if data == 0 || parity == 0 {
        return Some(None);
    }
    if data.saturating_add(parity) > 256 {
        let flaw = ConfigError::new(
            span,
            "a group has at most 256 datagrams, including its parity",
        );
        builder.report_error(flaw);
        return None;
    }
    let count = |n: u32| usize_from(n);
    Some(Some(ShardCounts {
        data: count(data),
        parity: count(parity),
    }))
}

/// Checks that the MTU is within the limits of kcp-go and leaves space for a payload.
pub(crate) fn check_mtu(
    builder: &mut EndpointBuilder<'_, '_>,
    mtu: usize,
    overhead: usize,
    span: crate::text::Span,
) -> Option<()> {
    /// Minimum size of a KCP datagram, in bytes.
    const SHORTEST: usize = 50;
    let least = overhead + SHORTEST;
    if (least..=1500).contains(&mtu) {
        return Some(());
    }
    let flaw = ConfigError::new(span, format!("the MTU must be between {least} and 1500"));
    builder.report_error(flaw);
    None
}

/// Returns the number of sessions of a hop.
fn read_sessions(builder: &mut EndpointBuilder<'_, '_>) -> usize {
    let conn = builder.get(&CONN).0;
    if conn > MAX_CONN {
        let span = builder.value_span(&CONN);
        let title = format!("a hop keeps at most {MAX_CONN} sessions");
        builder.report_error(ConfigError::new(span, title));
    }
    conn
}

/// Returns the settings of smux for this end.
fn read_smux(
    builder: &mut EndpointBuilder<'_, '_>,
    defaults: &KcpDefaults,
) -> Option<adit_smux_proto::Config> {
    let version = match builder.get(&SMUX).0 {
        1 => Version::V1,
        2 => Version::V2,
        _ => {
            let span = builder.value_span(&SMUX);
            builder.report_error(ConfigError::new(span, "the version of smux must be 1 or 2"));
            return None;
        }
    };
    let end = match builder.role() {
        EndpointRole::Listener => SmuxRole::Server,
        EndpointRole::Hop => SmuxRole::Client,
    };
    let mut config = adit_smux_proto::Config::new(version, end);
    let bytes = |count: Option<PositiveNumber>, usual: usize| {
        u32::try_from(count.map_or(usual, |count| count.0)).unwrap_or(u32::MAX)
    };
    config.session_buffer = bytes(builder.get(&SMUXBUF), defaults.session_buffer);
    config.stream_buffer = bytes(builder.get(&STREAMBUF), defaults.stream_buffer);
    config.max_frame = u16::try_from(builder.get(&FRAMESIZE).0).unwrap_or(u16::MAX);
    let keepalive = builder.get(&KEEPALIVE).0;
    config.keepalive = Some(keepalive);
    config.timeout = config.timeout.max(keepalive * 3);
    if let Err(why) = adit_smux_proto::Session::new(config.clone(), Time(0)) {
        let span = match why {
            SmuxError::Keepalive => builder.value_span(&KEEPALIVE),
            SmuxError::StreamBuffer if builder.param(&STREAMBUF).is_some() => {
                builder.value_span(&STREAMBUF)
            }
            _ => builder.value_span(&SMUXBUF),
        };
        builder.report_error(
            ConfigError::new(span, "smux cannot run with this").with_label(why.to_string()),
        );
        return None;
    }
    Some(config)
}

/// Returns the name of a mode.
pub(crate) fn mode_name(config: &Config) -> String {
    KcpMode::of_config(config).write()
}
