//! The options of kcptun, on the command line and in its JSON files: one table for both.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

/// An end of a tunnel.
#[derive(Debug, Subcommand)]
pub(crate) enum Kcp {
    /// The end at the target
    Server(Server),
    /// The end at home
    Client(Client),
}

/// A struct of optional values under one set of names, which can be laid over another.
macro_rules! options {
    ($(#[$meta:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, clap::Args, serde::Deserialize)]
        #[serde(default)]
        pub(crate) struct $name {
            $($(#[$attr])* pub(crate) $field: Option<$kind>,)*
        }

        impl $name {
            /// The names in a file.
            pub(crate) const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// These, and where there is none the other's.
            pub(crate) fn or(self, other: Self) -> Self {
                Self {
                    $($field: self.$field.or(other.$field),)*
                }
            }
        }
    };
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Server {
    #[command(flatten)]
    pub(crate) own: ServerOwn,
    #[command(flatten)]
    pub(crate) both: Both,
    /// A JSON file with the same names; its values win
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Client {
    #[command(flatten)]
    pub(crate) own: ClientOwn,
    #[command(flatten)]
    pub(crate) both: Both,
    /// A JSON file with the same names; its values win
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

options! {
    /// What only a server has.
    ServerOwn {
        /// Where to listen for datagrams; `MIN-MAX` for a range of ports [default: :29900]
        #[arg(short, long, value_name = "HOST:PORT", help_heading = "Ends")]
        listen: String,
        /// Where the connections lead [default: 127.0.0.1:12948]
        #[arg(short, long, value_name = "HOST:PORT", help_heading = "Ends")]
        target: String,
    }
}

options! {
    /// What only a client has.
    ClientOwn {
        /// Where to listen for TCP [default: :12948]
        #[arg(short, long, value_name = "HOST:PORT", help_heading = "Ends")]
        localaddr: String,
        /// The server; with `MIN-MAX` each session takes a port of the range at random
        #[arg(short, long, value_name = "HOST:PORT", help_heading = "Ends")]
        remoteaddr: String,
        /// KCP sessions at a time [default: 1]
        #[arg(long, value_name = "N", help_heading = "Ends")]
        conn: u16,
        /// Seconds after which a session gets no new connections; 0 never [default: 0]
        #[arg(long, value_name = "S", help_heading = "Ends")]
        autoexpire: u32,
        /// Seconds after which a session that has expired is closed [default: 600]
        #[arg(long, value_name = "S", help_heading = "Ends")]
        scavengettl: u32,
    }
}

options! {
    /// What both ends have.
    Both {
        /// The password, which both ends must have; KCPTUN_KEY in the environment hides it better
        #[arg(long, value_name = "KEY", help_heading = "Both ends alike")]
        key: String,
        /// The cipher: aes, aes-128, aes-192, aes-128-gcm, salsa20, blowfish, twofish, cast5, 3des,
        /// tea, xtea, xor, sm4, none, null [default: aes]
        #[arg(long, value_name = "NAME", help_heading = "Both ends alike")]
        crypt: String,
        /// Without compression [default: as the other end has it, else with]
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
            require_equals = true, help_heading = "Both ends alike")]
        nocomp: bool,
        /// The version of smux, 1 or 2 [default: as the other end has it, else 2]
        #[arg(long, value_name = "N", help_heading = "Both ends alike")]
        smuxver: u8,
        /// How hasty: fast3, fast2, fast, normal, or manual with the four below [default: fast]
        #[arg(long, value_name = "NAME", help_heading = "KCP")]
        mode: String,
        /// 1: hasty time-outs [default: 0]
        #[arg(long, value_name = "0|1", help_heading = "KCP")]
        nodelay: u8,
        /// Milliseconds between flushes [default: 50]
        #[arg(long, value_name = "MS", help_heading = "KCP")]
        interval: u32,
        /// Later acknowledgements after which a segment is sent again; 0 waits [default: 0]
        #[arg(long, value_name = "N", help_heading = "KCP")]
        resend: u16,
        /// 1: without congestion control [default: 0]
        #[arg(long, value_name = "0|1", help_heading = "KCP")]
        nc: u8,
        /// What holds a sender back that outruns the line: auto, off, reno, bbr; kcptun has no such
        /// option [default: auto, with --mode manual as --nc says]
        #[arg(long, value_name = "NAME", help_heading = "KCP")]
        cc: String,
        /// Acknowledge at once
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
            require_equals = true, help_heading = "KCP")]
        acknodelay: bool,
        /// Bytes of a datagram at most [default: 1350]
        #[arg(long, value_name = "BYTES", help_heading = "KCP")]
        mtu: usize,
        /// Segments in flight [default: 128, of a server 1024]
        #[arg(long, value_name = "N", help_heading = "KCP")]
        sndwnd: u32,
        /// Segments that wait to be read [default: 512, of a server 1024]
        #[arg(long, value_name = "N", help_heading = "KCP")]
        rcvwnd: u32,
        /// Datagrams of a group; 0 switches correction off [default: 10, but none to an end that
        /// sends none]
        #[arg(long, alias = "ds", value_name = "N", help_heading = "KCP")]
        datashard: usize,
        /// Datagrams of a group that may be lost [default: 3]
        #[arg(long, alias = "ps", value_name = "N", help_heading = "KCP")]
        parityshard: usize,
        /// Bytes a second that a session may send; 0 is no limit [default: 0]
        #[arg(long, value_name = "BYTES", help_heading = "KCP")]
        ratelimit: u32,
        /// Bytes of a session that wait to be read [default: 4194304]
        #[arg(long, value_name = "BYTES", help_heading = "Streams")]
        smuxbuf: u32,
        /// Bytes of a stream that wait to be read, with smux 2 [default: 2097152]
        #[arg(long, value_name = "BYTES", help_heading = "Streams")]
        streambuf: u32,
        /// Bytes of a frame [default: 8192]
        #[arg(long, value_name = "BYTES", help_heading = "Streams")]
        framesize: u16,
        /// Seconds between signs of life [default: 10]
        #[arg(long, value_name = "S", help_heading = "Streams")]
        keepalive: u32,
        /// Seconds of silence after which a connection with one end closed is given up; 0 is 60
        /// [default: 0, of a server 30]
        #[arg(long, value_name = "S", help_heading = "Streams")]
        closewait: u32,
        /// Write the counters to this file as CSV; 2006, 01, 02, 15, 04 and 05 in its name are the
        /// date and the time, UTC
        #[arg(long, value_name = "FILE", help_heading = "Counters")]
        snmplog: PathBuf,
        /// Seconds between two rows [default: 60]
        #[arg(long, value_name = "S", help_heading = "Counters")]
        snmpperiod: u32,

        #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true",
            require_equals = true)]
        quiet: bool,
        #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true",
            require_equals = true)]
        tcp: bool,
        #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true",
            require_equals = true)]
        pprof: bool,
        /// With the cipher a keyed checksum and a matrix of its own: between two adits alone, both of
        /// which must have it; no other program knows it
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
            require_equals = true, help_heading = "Both ends alike")]
        kcp9: bool,
        /// Quantum Permutation Pads over each stream, as kcptun has them; both ends must have it
        #[arg(long = "QPP", alias = "qpp", value_name = "BOOL", num_args = 0..=1,
            default_missing_value = "true", require_equals = true,
            help_heading = "Both ends alike")]
        qpp: bool,
        /// How many pads, alike at both ends: a prime number, 7 at least [default: 61]
        #[arg(long = "QPPCount", alias = "qpp-count", value_name = "N",
            help_heading = "Both ends alike")]
        #[serde(rename = "qpp-count")]
        qpp_count: u16,
        #[arg(long, hide = true)]
        dscp: u8,
        #[arg(long, hide = true)]
        sockbuf: u32,
        #[arg(long, hide = true)]
        log: PathBuf,
    }
}

