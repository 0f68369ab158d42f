//! The keys of KCP, one table for `+kcp` and `kcptun`.

use core::time::Duration;

use super::text::{Cc, Crypt, Mode};
use crate::schema::{Count, Key, Param, Seconds, SecretValue, Whole, both, hop as for_hop};

pub(crate) static KEY: Key<Option<SecretValue>> = Key::depends(
    "key",
    "the password of `ss`, `ssr`; of `kcptun` kcptun's own",
    "Secret from which datagrams are sealed: itself, `@FILE` or `$NAME`. Of `kcptun` it can \
     stand before the `@`.",
);
pub(crate) static CRYPT: Key<Option<Crypt>> = Key::depends(
    "crypt",
    "`aead`; of `kcptun` `aes`",
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
    "How hasty it is: a flush every 40, 30, 20 or 10 ms, or what the next four keys say.",
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
pub(crate) static NC: Key<Option<Whole>> = Key::depends(
    "nc",
    "none; of `kcptun` 0",
    "kcptun's way to say `cc`: 0 is `reno`, 1 is `off`; for `mode=manual` without `cc`.",
);
pub(crate) static CC: Key<Option<Cc>> = Key::depends(
    "cc",
    "auto, or in `mode=manual` what `nc` says",
    "What holds the sender back besides the windows: a measured pace once it overruns the \
     path (`auto`) or always (`bbr`), the window of KCP (`reno`), nothing (`off`).",
);
pub(crate) static DATA: Key<Whole> = Key::new(
    "data",
    Whole(10),
    "Datagrams of a group of the error correction; 0 is none.",
)
.also("datashard");
pub(crate) static PARITY: Key<Whole> = Key::new(
    "parity",
    Whole(3),
    "How many of a group may be lost without being sent again; 0 is no correction.",
)
.also("parityshard");
pub(crate) static MTU: Key<Count> = Key::new(
    "mtu",
    Count(1350),
    "Bytes of the largest UDP payload, at most 1500.",
);
pub(crate) static SNDWND: Key<Option<Count>> = Key::depends(
    "sndwnd",
    "1024 as listener, 128 as hop",
    "Segments in flight at most.",
);
pub(crate) static RCVWND: Key<Option<Count>> = Key::depends(
    "rcvwnd",
    "1024 as listener, 512 as hop",
    "Segments received and not read at most.",
);
pub(crate) static ACKNODELAY: Key<bool> = Key::new(
    "acknodelay",
    false,
    "Acknowledge at once, not with the next flush.",
);
pub(crate) static RATE: Key<Whole> = Key::new(
    "rate",
    Whole(0),
    "Bytes a second that a session may send; 0 is no limit.",
)
.also("ratelimit");
pub(crate) static QPP: Key<bool> = Key::new(
    "qpp",
    false,
    "kcptun's Quantum Permutation Pads over each stream, with a cipher of kcptun. Must be the \
     same at both ends; it obscures, and does not authenticate.",
);
pub(crate) static QPPCOUNT: Key<Count> = Key::new(
    "qppcount",
    Count(61),
    "Pads of QPP, 256 bytes each way; an odd number of at least 7. Must be the same at both ends.",
);
pub(crate) static COMP: Key<Option<bool>> = Key::depends(
    "comp",
    "false; of `kcptun` true",
    "Compress all streams with snappy. Must be the same at both ends.",
);
pub(crate) static NOCOMP: Key<Option<bool>> = Key::depends(
    "nocomp",
    "the opposite of `comp`",
    "kcptun's way to say `comp`: do not compress.",
);
pub(crate) static SMUX: Key<Count> = Key::new(
    "smux",
    Count(2),
    "Version of the multiplexer, 1 or 2. Must be the same at both ends; old kcptun has 1.",
)
.also("smuxver");
pub(crate) static SMUXBUF: Key<Option<Count>> = Key::depends(
    "smuxbuf",
    "8388608 (8 MiB); of `kcptun` 4194304",
    "Bytes received and not read of a session at most; up to 16 MiB.",
);
pub(crate) static STREAMBUF: Key<Option<Count>> = Key::depends(
    "streambuf",
    "4194304 (4 MiB); of `kcptun` 2097152",
    "The same of a stream (smux 2); not more than `smuxbuf`.",
);
pub(crate) static FRAMESIZE: Key<Count> = Key::new(
    "framesize",
    Count(8192),
    "Bytes of the largest frame of a stream.",
);
pub(crate) static KEEPALIVE: Key<Seconds> = Key::new(
    "keepalive",
    Seconds(Duration::from_secs(10)),
    "How often a session shows that it lives; three times of silence end it, 30s at least. A \
     number alone is seconds.",
);
/// Sessions of a hop at most.
pub(super) const MAX_CONN: usize = 64;
pub(crate) static CONN: Key<Count> = Key::new(
    "conn",
    Count(1),
    "Sessions that are kept, 64 at most; streams take turns.",
);
pub(crate) static EXPIRE: Key<Option<Seconds>> = Key::depends(
    "expire",
    "never",
    "Age at which a session gets no new streams and a fresh one begins; 0 is never. A number \
     alone is seconds.",
)
.also("autoexpire");
pub(crate) static LINGER: Key<Seconds> = Key::new(
    "linger",
    Seconds(Duration::from_secs(600)),
    "How long a session that has expired may go on. A number alone is seconds.",
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
