//! Value types of SSH: lists of algorithms, and host keys.

use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use crate::schema::Typed;
use crate::text::nearest_word;

/// An algorithm with a name on the wire.
pub(crate) trait NamedAlgorithm: Copy + PartialEq + Sync + 'static {
    /// The name of a list of them in the reference.
    const LIST: &'static str;
    /// All algorithms of this kind.
    const EACH: &'static [Self];
    /// Returns the name on the wire.
    fn wire_name(self) -> &'static str;
}

/// Implements [`NamedAlgorithm`] for a type with `ALL` and `name`.
macro_rules! named {
    ($type:ty, $list:literal) => {
        impl NamedAlgorithm for $type {
            const LIST: &'static str = $list;
            const EACH: &'static [Self] = Self::ALL;

            fn wire_name(self) -> &'static str {
                self.name()
            }
        }
    };
}

named!(Kex, "key exchanges");
named!(Cipher, "ciphers");
named!(Mac, "MACs");

/// A list of algorithms, the preferred one first. Empty means the default for this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AlgorithmList<T>(pub(crate) Vec<T>);

impl<T: NamedAlgorithm> AlgorithmList<T> {
    /// Returns the algorithm with this name, with or without its `@domain`: an `@` in a URL would have
    /// to be escaped.
    fn find(text: &str) -> Option<T> {
        let mut all = T::EACH.iter().copied();
        all.clone()
            .find(|one| one.wire_name() == text)
            .or_else(|| all.find(|one| short_name(*one) == text))
    }
}

/// Returns the name without its `@domain`, if that is unambiguous.
fn short_name<T: NamedAlgorithm>(one: T) -> &'static str {
    let name = one.wire_name();
    let bare = name.split('@').next().unwrap_or(name);
    let taken = T::EACH.iter().any(|other| other.wire_name() == bare);
    if taken { name } else { bare }
}

/// Returns the names of all algorithms, separated by commas.
pub(crate) fn all_names<T: NamedAlgorithm>() -> String {
    let names = T::EACH.iter().map(|one| short_name(*one));
    names.collect::<Vec<_>>().join(", ")
}

impl<T: NamedAlgorithm + Clone> Typed for AlgorithmList<T> {
    const NAME: &'static str = T::LIST;

    fn read(text: &str) -> Result<Self, String> {
        let mut list = Vec::new();
        for name in text.split(',') {
            let Some(one) = Self::find(name) else {
                return Err(
                    match nearest_word(name, T::EACH.iter().map(|one| short_name(*one))) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => format!("expected some of {}", all_names::<T>()),
                    },
                );
            };
            if !list.contains(&one) {
                list.push(one);
            }
        }
        Ok(Self(list))
    }

    fn write(&self) -> String {
        let names = self.0.iter().map(|one| short_name(*one));
        names.collect::<Vec<_>>().join(",")
    }
}

/// The host key of a listener, or the host keys that a hop trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostKeys {
    /// The key is not configured.
    NotConfigured,
    /// `@FILE` of a private key.
    File(String),
    /// Fingerprints.
    Pinned(Vec<String>),
}

/// Length of a SHA-256 in base64 without padding, in characters.
const FINGERPRINT: usize = 43;

impl Typed for HostKeys {
    const NAME: &'static str = "SHA256:…|@file";
    const NAMES_FILE: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@').filter(|path| !path.is_empty()) {
            return Ok(Self::File(path.to_owned()));
        }
        let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
        let fits = |pin: &str| {
            pin.strip_prefix("SHA256:")
                .is_some_and(|hash| hash.len() == FINGERPRINT && hash.bytes().all(base64))
        };
        let pins: Vec<String> = text.split(',').map(str::to_owned).collect();
        if pins.iter().all(|pin| fits(pin)) {
            Ok(Self::Pinned(pins))
        } else {
            Err("expected `SHA256:` and 43 characters, as `ssh-keygen -l` prints them".to_owned())
        }
    }

    fn write(&self) -> String {
        match self {
            Self::NotConfigured => String::new(),
            Self::File(path) => format!("@{path}"),
            Self::Pinned(pins) => pins.join(","),
        }
    }
}

/// The treatment of an unknown host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownHostPolicy {
    /// Refuses it.
    Yes,
    /// Accepts and stores its key.
    AcceptNew,
}

impl Typed for UnknownHostPolicy {
    const NAME: &'static str = "yes|accept-new";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "yes" => Ok(Self::Yes),
            "accept-new" => Ok(Self::AcceptNew),
            _ => Err("expected `yes` or `accept-new`".to_owned()),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Yes => "yes",
            Self::AcceptNew => "accept-new",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_a_name_of_its_own() {
        fn check<T: NamedAlgorithm + Clone + core::fmt::Debug>() {
            for one in T::EACH {
                for text in [one.wire_name(), short_name(*one)] {
                    let read = AlgorithmList::<T>::read(text).unwrap();
                    assert_eq!(read.0, [*one], "{text}");
                    assert_eq!(read.write(), short_name(*one));
                }
            }
        }
        check::<Kex>();
        check::<Cipher>();
        check::<Mac>();
        let why = AlgorithmList::<Cipher>::read("aes128-cgm").unwrap_err();
        assert_eq!(why, "did you mean `aes128-gcm`?");
    }

    #[test]
    fn host_keys_are_read_and_written() {
        let pin = "SHA256:2nbE5lzxtTLcdVH4yLTnkDwU2dLY6SGlqsW0lG3ePbs";
        for text in ["@/etc/key", pin, &format!("{pin},{pin}")] {
            assert_eq!(HostKeys::read(text).unwrap().write(), text);
        }
        for text in ["", "@", "SHA256:", &pin[1..], &format!("{pin}="), "MD5:a"] {
            assert!(HostKeys::read(text).is_err(), "{text}");
        }
    }
}