/// The words as they were typed, but that behind `kcp` long options may have one dash, as with
/// kcptun itself.
pub(crate) fn as_typed(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    // What stands in front of a command has no value: `-v` alone.
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let position = words.iter().skip(1).position(|word| !is_flag(word));
    let Some(at) = position.filter(|at| words.get(at + 1).is_some_and(|word| word == "kcp")) else {
        return words;
    };
    for word in words.iter_mut().skip(at + 2) {
        let long = word.to_str().and_then(|text| {
            let name = text.strip_prefix('-')?;
            let (plain, _) = name.split_once('=').unwrap_or((name, ""));
            (plain.len() > 2 && plain.starts_with(|c: char| c.is_ascii_alphabetic()))
                .then_some(name)
        });
        // Glued values of short options (-l:80) and repeated ones (-vv) stay as they are.
        if let Some(name) = long
            && is_long(name)
        {
            *word = format!("--{name}").into();
        }
    }
    words
}

fn is_long(name: &str) -> bool {
    let (plain, _) = name.split_once('=').unwrap_or((name, ""));
    let tables = [ServerOwn::NAMES, ClientOwn::NAMES, Both::NAMES];
    let known = tables.concat().contains(&plain);
    known || matches!(plain, "QPP" | "QPPCount" | "config" | "verbose" | "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dash_is_enough_for_kcptuns_names() {
        let typed = |text: &str| {
            let words = text.split(' ').map(OsString::from);
            let words = as_typed(words);
            let words: Vec<_> = words.iter().map(|w| w.to_str().unwrap()).collect();
            words.join(" ")
        };
        assert_eq!(
            typed("adit kcp client -remoteaddr h:1 -l :2 -mode=fast3 --key k -vv -nocomp -l:80"),
            "adit kcp client --remoteaddr h:1 -l :2 --mode=fast3 --key k -vv --nocomp -l:80"
        );
        assert_eq!(
            typed("adit -v --verbose kcp server -listen=:1 -l :2"),
            "adit -v --verbose kcp server --listen=:1 -l :2"
        );
        for other in ["adit run -listen x", "adit run kcp -listen x", "adit -v"] {
            assert_eq!(typed(other), other);
        }
    }
}
