//! The keys of KCP: one table for `+kcp` and `kcptun`.

use core::time::Duration;

use super::text::{Cc, KcpCrypt, KcpMode};
use crate::schema::{
    ParamKey, PositiveNumber, SchemeParam, Seconds, SecretValue, WholeNumber, hop_param as for_hop,
    shared_param,
};

pub(crate) static KEY: ParamKey<Option<SecretValue>> = ParamKey::with_dynamic_default(
    "key",
    "the password of `ss` or `ssr`; for `kcptun` that of kcptun",
    "Secret for sealing datagrams: the secret itself, `@FILE` or `$NAME`. With `kcptun` it can \
     be written before the `@`.",
);
pub(crate) static CRYPT: ParamKey<Option<KcpCrypt>> = ParamKey::with_dynamic_default(
    "crypt",
    "`aead`; for `kcptun` `aes`",
    "Encryption of datagrams. `aead` is for two adits: separate keys for each session, no replays, and \
     a client may change its address. Ciphers of kcptun: aes, aes-128, aes-192, aes-128-gcm, \
     salsa20, blowfish, twofish, cast5, 3des, tea, xtea, xor, sm4, none, null; of these only \
     aes-128-gcm authenticates.",
);
pub(crate) static KCP9: ParamKey<bool> = ParamKey::new(
    "kcp9",
    false,
    "With a cipher of kcptun: use a keyed checksum (HighwayHash) and a Cauchy matrix. Both ends must \
     be adit and use it; no other program supports it. `adit kcp --kcp9` is the same.",
);
pub(crate) static MODE: ParamKey<KcpMode> = ParamKey::new(
    "mode",
    KcpMode::Fast,
    "Latency profile: a flush every 40, 30, 20 or 10 ms, or as the next four keys say.",
);
pub(crate) static NODELAY: ParamKey<WholeNumber> = ParamKey::new(
    "nodelay",
    WholeNumber(0),
    "Short time-outs (1) or long ones (0), for `mode=manual`.",
);
pub(crate) static INTERVAL: ParamKey<WholeNumber> = ParamKey::new(
    "interval",
    WholeNumber(50),
    "Interval between flushes in milliseconds, 10 to 5000, for `mode=manual`.",
);
pub(crate) static RESEND: ParamKey<WholeNumber> = ParamKey::new(
    "resend",
    WholeNumber(0),
    "Number of later segments acknowledged before one is retransmitted; 0 waits for its time-out. For \
     `mode=manual`.",
);
pub(crate) static NC: ParamKey<Option<WholeNumber>> = ParamKey::with_dynamic_default(
    "nc",
    "none; for `kcptun` 0",
    "kcptun's form of `cc`: 0 is `reno`, 1 is `off`. For `mode=manual` without `cc`.",
);
pub(crate) static CC: ParamKey<Option<Cc>> = ParamKey::with_dynamic_default(
    "cc",
    "auto; in `mode=manual` as `nc` says",
    "Congestion control in addition to the windows: pacing at a measured rate once the path is \
     overrun (`auto`) or always (`bbr`), the congestion window of KCP (`reno`), or none (`off`).",
);
pub(crate) static DATA: ParamKey<WholeNumber> = ParamKey::new(
    "data",
    WholeNumber(10),
    "Number of datagrams in a group of the error correction; 0 turns it off.",
)
.with_alias("datashard");
pub(crate) static PARITY: ParamKey<WholeNumber> = ParamKey::new(
    "parity",
    WholeNumber(3),
    "Number of datagrams of a group that can be lost without retransmission; 0 turns the correction off.",
)
.with_alias("parityshard");
pub(crate) static MTU: ParamKey<PositiveNumber> = ParamKey::new(
    "mtu",
    PositiveNumber(1350),
    "Maximum UDP payload in bytes, up to 1500.",
);
/// Default windows, in segments: those of kcptun's server, and of its client. The two keys below name
/// them in their documentation.
pub(crate) const LISTENER_SNDWND: u32 = 1024;
pub(crate) const HOP_SNDWND: u32 = 128;
pub(crate) const LISTENER_RCVWND: u32 = 1024;
pub(crate) const HOP_RCVWND: u32 = 512;

