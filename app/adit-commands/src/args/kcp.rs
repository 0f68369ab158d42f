//! The options of kcptun: one table for the command line and the JSON files.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

/// The two ends of a tunnel.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum KcpCommand {
    /// Run the server, which connects to the target
    Server(KcpServerArgs),
    /// Run the client, which accepts TCP connections
    Client(KcpClientArgs),
}

/// Defines a struct of optional values, which can override the values of another.
macro_rules! options {
    ($(#[$meta:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, clap::Args, serde::Deserialize)]
        #[serde(default)]
        pub(crate) struct $name {
            $($(#[$attr])* pub(crate) $field: Option<$kind>,)*
        }

        impl $name {
            /// The names of the fields; files spell them with dashes.
            pub(crate) const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// Returns these values, with the other's values where these are missing.
            pub(crate) fn or(self, other: Self) -> Self {
                Self {
                    $($field: self.$field.or(other.$field),)*
                }
            }
        }
    };
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct KcpServerArgs {
    #[command(flatten)]
    pub(crate) own: ServerOwn,
    #[command(flatten)]
    pub(crate) both: Both,
    /// JSON file with the same names; its values override the options
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct KcpClientArgs {
    #[command(flatten)]
    pub(crate) own: ClientOwn,
    #[command(flatten)]
    pub(crate) both: Both,
    /// JSON file with the same names; its values override the options
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

options! {
    // The options of the server only.
    ServerOwn {
        /// UDP address to listen on; `MIN-MAX` is a range of ports [default: :29900]
        #[arg(short, long, value_name = "[HOST:]PORT", help_heading = "Ends")]
        listen: String,
        /// Target of the connections [default: 127.0.0.1:12948]
        #[arg(short, long, value_name = "HOST:PORT", help_heading = "Ends")]
        target: String,
    }
}

options! {
    // The options of the client only.
    ClientOwn {
        /// TCP address to listen on [default: :12948]
        #[arg(short, long, value_name = "[HOST:]PORT", help_heading = "Ends")]
        localaddr: String,
        /// The server; with `MIN-MAX`, each session picks a random port of the range
        #[arg(short, long, value_name = "HOST:PORT", help_heading = "Ends")]
        remoteaddr: String,
        /// Number of KCP sessions at the same time [default: 1]
        #[arg(long, value_name = "N", help_heading = "Ends")]
        conn: u16,
        /// Seconds after which a session gets no new connections; 0 is never [default: 0]
        #[arg(long, value_name = "S", help_heading = "Ends")]
        autoexpire: u32,
        /// Seconds after which an expired session is closed [default: 600]
        #[arg(long, value_name = "S", help_heading = "Ends")]
        scavengettl: u32,
    }
}

options! {
    // The options of both ends, without documentation that clap would show for both commands.
    Both {
        /// Password, the same at both ends; the environment variable KCPTUN_KEY is harder to see
        #[arg(long, value_name = "KEY", help_heading = "Both ends alike")]
        key: String,
        /// Cipher: aes, aes-128, aes-192, aes-128-gcm, salsa20, blowfish, twofish, cast5, 3des,
        /// tea, xtea, xor, sm4, none, null [default: aes]
        #[arg(long, value_name = "NAME", help_heading = "Both ends alike")]
        crypt: String,
        /// Turn off compression [default: as the peer does; otherwise false]
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
            require_equals = true, help_heading = "Both ends alike")]
        nocomp: bool,
        /// Version of smux, 1 or 2 [default: the peer's; otherwise 2]
        #[arg(long, value_name = "N", help_heading = "Both ends alike")]
        smuxver: u8,
        /// Preset of timing: fast3, fast2, fast, normal, or manual with the next four [default: fast]
        #[arg(long, value_name = "NAME", help_heading = "KCP")]
        mode: String,
        /// 1: short retransmission timeouts [default: 0]
        #[arg(long, value_name = "0|1", help_heading = "KCP")]
        nodelay: u8,
        /// Milliseconds between flushes [default: 50]
        #[arg(long, value_name = "MS", help_heading = "KCP")]
        interval: u32,
        /// Number of later acknowledgements that cause a fast retransmission; 0 is off [default: 0]
        #[arg(long, value_name = "N", help_heading = "KCP")]
        resend: u16,
        /// 1: turn off congestion control [default: 0]
        #[arg(long, value_name = "0|1", help_heading = "KCP")]
        nc: u8,
        /// Congestion control: auto, off, reno, bbr; kcptun does not have this option
        /// [default: auto; with --mode manual, as set by --nc]
        #[arg(long, value_name = "NAME", help_heading = "KCP")]
        cc: String,
        /// Send acknowledgements immediately
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
            require_equals = true, help_heading = "KCP")]
        acknodelay: bool,
        /// Maximum size of a datagram, in bytes [default: 1350]
        #[arg(long, value_name = "BYTES", help_heading = "KCP")]
        mtu: usize,
        /// Send window, in segments [default: 128; for a server 1024]
        #[arg(long, value_name = "N", help_heading = "KCP")]
        sndwnd: u32,
        /// Receive window, in segments [default: 512; for a server 1024]
        #[arg(long, value_name = "N", help_heading = "KCP")]
        rcvwnd: u32,
        /// Data datagrams of a group; 0 turns off error correction [default: 10; off if the peer does
        /// not use it]
        #[arg(long, alias = "ds", value_name = "N", help_heading = "KCP")]
        datashard: usize,
        /// Parity datagrams of a group: this many losses can be repaired [default: 3]
        #[arg(long, alias = "ps", value_name = "N", help_heading = "KCP")]
        parityshard: usize,
        /// Maximum rate of a session, in bytes per second; 0 is no limit [default: 0]
        #[arg(long, value_name = "BYTES", help_heading = "KCP")]
        ratelimit: u32,
        /// Receive buffer of a session, in bytes [default: 4194304]
        #[arg(long, value_name = "BYTES", help_heading = "Streams")]
        smuxbuf: u32,
        /// Receive buffer of a stream, in bytes, with smux 2 [default: 2097152]
        #[arg(long, value_name = "BYTES", help_heading = "Streams")]
        streambuf: u32,
        /// Maximum size of a frame, in bytes [default: 8192]
        #[arg(long, value_name = "BYTES", help_heading = "Streams")]
        framesize: u16,
        /// Seconds between keep-alive messages [default: 10]
        #[arg(long, value_name = "S", help_heading = "Streams")]
        keepalive: u32,
        /// Seconds after which a half-closed connection without traffic is closed; 0 is 60
        /// [default: 0; for a server 30]
        #[arg(long, value_name = "S", help_heading = "Streams")]
        closewait: u32,
        /// Write the counters to this CSV file; 2006, 01, 02, 15, 04 and 05 in its name are replaced
        /// by the date and the time in UTC
        #[arg(long, value_name = "FILE", help_heading = "Counters")]
        snmplog: PathBuf,
        /// Seconds between rows [default: 60]
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
        /// Add a keyed checksum to the cipher and use another FEC matrix; only adit supports it, and
        /// both ends must use it
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
            require_equals = true, help_heading = "Both ends alike")]
        kcp9: bool,
        /// Use kcptun's Quantum Permutation Pads on each stream; both ends must use them
        #[arg(long = "QPP", alias = "qpp", value_name = "BOOL", num_args = 0..=1,
            default_missing_value = "true", require_equals = true,
            help_heading = "Both ends alike")]
        qpp: bool,
        /// Number of pads, the same at both ends: a prime number of at least 7 [default: 61]
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

/// Returns the words of the command line, with a second dash for long options after `kcp` that
/// have only one, as kcptun accepts them.
pub(crate) fn with_double_dashes(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    // Options before a command have no value: there is only `-v`.
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
        // Short options with attached values (-l:80) and repeated ones (-vv) are unchanged.
        if let Some(name) = long
            && is_long_option(name)
        {
            *word = format!("--{name}").into();
        }
    }
    words
}

fn is_long_option(name: &str) -> bool {
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
            let words = with_double_dashes(words);
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
