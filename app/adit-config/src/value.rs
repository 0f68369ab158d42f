//! Values of keys: how each type is read from text and written back.

use core::net::IpAddr;
use core::time::Duration;

use adit_wire::{Host, Target};
use ipnet::IpNet;

use crate::plan::{Prefer, Private, RejectPolicy, Restart};

/// A type that a key can have. `T::read(&v.write()) == Ok(v)` for every value.
pub(crate) trait Typed: Clone + Sync {
    /// What the reference calls the type.
    const NAME: &'static str;
    /// Reads a value; the error says what was expected.
    fn read(text: &str) -> Result<Self, String>;
    /// The canonical text.
    fn write(&self) -> String;
}

/// A wait that may be none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Duration);

/// A number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

/// `@path` of a file that is read while the plan is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePath(pub(crate) String);

/// Text that is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verbatim(pub(crate) String);

/// A choice that can be left to adit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auto {
    Auto,
    Yes,
    No,
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
    Auto, "auto|true|false",
    "auto" => Self::Auto, "true" => Self::Yes, "false" => Self::No,
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

impl<T: Typed> Typed for Option<T> {
    const NAME: &'static str = T::NAME;

    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(String::new, T::write)
    }
}

/// Units of durations, in milliseconds, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];
/// No time of adit is longer than a year.
const LONGEST: u64 = 365 * 86_400_000;

/// `10s`, `500ms`, `2m`, `1h`, `1d`: the largest unit that divides the duration.
pub(crate) fn write_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    UNITS
        .into_iter()
        .find(|(_, unit)| millis > 0 && millis % u128::from(*unit) == 0)
        .map_or_else(
            || format!("{millis}ms"),
            |(name, unit)| format!("{}{name}", millis / u128::from(unit)),
        )
}

fn read_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let millis = number.parse::<u64>().ok()?.checked_mul(millis)?;
    (millis <= LONGEST).then_some(Duration::from_millis(millis))
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

/// A network: `10.0.0.0/8`, or an address alone. Bits behind the prefix are cleared, and
/// IPv4-mapped addresses are refused: targets are judged as IPv4.
pub(crate) fn read_net(text: &str) -> Option<IpNet> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net.trunc(),
        Err(_) => IpNet::from(text.parse::<IpAddr>().ok()?),
    };
    let mapped = matches!(net, IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some());
    (!mapped).then_some(net)
}

/// A network; a single address without its prefix.
pub(crate) fn write_net(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() {
        net.addr().to_string()
    } else {
        net.to_string()
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

/// A target as text that reads back as the same target (its `Display` escapes for terminals).
pub(crate) fn write_target(target: &Target) -> String {
    match &target.host {
        Host::Ip(_) => target.to_string(),
        Host::Name(name) => format!("{}:{}", name.as_str(), target.port),
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

impl Typed for Verbatim {
    const NAME: &'static str = "text";

    fn read(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written_in_the_largest_unit() {
        for (text, canonical) in [
            ("10s", "10s"),
            ("120s", "2m"),
            ("90s", "90s"),
            ("60m", "1h"),
            ("48h", "2d"),
            ("1500ms", "1500ms"),
            ("1000ms", "1s"),
        ] {
            assert_eq!(Duration::read(text).unwrap().write(), canonical);
        }
        for text in [
            "",
            "10",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "1m30s",
            "366d",
            "99999999999999999999s",
            "1 s",
        ] {
            assert!(Duration::read(text).is_err(), "{text}");
        }
        assert_eq!(Wait::read("0ms"), Ok(Wait(Duration::ZERO)));
        assert_eq!(Wait(Duration::ZERO).write(), "0ms");
        assert!(Wait::read("10s").is_err());
    }

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
        assert_eq!(Auto::read("true"), Ok(Auto::Yes));
        assert_eq!(Auto::No.write(), "false");
        assert!(bool::read("yes").is_err());
        assert_eq!(Count::read("7"), Ok(Count(7)));
        for text in ["0", "+1", "", "-1"] {
            assert!(Count::read(text).is_err(), "{text}");
        }
        assert!(FilePath::read("a:b").is_err());
    }

    proptest! {
        #[test]
        fn durations_round_trip(millis in 1..=LONGEST) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(Duration::read(&duration.write()), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = Duration::read(&text);
            let _ = Private::read(&text);
            let _ = RejectPolicy::read(&text);
        }
    }
}
