//! Value types of the keys of KCP.

use adit_crypto::packet::PacketKind;
use adit_kcp_proto::{Config, CongestionControl};

use crate::schema::{Typed, words};
use crate::text::nearest_word;

/// The value of `crypt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KcpCrypt {
    /// adit's own sessions.
    Aead,
    /// A cipher of kcptun.
    Packets(PacketKind),
}

/// The value of `mode`: a name for several numbers of the ARQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KcpMode {
    /// kcptun's `normal`.
    Normal,
    /// kcptun's `fast`.
    Fast,
    /// kcptun's `fast2`.
    Fast2,
    /// kcptun's `fast3`.
    Fast3,
    /// The numbers are configured by other keys.
    Manual,
}

/// The value of `cc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cc(pub(crate) CongestionControl);

/// The name of adit's own sessions.
const AEAD: &str = "aead";

impl Typed for KcpCrypt {
    const NAME: &'static str = "aead|cipher";

    fn read(text: &str) -> Result<Self, String> {
        if text == AEAD {
            return Ok(Self::Aead);
        }
        if let Ok(kind) = text.parse() {
            return Ok(Self::Packets(kind));
        }
        let names = || PacketKind::ALL.into_iter().map(PacketKind::name);
        Err(match nearest_word(text, names().chain([AEAD])) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!(
                "expected `aead` or one of {}",
                PacketKind::ALL.map(PacketKind::name).join(", ")
            ),
        })
    }

    fn write(&self) -> String {
        match self {
            Self::Aead => AEAD.to_owned(),
            Self::Packets(kind) => kind.name().to_owned(),
        }
    }
}

words!(
    KcpMode, "normal|fast|fast2|fast3|manual",
    "normal" => Self::Normal, "fast" => Self::Fast, "fast2" => Self::Fast2,
    "fast3" => Self::Fast3, "manual" => Self::Manual,
);
words!(
    Cc, "auto|off|reno|bbr",
    "auto" => Self(CongestionControl::Auto), "off" => Self(CongestionControl::Off),
    "reno" => Self(CongestionControl::Reno), "bbr" => Self(CongestionControl::Bbr),
);

impl KcpMode {
    /// Returns the settings of the ARQ, or `None` for `manual`.
    pub(crate) const fn arq_config(self) -> Option<Config> {
        match self {
            Self::Normal => Some(Config::normal()),
            Self::Fast => Some(Config::fast()),
            Self::Fast2 => Some(Config::fast2()),
            Self::Fast3 => Some(Config::fast3()),
            Self::Manual => None,
        }
    }

    /// Returns the mode with these settings.
    pub(crate) fn of_config(config: &Config) -> Self {
        let numbers = |c: &Config| (c.nodelay, c.interval_ms, c.resend);
        let mut named = [Self::Normal, Self::Fast, Self::Fast2, Self::Fast3].into_iter();
        let found = named.find(|mode| {
            let same = |other: Config| numbers(&other) == numbers(config);
            mode.arq_config().is_some_and(same)
        });
        found.unwrap_or(Self::Manual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for mode in [
            KcpMode::Normal,
            KcpMode::Fast,
            KcpMode::Fast2,
            KcpMode::Fast3,
            KcpMode::Manual,
        ] {
            assert_eq!(KcpMode::read(&mode.write()), Ok(mode));
            if let Some(config) = mode.arq_config() {
                assert_eq!(KcpMode::of_config(&config), mode);
            }
        }
        for name in ["auto", "off", "reno", "bbr"] {
            assert_eq!(Cc::read(name).unwrap().write(), name);
        }
        for kind in PacketKind::ALL {
            assert_eq!(KcpCrypt::read(kind.name()), Ok(KcpCrypt::Packets(kind)));
        }
        assert_eq!(KcpCrypt::read(AEAD), Ok(KcpCrypt::Aead));
        assert_eq!(
            KcpCrypt::read("aes-129").unwrap_err(),
            "did you mean `aes-128`?"
        );
        assert!(
            KcpCrypt::read("").is_err()
                && KcpMode::read("Fast").is_err()
                && Cc::read("on").is_err()
        );
    }
}
