//! Value types of keys: parsing from text and writing back.

use core::net::IpAddr;
use core::time::Duration;

use crate::text::{PluginText, format_duration, parse_duration};

/// A type that a key can have. `T::read(&v.write()) == Ok(v)` is true for every value.
pub(crate) trait Typed: Clone + Sync {
    /// The name of the type in the reference.
    const NAME: &'static str;
    /// True if a value can hold a secret: a misplaced one, or the options of a plugin.
    const HIDDEN: bool = false;
    /// True if a value can name a file.
    const NAMES_FILE: bool = false;
    /// Parses a value. The error says what was expected.
    fn read(text: &str) -> Result<Self, String>;
    /// Returns the canonical text of the value.
    fn write(&self) -> String;
}

/// A number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PositiveNumber(pub(crate) usize);

/// A number that may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeNumber(pub(crate) u32);

/// A secret in a query: the secret itself, `@path` of its file, or `$NAME` of a variable.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretValue(pub(crate) String);

/// The path of a file, written as `@path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePath(pub(crate) String);

/// The source of a listener's users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserSource {
    /// The path of a file, written as `@path`.
    File(String),
    /// The fleet of `[fleet]`.
    Fleet,
}

/// The word for users of the fleet, where users cannot come from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FleetWord;

/// A wait of less than 10 seconds, which may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortWait(pub(crate) Duration);

/// A time that may be 0. A number without a unit is in seconds, as in kcptun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) Duration);

/// A switch that can be left to adit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tristate {
    /// adit decides.
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

/// Implements [`Typed`] for a type with a fixed set of words.
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

pub(crate) use words;

words!(bool, "true|false", "true" => true, "false" => false);
words!(
    Tristate, "auto|true|false",
    "auto" => Self::Auto, "true" => Self::On, "false" => Self::Off,
);

impl Typed for FleetWord {
    const NAME: &'static str = "fleet";
    // Another value may be a list of users that belongs to another scheme.
    const HIDDEN: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "fleet" => Ok(Self),
            _ => Err("expected `fleet`".to_owned()),
        }
    }

    fn write(&self) -> String {
        "fleet".to_owned()
    }
}

impl<T: Typed> Typed for Option<T> {
    const NAME: &'static str = T::NAME;
    const HIDDEN: bool = T::HIDDEN;
    const NAMES_FILE: bool = T::NAMES_FILE;

    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(String::new, T::write)
    }
}

impl Typed for PositiveNumber {
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

impl Typed for WholeNumber {
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
    const HIDDEN: bool = true;
    const NAMES_FILE: bool = true;

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
        parse_duration(text)
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| "expected a duration like `10s`, `500ms`, `2m` or `1h`".to_owned())
    }

    fn write(&self) -> String {
        format_duration(*self)
    }
}

impl Typed for ShortWait {
    const NAME: &'static str = "duration";

    fn read(text: &str) -> Result<Self, String> {
        parse_duration(text)
            .filter(|duration| duration.as_secs() < 10)
            .map(Self)
            .ok_or_else(|| "expected a duration from `0ms` to `9s`".to_owned())
    }

    fn write(&self) -> String {
        format_duration(self.0)
    }
}

impl Typed for Seconds {
    const NAME: &'static str = "duration";

    fn read(text: &str) -> Result<Self, String> {
        let number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let read = if number {
            parse_duration(&format!("{text}s"))
        } else {
            parse_duration(text)
        };
        read.map(Self).ok_or_else(|| {
            "expected a duration like `10s` or `2m`, or a number of seconds".to_owned()
        })
    }

    fn write(&self) -> String {
        if self.0.is_zero() {
            return "0s".to_owned();
        }
        format_duration(self.0)
    }
}

impl Typed for PluginText {
    const NAME: &'static str = "program[;options]";
    const HIDDEN: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn write(&self) -> String {
        self.to_text()
    }
}

impl Typed for IpAddr {
    const NAME: &'static str = "address";

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
            .map(adit_wire::unmap_ipv4)
            .map_err(|_| "expected an address like `192.0.2.7` or `2001:db8::7`".to_owned())
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Typed for FilePath {
    const NAME: &'static str = "@file";
    const HIDDEN: bool = true;
    const NAMES_FILE: bool = true;

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

impl Typed for UserSource {
    const NAME: &'static str = "@file|fleet";
    const HIDDEN: bool = true;
    const NAMES_FILE: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        if text == "fleet" {
            return Ok(Self::Fleet);
        }
        text.strip_prefix('@')
            .filter(|path| !path.is_empty())
            .map(|path| Self::File(path.to_owned()))
            .ok_or_else(|| "expected `@` and the path of a file, or `fleet`".to_owned())
    }

    fn write(&self) -> String {
        match self {
            Self::File(path) => format!("@{path}"),
            Self::Fleet => "fleet".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_counts() {
        assert_eq!(Tristate::read("true"), Ok(Tristate::On));
        assert_eq!(Tristate::Off.write(), "false");
        assert!(bool::read("yes").is_err());
        assert_eq!(PositiveNumber::read("7"), Ok(PositiveNumber(7)));
        for text in ["0", "+1", "", "-1"] {
            assert!(PositiveNumber::read(text).is_err(), "{text}");
        }
        assert_eq!(ShortWait::read("0ms"), Ok(ShortWait(Duration::ZERO)));
        assert_eq!(ShortWait(Duration::ZERO).write(), "0ms");
        assert!(ShortWait::read("10s").is_err());
        assert!(Duration::read("0s").is_err());
        assert!(FilePath::read("a:b").is_err());
        assert_eq!(UserSource::read("fleet"), Ok(UserSource::Fleet));
        assert_eq!(UserSource::read("@a").unwrap().write(), "@a");
        assert!(UserSource::read("@").is_err() && UserSource::read("a").is_err());
        for (text, canonical) in [("10", "10s"), ("0", "0s"), ("120", "2m"), ("5ms", "5ms")] {
            assert_eq!(Seconds::read(text).unwrap().write(), canonical);
        }
        for text in ["", "s", "+1", "1.5", "99999999999", "366d"] {
            assert!(Seconds::read(text).is_err(), "{text}");
        }
    }
}
