//! Signals (RFC 4254 section 6.10).

/// A signal, by its name without `SIG`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sig {
    /// Abort.
    ABRT,
    /// Alarm clock.
    ALRM,
    /// Arithmetic error.
    FPE,
    /// Hangup.
    HUP,
    /// Illegal instruction.
    ILL,
    /// Interrupt.
    INT,
    /// Kill.
    KILL,
    /// Write to a pipe without a reader.
    PIPE,
    /// Quit.
    QUIT,
    /// Invalid memory access.
    SEGV,
    /// Terminate.
    TERM,
    /// The first user-defined signal.
    USR1,
    /// Any other signal.
    Custom(String),
}

impl Sig {
    /// The names in RFC 4254.
    const KNOWN: [(&'static str, Self); 12] = [
        ("ABRT", Self::ABRT),
        ("ALRM", Self::ALRM),
        ("FPE", Self::FPE),
        ("HUP", Self::HUP),
        ("ILL", Self::ILL),
        ("INT", Self::INT),
        ("KILL", Self::KILL),
        ("PIPE", Self::PIPE),
        ("QUIT", Self::QUIT),
        ("SEGV", Self::SEGV),
        ("TERM", Self::TERM),
        ("USR1", Self::USR1),
    ];

    pub(crate) fn name(&self) -> &str {
        if let Self::Custom(name) = self {
            return name;
        }
        let known = Self::KNOWN.iter().find(|(_, sig)| sig == self);
        known.map_or("", |(name, _)| name)
    }

    pub(crate) fn from_name(name: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Self::Custom(name.to_owned()), |(_, sig)| sig)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (name, sig) in Sig::KNOWN {
            assert_eq!(sig.name(), name);
            assert_eq!(Sig::from_name(name), sig);
        }
        assert_eq!(Sig::from_name("WINCH").name(), "WINCH");
    }
}
