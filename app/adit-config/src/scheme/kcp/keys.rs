//! The keys of KCP: one table for `+kcp` and `kcptun`.

use core::time::Duration;

use super::text::{Cc, Crypt, Mode};
use crate::schema::{Count, Key, Param, Seconds, SecretValue, Whole, both, hop as for_hop};

pub(crate) static KEY: Key<Option<SecretValue>> = Key::depends(
    "key",
    "the password of `ss` or `ssr`; for `kcptun` that of kcptun",
    "Secret for sealing datagrams: the secret itself, `@FILE` or `$NAME`. With `kcptun` it can \
     be written before the `@`.",
);
pub(crate) static CRYPT: Key<Option<Crypt>> = Key::depends(
    "crypt",
    "`aead`; for `kcptun` `aes`",
    "Encryption of datagrams. `aead` is for two adits: separate keys for each session, no replays, and \
     a client may change its address. Ciphers of kcptun: aes, aes-128, aes-192, aes-128-gcm, \
     salsa20, blowfish, twofish, cast5, 3des, tea, xtea, xor, sm4, none, null; of these only \
     aes-128-gcm authenticates.",
);
pub(crate) static KCP9: Key<bool> = Key::new(
    "kcp9",
    false,
    "With a cipher of kcptun: use a keyed checksum (HighwayHash) and a Cauchy matrix. Both ends must \
     be adit and use it; no other program supports it. `adit kcp --kcp9` is the same.",
);
pub(crate) static MODE: Key<Mode> = Key::new(
    "mode",
    Mode::Fast,
    "Latency profile: a flush every 40, 30, 20 or 10 ms, or as the next four keys say.",
);
pub(crate) static NODELAY: Key<Whole> = Key::new(
    "nodelay",
    Whole(0),
    "Short time-outs (1) or long ones (0), for `mode=manual`.",
);
pub(crate) static INTERVAL: Key<Whole> = Key::new(
    "interval",
    Whole(50),
    "Interval between flushes in milliseconds, 10 to 5000, for `mode=manual`.",
);
pub(crate) static RESEND: Key<Whole> = Key::new(
    "resend",
    Whole(0),
    "Number of later segments acknowledged before one is retransmitted; 0 waits for its time-out. For \
     `mode=manual`.",
);
pub(crate) static NC: Key<Option<Whole>> = Key::depends(
    "nc",
    "none; for `kcptun` 0",
    "kcptun's form of `cc`: 0 is `reno`, 1 is `off`. For `mode=manual` without `cc`.",
);
pub(crate) static CC: Key<Option<Cc>> = Key::depends(
    "cc",
    "auto; in `mode=manual` as `nc` says",
    "Congestion control in addition to the windows: pacing at a measured rate once the path is \
     overrun (`auto`) or always (`bbr`), the congestion window of KCP (`reno`), or none (`off`).",
);
pub(crate) static DATA: Key<Whole> = Key::new(
    "data",
    Whole(10),
    "Number of datagrams in a group of the error correction; 0 turns it off.",
)
.also("datashard");
pub(crate) static PARITY: Key<Whole> = Key::new(
    "parity",
    Whole(3),
    "Number of datagrams of a group that can be lost without retransmission; 0 turns the correction off.",
)
.also("parityshard");
pub(crate) static MTU: Key<Count> = Key::new(
    "mtu",
    Count(1350),
    "Maximum UDP payload in bytes, up to 1500.",
);
pub(crate) static SNDWND: Key<Option<Count>> = Key::depends(
    "sndwnd",
    "1024 as listener, 128 as hop",
    "Maximum number of segments in flight.",
);
pub(crate) static RCVWND: Key<Option<Count>> = Key::depends(
    "rcvwnd",
    "1024 as listener, 512 as hop",
    "Maximum number of segments received and not yet read.",
);
pub(crate) static ACKNODELAY: Key<bool> = Key::new(
    "acknodelay",
    false,
    "Acknowledge immediately instead of with the next flush.",
);
pub(crate) static RATE: Key<Whole> = Key::new(
    "rate",
    Whole(0),
    "Maximum send rate of a session in bytes per second; 0 means no limit.",
)
.also("ratelimit");
pub(crate) static QPP: Key<bool> = Key::new(
    "qpp",
    false,
    "Apply kcptun's Quantum Permutation Pads to each stream, with a cipher of kcptun. Must be the \
     same at both ends. It obscures the data and does not authenticate it.",
);
pub(crate) static QPPCOUNT: Key<Count> = Key::new(
    "qppcount",
    Count(61),
    "Number of QPP pads, 256 bytes each per direction; should be odd and at least 7. Must be the same at both ends.",
);
pub(crate) static COMP: Key<Option<bool>> = Key::depends(
    "comp",
    "false; for `kcptun` true",
    "Compress all streams with Snappy. Must be the same at both ends.",
);
pub(crate) static NOCOMP: Key<Option<bool>> = Key::depends(
    "nocomp",
    "the opposite of `comp`",
    "kcptun's form of `comp`: do not compress.",
);
pub(crate) static SMUX: Key<Count> = Key::new(
    "smux",
    Count(2),
    "Version of the multiplexer, 1 or 2. Must be the same at both ends; old versions of kcptun use 1.",
)
.also("smuxver");
pub(crate) static SMUXBUF: Key<Option<Count>> = Key::depends(
    "smuxbuf",
    "8388608 (8 MiB); for `kcptun` 4194304",
    "Maximum bytes received and not yet read in a session, up to 16 MiB.",
);
pub(crate) static STREAMBUF: Key<Option<Count>> = Key::depends(
    "streambuf",
    "4194304 (4 MiB); for `kcptun` 2097152",
    "Maximum bytes received and not yet read in a stream (smux 2), up to `smuxbuf`.",
);
pub(crate) static FRAMESIZE: Key<Count> = Key::new(
    "framesize",
    Count(8192),
    "Maximum size of a stream frame in bytes.",
);
pub(crate) static KEEPALIVE: Key<Seconds> = Key::new(
    "keepalive",
    Seconds(Duration::from_secs(10)),
    "Interval of keepalives in a session. Silence for three intervals, but at least 30s, ends it. A \
     number without a unit is in seconds.",
);
/// Maximum number of sessions of a hop.
pub(super) const MAX_CONN: usize = 64;
pub(crate) static CONN: Key<Count> = Key::new(
    "conn",
    Count(1),
    "Number of sessions kept open, up to 64; streams are distributed over them in turn.",
);
pub(crate) static EXPIRE: Key<Option<Seconds>> = Key::depends(
    "expire",
    "never",
    "Age at which a session is replaced and gets no new streams; 0 means never. A number without a \
     unit is in seconds.",
)
.also("autoexpire");
pub(crate) static LINGER: Key<Seconds> = Key::new(
    "linger",
    Seconds(Duration::from_secs(600)),
    "Maximum remaining time of a session that has expired. A number without a unit is in seconds.",
)
.also("scavengettl");

/// The keys of `+kcp` and of `kcptun`, in the order of the reference.
pub(crate) static PARAMS: [Param; 28] = [
    both(&KEY),
    both(&CRYPT),
    both(&KCP9),
    both(&MODE),
    both(&NODELAY),
    both(&INTERVAL),
    both(&RESEND),
    both(&NC),
    both(&CC),
    both(&DATA),
    both(&PARITY),
    both(&MTU),
    both(&SNDWND),
    both(&RCVWND),
    both(&ACKNODELAY),
    both(&RATE),
    both(&QPP),
    both(&QPPCOUNT),
    both(&COMP),
    both(&NOCOMP),
    both(&SMUX),
    both(&SMUXBUF),
    both(&STREAMBUF),
    both(&FRAMESIZE),
    both(&KEEPALIVE),
    for_hop(&CONN),
    for_hop(&EXPIRE),
    for_hop(&LINGER),
];
