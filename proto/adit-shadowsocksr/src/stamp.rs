//! The tolerance for a client's clock.

use adit_wire::{Broken, Unix};

use crate::frame::AdlerKind;
use crate::hello::seconds;
use crate::kind::Family;

/// The rule of one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Maximum difference in seconds, inclusive.
    within: u32,
    /// Number of seconds before the server's start from which messages are accepted; the old
    /// protocols have no other protection against replays across a restart.
    before_start: Option<u32>,
}

const DAY: u32 = 86_400;

/// Returns the rule of a protocol; `None` if its first message has no time.
pub(crate) const fn window(family: Family) -> Option<Window> {
    let (within, before_start) = match family {
        Family::Crc { auth: true } => (300, Some(0)),
        Family::Adler(AdlerKind::V1) => (3600, Some(1800)),
        Family::Adler(AdlerKind::V4) | Family::Mac(_) | Family::Chain(_) => (DAY, None),
        _ => return None,
    };
    Some(Window {
        within,
        before_start,
    })
}

impl Window {
    /// Checks a client's time, which has only 32 bits: differences are signed, so that the field
    /// may wrap.
    pub(crate) fn check(self, time: u32, now: Unix, started: Unix) -> Result<(), Broken> {
        let skew = time.wrapping_sub(seconds(now)).cast_signed();
        if skew.unsigned_abs() > self.within {
            let skew = i64::from(skew);
            return Err(Broken::Clock { skew });
        }
        if let Some(before) = self.before_start {
            let since = time.wrapping_sub(seconds(started)).cast_signed();
            if since < 0 && since.unsigned_abs() > before {
                return Err(Broken::Replayed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProtocolKind;

    const NOW: u32 = 1_700_000_000;

    fn check(kind: ProtocolKind, time: u32, started: u32) -> Result<(), Broken> {
        let window = window(kind.family()).unwrap();
        window.check(time, Unix(NOW.into()), Unix(started.into()))
    }

    #[test]
    fn a_day_inclusive() {
        for kind in ProtocolKind::ALL.into_iter().filter(|k| k.has_users()) {
            assert_eq!(check(kind, NOW + DAY, NOW), Ok(()));
            assert_eq!(check(kind, NOW - DAY, NOW), Ok(()));
            let skew = i64::from(DAY) + 1;
            assert_eq!(check(kind, NOW + DAY + 1, NOW), Err(Broken::Clock { skew }));
            let skew = -skew;
            assert_eq!(check(kind, NOW - DAY - 1, NOW), Err(Broken::Clock { skew }));
            assert!(check(kind, NOW.wrapping_add(1 << 31), NOW).is_err());
        }
    }

    #[test]
    fn old_protocols_look_at_the_start() {
        use ProtocolKind::{AuthSha1, AuthSimple};
        assert_eq!(check(AuthSimple, NOW - 1, NOW - 1), Ok(()));
        assert_eq!(check(AuthSimple, NOW - 2, NOW - 1), Err(Broken::Replayed));
        assert_eq!(check(AuthSha1, NOW - 1800, NOW), Ok(()));
        assert_eq!(check(AuthSha1, NOW - 1801, NOW), Err(Broken::Replayed));
        assert!(matches!(
            check(AuthSimple, NOW - 301, 0),
            Err(Broken::Clock { .. })
        ));
    }

    #[test]
    fn the_field_may_wrap() {
        let window = window(ProtocolKind::AuthChainA.family()).unwrap();
        let now = Unix((1 << 32) + 5);
        assert_eq!(window.check(u32::MAX, now, now), Ok(()));
    }
}
