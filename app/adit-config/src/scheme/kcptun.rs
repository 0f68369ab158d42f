//! `kcptun://`: a tunnel as kcptun has it, either end.

use core::time::Duration;

use adit_crypto::packet::{Check, PacketKind};
use adit_kcp_proto::Congestion;
use adit_wire::Time;

use crate::grammar::Syntax;
use crate::schema::{Count, EndpointRoles, Key, Whole, both, hop as for_hop, listener};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::typed::{Carried, Hop, HopKind, Kcp, Listen, PacketSeal, ServerHop};
use crate::scheme::{forward, kcp, keys};
use crate::text::{Flaw, Secret, WarningKind};

/// The password of kcptun where none is given.
const DEFAULT_KEY: &str = "it's a secrect";

static CRYPT: Key<PacketKind> = Key::new(
    "crypt",
    PacketKind::Aes,
    "Cipher: aes, aes-128, aes-192, aes-128-gcm, salsa20, blowfish, twofish, cast5, 3des, \
     tea, xtea, xor, sm4, none, null. Only aes-128-gcm authenticates.",
);
static NC: Key<Whole> = Key::new(
    "nc",
    Whole(0),
    "1 switches the congestion window off; for `mode=manual`.",
);
static DATASHARD: Key<Whole> = Key::new(
    "datashard",
    Whole(10),
    "Datagrams of a group of the error correction; 0 is none.",
);
static PARITYSHARD: Key<Whole> = Key::new(
    "parityshard",
    Whole(3),
    "How many of a group may be lost without being sent again; 0 is no correction.",
);
static RATELIMIT: Key<Whole> = Key::new(
    "ratelimit",
    Whole(0),
    "Bytes a second that a session may send; 0 is no limit.",
);
static NOCOMP: Key<bool> = Key::new(
    "nocomp",
    false,
    "Do not compress. Must be the same at both ends.",
);
static SMUXVER: Key<Count> = Key::new(
    "smuxver",
    Count(2),
    "Version of the multiplexer, 1 or 2. Must be the same at both ends; old kcptun has 1.",
);
static SMUXBUF: Key<Count> = Key::new(
    "smuxbuf",
    Count(4 << 20),
    "Bytes received and not read of a session at most.",
);
static STREAMBUF: Key<Count> = Key::new(
    "streambuf",
    Count(2 << 20),
    "The same of a stream (smux 2).",
);
static FRAMESIZE: Key<Count> = Key::new(
    "framesize",
    Count(8192),
    "Bytes of the largest frame of a stream.",
);
static KEEPALIVE: Key<Count> = Key::new("keepalive", Count(10), "Seconds between signs of life.");
static AUTOEXPIRE: Key<Whole> = Key::new(
    "autoexpire",
    Whole(0),
    "Seconds after which a session gets no new streams; 0 is never.",
);
static SCAVENGETTL: Key<Whole> = Key::new(
    "scavengettl",
    Whole(600),
    "Seconds that an expired session may go on.",
);

static QPP: Key<bool> = Key::new(
    "qpp",
    false,
    "kcptun's Quantum Permutation Pads over each stream. Must be the same at both ends; it \
     obscures, and does not authenticate.",
);
static QPPCOUNT: Key<Count> = Key::new(
    "qppcount",
    Count(61),
    "Pads of QPP, 256 bytes each way; an odd number of at least 7. Must be the same at both ends.",
);

pub(crate) static SCHEME: Scheme = Scheme {
    name: "kcptun",
    form: "kcptun://[KEY@][HOST]:PORT[/TARGET:PORT]",
    doc: "The tunnel of kcptun: streams over KCP that lead to one target, which the listener \
          names. As the last hop it belongs behind `tcp://HOST:PORT` without a target; hops \
          behind it speak with what its far end leads to. Names and defaults of keys are \
          kcptun's; `+kcp` is what two adits should use.",
    roles: EndpointRoles::Both,
    params: &[
        both(&CRYPT),
        both(&kcp::MODE),
        both(&kcp::NODELAY),
        both(&kcp::INTERVAL),
        both(&kcp::RESEND),
        both(&NC),
        both(&DATASHARD),
        both(&PARITYSHARD),
        both(&kcp::MTU),
        both(&kcp::SNDWND),
        both(&kcp::RCVWND),
        both(&kcp::ACKNODELAY),
        both(&RATELIMIT),
        both(&QPP),
        both(&QPPCOUNT),
        both(&NOCOMP),
        both(&SMUXVER),
        both(&SMUXBUF),
        both(&STREAMBUF),
        both(&FRAMESIZE),
        both(&KEEPALIVE),
        for_hop(&kcp::CONN),
        for_hop(&AUTOEXPIRE),
        for_hop(&SCAVENGETTL),
        listener(&keys::PREFER),
        both(&keys::DIAL),
        listener(&keys::FIRST_WAIT),
        listener(&keys::IDLE),
        listener(&keys::HALF_CLOSE_IDLE),
        listener(&keys::MAX_CONNECTIONS),
    ],
    syntax: Syntax {
        secret_alone: true,
        ..Syntax::PLAIN
    },
    listen,
    hop,
    ..Scheme::BLANK
};

