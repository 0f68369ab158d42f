//! Values of keys: how each type is read from text and written back.

use core::net::IpAddr;
use core::time::Duration;

use adit_wire::Target;

use crate::plan::{PluginMode, Prefer, Private, RejectPolicy, Restart, UdpWay};
use crate::text::{PluginText, read_duration, read_net, write_duration, write_net, write_target};

/// A type that a key can have. `T::read(&v.write()) == Ok(v)` for every value.
pub(crate) trait Typed: Clone + Sync {
    /// What the reference calls the type.
    const NAME: &'static str;
    /// Reads a value; the error says what was expected.
    fn read(text: &str) -> Result<Self, String>;
    /// The canonical text.
    fn write(&self) -> String;
}

/// A number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

/// A number that may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u32);

/// A secret in a query: itself, `@path` of its file, or `$NAME` of a variable.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretValue(pub(crate) String);

/// `@path` of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePath(pub(crate) String);

/// A wait that may be none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Duration);

/// A choice that can be left to adit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tristate {
    Auto,
    On,
    Off,
}

macro_rules! words {
    ($type:ty, $name:literal, $($word:literal => $value:expr),+ $(,)?) => {
        impl Typed for $type {
            const NAME: &'static str = $name;

            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($value),)+
                    _ => Err(concat!("expected one of ", $name).to_owned()),
                }
            }

            fn write(&self) -> String {
                [$(($word, $value)),+]
                    .into_iter()
                    .find(|(_, value)| value == self)
                    .map_or_else(String::new, |(word, _)| word.to_owned())
            }
        }
    };
}

words!(bool, "true|false", "true" => true, "false" => false);
words!(
    Tristate, "auto|true|false",
    "auto" => Self::Auto, "true" => Self::On, "false" => Self::Off,
);
words!(
    Prefer, "auto|v4|v6|v4only|v6only",
    "auto" => Self::Auto, "v4" => Self::V4, "v6" => Self::V6,
    "v4only" => Self::V4Only, "v6only" => Self::V6Only,
);
words!(
    Restart, "strict|lenient",
    "strict" => Self::Strict, "lenient" => Self::Lenient,
);
words!(
    UdpWay, "true|false|over-tcp",
    "true" => Self::Native, "false" => Self::Off, "over-tcp" => Self::OverTcp,
);
words!(
    PluginMode, "tcp_only|udp_only|tcp_and_udp",
    "tcp_only" => Self::TcpOnly, "udp_only" => Self::UdpOnly,
    "tcp_and_udp" => Self::TcpAndUdp,
);

impl<T: Typed> Typed for Option<T> {
    const NAME: &'static str = T::NAME;

    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(String::new, T::write)
    }
}

impl Typed for Count {
    const NAME: &'static str = "number";

    fn read(text: &str) -> Result<Self, String> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && number > 0 => Ok(Self(number)),
            _ => Err("expected a whole number of at least 1".to_owned()),
        }
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

impl Typed for Whole {
    const NAME: &'static str = "number";

    fn read(text: &str) -> Result<Self, String> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Self(number)),
            _ => Err("expected a whole number".to_owned()),
        }
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

impl Typed for SecretValue {
    const NAME: &'static str = "secret";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected a secret, `@FILE` or `$NAME`".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

impl Typed for Duration {
    const NAME: &'static str = "duration";

    fn read(text: &str) -> Result<Self, String> {
        read_duration(text)
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| "expected a duration like `10s`, `500ms`, `2m` or `1h`".to_owned())
    }

    fn write(&self) -> String {
        write_duration(*self)
    }
}

impl Typed for Wait {
    const NAME: &'static str = "duration";

    fn read(text: &str) -> Result<Self, String> {
        read_duration(text)
            .filter(|duration| duration.as_secs() < 10)
            .map(Self)
            .ok_or_else(|| "expected a duration from `0ms` to `9s`".to_owned())
    }

    fn write(&self) -> String {
        write_duration(self.0)
    }
}

impl Typed for PluginText {
    const NAME: &'static str = "program[;options]";

