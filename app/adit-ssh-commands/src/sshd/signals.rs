//! Signal names of SSH (RFC 4254 section 6.10).

use rustix::process::Signal;

/// Name for signals without a standard name, as in OpenSSH.
pub(super) const UNNAMED_SIGNAL: &str = "SIG@openssh.com";

/// Names and signals of RFC 4254.
const SIGNAL_NAMES: [(&str, Signal); 13] = [
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

/// Returns the signal with this name, which has no `SIG` prefix.
pub(super) fn signal_by_name(name: &str) -> Option<Signal> {
    let found = SIGNAL_NAMES.iter().find(|(one, _)| *one == name);
    found.map(|(_, signal)| *signal)
}

/// Returns the name of a signal number.
pub(super) fn signal_name(number: i32) -> &'static str {
    let found = SIGNAL_NAMES
        .iter()
        .find(|(_, signal)| signal.as_raw() == number);
    found.map_or(UNNAMED_SIGNAL, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for (one, signal) in SIGNAL_NAMES {
            assert_eq!(signal_by_name(one), Some(signal));
            assert_eq!(signal_name(signal.as_raw()), one);
        }
        assert_eq!(signal_by_name("SIGTERM"), None);
        assert_eq!(signal_name(Signal::WINCH.as_raw()), UNNAMED_SIGNAL);
    }
}