fn listen(builder: &mut EndpointBuilder<'_, '_>) -> Option<Listen> {
    let kcp = read(builder);
    let mut listen = forward::listen(builder, true, false, true)?;
    listen.carried = Some(Carried::Kcp(Box::new(kcp?)));
    Some(listen)
}

fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<Hop> {
    builder.no_target();
    let kcp = read(builder);
    let server = builder.server();
    let dial = builder.get(&keys::DIAL);
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Far,
        dial,
        carried: Some(Carried::Kcp(Box::new(kcp?))),
    }))
}

fn read(builder: &mut EndpointBuilder<'_, '_>) -> Option<Kcp> {
    let kind = builder.get(&CRYPT);
    let endpoint = builder.endpoint();
    let password = match &endpoint.secret {
        Some(written) => builder.secret(&written.value, written.span)?,
        None => Secret::from(DEFAULT_KEY),
    };
    let seal = PacketSeal::Packets {
        kind,
        check: Check::Crc32,
        password,
    };
    let congestion = match (builder.get(&kcp::MODE), builder.get(&NC).0) {
        (kcp::text::Mode::Manual, 0) => Congestion::Reno,
        (kcp::text::Mode::Manual, _) => Congestion::Off,
        // What is overrun is found out and held back.
        _ => Congestion::Auto,
    };
    let arq = kcp::arq(builder, congestion);
    let (data, parity) = (builder.get(&DATASHARD).0, builder.get(&PARITYSHARD).0);
    let span = builder.value_span(&PARITYSHARD);
    let fec = kcp::shards(builder, data, parity, span);
    let smux = smux(builder)?;
    let qpp = qpp(builder, &seal);
    let expire = builder.get(&AUTOEXPIRE).0;
    let seconds = |n: u32| Duration::from_secs(n.into());
    let kcp = Kcp {
        kcptun: true,
        arq,
        mtu: builder.get(&kcp::MTU).0,
        fec: fec?,
        seal,
        smux,
        compress: !builder.get(&NOCOMP),
        sessions: kcp::sessions(builder),
        expire: (expire > 0).then(|| seconds(expire)),
        linger: seconds(builder.get(&SCAVENGETTL).0),
        rate: builder.get(&RATELIMIT).0,
        qpp: qpp?,
    };
    kcp::check_mtu(builder, kcp.mtu, kcp.overhead())?;
    kcp::clear(builder, &kcp.seal);
    Some(kcp)
}

/// The pads, if they are wanted; kcptun warns of the same.
#[expect(clippy::option_option, reason = "wrong, or none wanted")]
fn qpp(builder: &mut EndpointBuilder<'_, '_>, seal: &PacketSeal) -> Option<Option<u16>> {
    let (wanted, count) = (builder.get(&QPP), builder.get(&QPPCOUNT).0);
    let span = builder.value_span(&QPPCOUNT);
    let about = |title: String| Flaw::new(span, title);
    if !wanted {
        if builder.endpoint().param(QPPCOUNT.name).is_some() {
            let about = about("`qppcount` is for `qpp=true`".to_owned()).label("ignored here");
            builder.warn(WarningKind::IgnoredKey, about);
        }
        return Some(None);
    }
    let Some(count) = u16::try_from(count).ok().filter(|count| *count > 0) else {
        builder.problem(about("QPP has from 1 to 65535 pads".to_owned()));
        return None;
    };
    if let PacketSeal::Packets { password, .. } = seal {
        for title in adit_crypto::packet::qpp::doubts(password.expose().len(), count) {
            builder.warn(WarningKind::LegacyCipher, about(title));
        }
    }
    Some(Some(count))
}

fn smux(builder: &mut EndpointBuilder<'_, '_>) -> Option<adit_smux_proto::Config> {
    let mut config = kcp::smux(builder, &SMUXVER)?;
    let bytes = |count: Count| u32::try_from(count.0).unwrap_or(u32::MAX);
    config.session_buffer = bytes(builder.get(&SMUXBUF));
    config.stream_buffer = bytes(builder.get(&STREAMBUF));
    config.max_frame = u16::try_from(builder.get(&FRAMESIZE).0).unwrap_or(u16::MAX);
    let keepalive = u64::try_from(builder.get(&KEEPALIVE).0).unwrap_or(u64::MAX);
    let keepalive = Duration::from_secs(keepalive.min(86_400));
    config.keepalive = Some(keepalive);
    config.timeout = config.timeout.max(keepalive * 3);
    if let Err(why) = adit_smux_proto::Session::new(config.clone(), Time(0)) {
        let span = builder.value_span(&SMUXBUF);
        builder.problem(Flaw::new(span, "smux cannot run with this").label(why.to_string()));
        return None;
    }
    Some(config)
}
