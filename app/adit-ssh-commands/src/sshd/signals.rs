//! Signals by the names that SSH has for them (RFC 4254 section 6.10).

use rustix::process::Signal;

/// What stands for a signal without a name, as in OpenSSH.
pub(super) const OTHER: &str = "SIG@openssh.com";

const NAMES: [(&str, Signal); 13] = [
    ("ABRT", Signal::ABORT),
    ("ALRM", Signal::ALARM),
    ("FPE", Signal::FPE),
    ("HUP", Signal::HUP),
    ("ILL", Signal::ILL),
    ("INT", Signal::INT),
    ("KILL", Signal::KILL),
    ("PIPE", Signal::PIPE),
    ("QUIT", Signal::QUIT),
    ("SEGV", Signal::SEGV),
    ("TERM", Signal::TERM),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

/// The signal of a name without SIG.
pub(super) fn by_name(name: &str) -> Option<Signal> {
    let found = NAMES.iter().find(|(one, _)| *one == name);
    found.map(|(_, signal)| *signal)
}

/// The name of a signal's number.
pub(super) fn name(number: i32) -> &'static str {
    let found = NAMES.iter().find(|(_, signal)| signal.as_raw() == number);
    found.map_or(OTHER, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for (one, signal) in NAMES {
            assert_eq!(by_name(one), Some(signal));
            assert_eq!(name(signal.as_raw()), one);
        }
        assert_eq!(by_name("SIGTERM"), None);
        assert_eq!(name(Signal::WINCH.as_raw()), OTHER);
    }
}