    fn read(text: &str) -> Result<Self, String> {
        Self::read(text)
    }

    fn write(&self) -> String {
        self.write()
    }
}

impl Typed for IpAddr {
    const NAME: &'static str = "address";

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
            .map(adit_wire::unmap)
            .map_err(|_| "expected an address like `192.0.2.7` or `2001:db8::7`".to_owned())
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Typed for Private {
    const NAME: &'static str = "all|none|networks";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::Deny),
            list => list
                .split(',')
                .map(|item| {
                    read_net(item).ok_or_else(|| {
                        "expected `all`, `none` or networks like `10.0.0.0/8,fd00::/8`".to_owned()
                    })
                })
                .collect::<Result<_, _>>()
                .map(Self::Nets),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Deny => "none".to_owned(),
            Self::Nets(nets) => nets.iter().map(write_net).collect::<Vec<_>>().join(","),
        }
    }
}

impl Typed for RejectPolicy {
    const NAME: &'static str = "drain|reset|close|forward:HOST:PORT";

    fn read(text: &str) -> Result<Self, String> {
        let target = |text: &str| {
            text.parse::<Target>()
                .ok()
                .filter(|target| target.port != 0)
        };
        match text {
            "drain" => Ok(Self::Drain),
            "reset" => Ok(Self::Reset),
            "close" => Ok(Self::Close),
            other => other
                .strip_prefix("forward:")
                .and_then(target)
                .map(Self::Forward)
                .ok_or_else(|| format!("expected one of {}", Self::NAME)),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Drain => "drain".to_owned(),
            Self::Reset => "reset".to_owned(),
            Self::Close => "close".to_owned(),
            Self::Forward(target) => format!("forward:{}", write_target(target)),
        }
    }
}

impl Typed for FilePath {
    const NAME: &'static str = "@file";

    fn read(text: &str) -> Result<Self, String> {
        text.strip_prefix('@')
            .filter(|path| !path.is_empty())
            .map(|path| Self(path.to_owned()))
            .ok_or_else(|| "expected `@` and the path of a file".to_owned())
    }

    fn write(&self) -> String {
        format!("@{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn networks_are_read_and_written() {
        for (text, canonical) in [
            ("all", "all"),
            ("none", "none"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.0.0.1,fd00::/8", "10.0.0.1,fd00::/8"),
            ("10.0.0.1/32", "10.0.0.1"),
        ] {
            assert_eq!(Private::read(text).unwrap().write(), canonical);
        }
        for text in [
            "",
            "10.0.0.0/33",
            "lan",
            "10.0.0.0/8,",
            "::ffff:10.0.0.0/104",
        ] {
            assert!(Private::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn policies_are_read_and_written() {
        for text in [
            "drain",
            "reset",
            "close",
            "forward:example.com:443",
            "forward:[::1]:80",
        ] {
            assert_eq!(RejectPolicy::read(text).unwrap().write(), text);
        }
        for text in ["", "forward:", "forward:a", "forward:a:0", "Drain"] {
            assert!(RejectPolicy::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_and_counts() {
        assert_eq!(Tristate::read("true"), Ok(Tristate::On));
        assert_eq!(Tristate::Off.write(), "false");
        assert_eq!(UdpWay::read("over-tcp"), Ok(UdpWay::OverTcp));
        assert_eq!(PluginMode::TcpAndUdp.write(), "tcp_and_udp");
        assert!(bool::read("yes").is_err());
        assert_eq!(Count::read("7"), Ok(Count(7)));
        for text in ["0", "+1", "", "-1"] {
            assert!(Count::read(text).is_err(), "{text}");
        }
        assert_eq!(Wait::read("0ms"), Ok(Wait(Duration::ZERO)));
        assert_eq!(Wait(Duration::ZERO).write(), "0ms");
        assert!(Wait::read("10s").is_err());
        assert!(Duration::read("0s").is_err());
        assert!(FilePath::read("a:b").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = Private::read(&text);
            let _ = RejectPolicy::read(&text);
        }
    }
}