pub(crate) static SNDWND: ParamKey<Option<PositiveNumber>> = ParamKey::with_dynamic_default(
    "sndwnd",
    "1024 as listener, 128 as hop",
    "Maximum number of segments in flight.",
);
pub(crate) static RCVWND: ParamKey<Option<PositiveNumber>> = ParamKey::with_dynamic_default(
    "rcvwnd",
    "1024 as listener, 512 as hop",
    "Maximum number of segments received and not yet read.",
);
pub(crate) static ACKNODELAY: ParamKey<bool> = ParamKey::new(
    "acknodelay",
    false,
    "Acknowledge immediately instead of with the next flush.",
);
pub(crate) static RATE: ParamKey<WholeNumber> = ParamKey::new(
    "rate",
    WholeNumber(0),
    "Maximum send rate of a session in bytes per second; 0 means no limit.",
)
.with_alias("ratelimit");
pub(crate) static QPP: ParamKey<bool> = ParamKey::new(
    "qpp",
    false,
    "Apply kcptun's Quantum Permutation Pads to each stream, with a cipher of kcptun. Must be the \
     same at both ends. It obscures the data and does not authenticate it.",
);
pub(crate) static QPPCOUNT: ParamKey<PositiveNumber> = ParamKey::new(
    "qppcount",
    PositiveNumber(61),
    "Number of QPP pads, 256 bytes each per direction; should be odd and at least 7. Must be the same at both ends.",
);
pub(crate) static COMP: ParamKey<Option<bool>> = ParamKey::with_dynamic_default(
    "comp",
    "false; for `kcptun` true",
    "Compress all streams with Snappy. Must be the same at both ends.",
);
pub(crate) static NOCOMP: ParamKey<Option<bool>> = ParamKey::with_dynamic_default(
    "nocomp",
    "the opposite of `comp`",
    "kcptun's form of `comp`: do not compress.",
);
pub(crate) static SMUX: ParamKey<PositiveNumber> = ParamKey::new(
    "smux",
    PositiveNumber(2),
    "Version of the multiplexer, 1 or 2. Must be the same at both ends; old versions of kcptun use 1.",
)
.with_alias("smuxver");
pub(crate) static SMUXBUF: ParamKey<Option<PositiveNumber>> = ParamKey::with_dynamic_default(
    "smuxbuf",
    "8388608 (8 MiB); for `kcptun` 4194304",
    "Maximum bytes received and not yet read in a session, up to 16 MiB.",
);
pub(crate) static STREAMBUF: ParamKey<Option<PositiveNumber>> = ParamKey::with_dynamic_default(
    "streambuf",
    "4194304 (4 MiB); for `kcptun` 2097152",
    "Maximum bytes received and not yet read in a stream (smux 2), up to `smuxbuf`.",
);
pub(crate) static FRAMESIZE: ParamKey<PositiveNumber> = ParamKey::new(
    "framesize",
    PositiveNumber(8192),
    "Maximum size of a stream frame in bytes.",
);
pub(crate) static KEEPALIVE: ParamKey<Seconds> = ParamKey::new(
    "keepalive",
    Seconds(Duration::from_secs(10)),
    "Interval of keepalives in a session. Silence for three intervals, but at least 30s, ends it. A \
     number without a unit is in seconds.",
);
/// Maximum number of sessions of a hop.
pub(super) const MAX_CONN: usize = 64;
pub(crate) static CONN: ParamKey<PositiveNumber> = ParamKey::new(
    "conn",
    PositiveNumber(1),
    "Number of sessions kept open, up to 64; streams are distributed over them in turn.",
);
pub(crate) static EXPIRE: ParamKey<Option<Seconds>> = ParamKey::with_dynamic_default(
    "expire",
    "never",
    "Age at which a session is replaced and gets no new streams; 0 means never. A number without a \
     unit is in seconds.",
)
.with_alias("autoexpire");
pub(crate) static LINGER: ParamKey<Seconds> = ParamKey::new(
    "linger",
    Seconds(Duration::from_secs(600)),
    "Maximum remaining time of a session that has expired. A number without a unit is in seconds.",
)
.with_alias("scavengettl");

/// The keys of `+kcp` and of `kcptun`, in the order of the reference.
pub(crate) static PARAMS: [SchemeParam; 28] = [
    shared_param(&KEY),
    shared_param(&CRYPT),
    shared_param(&KCP9),
    shared_param(&MODE),
    shared_param(&NODELAY),
    shared_param(&INTERVAL),
    shared_param(&RESEND),
    shared_param(&NC),
    shared_param(&CC),
    shared_param(&DATA),
    shared_param(&PARITY),
    shared_param(&MTU),
    shared_param(&SNDWND),
    shared_param(&RCVWND),
    shared_param(&ACKNODELAY),
    shared_param(&RATE),
    shared_param(&QPP),
    shared_param(&QPPCOUNT),
    shared_param(&COMP),
    shared_param(&NOCOMP),
    shared_param(&SMUX),
    shared_param(&SMUXBUF),
    shared_param(&STREAMBUF),
    shared_param(&FRAMESIZE),
    shared_param(&KEEPALIVE),
    for_hop(&CONN),
    for_hop(&EXPIRE),
    for_hop(&LINGER),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Setting;

    #[test]
    fn documented_windows_are_the_defaults() {
        let text = |listener, hop| format!("{listener} as listener, {hop} as hop");
        assert_eq!(SNDWND.default_text(), text(LISTENER_SNDWND, HOP_SNDWND));
        assert_eq!(RCVWND.default_text(), text(LISTENER_RCVWND, HOP_RCVWND));
    }
}
