//! The tolerance for a client's clock.

use adit_wire::{ProtocolError, UnixTime};

use crate::frame::AdlerKind;
use crate::hello::seconds_field;
use crate::protocol_kind::ProtocolFamily;

/// The rule of one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    /// Maximum difference in seconds, inclusive.
    within: u32,
    /// Number of seconds before the server's start from which messages are accepted; the old
    /// protocols have no other protection against replays across a restart.
    before_start: Option<u32>,
}

const DAY: u32 = 86_400;

/// Returns the rule of a protocol; `None` if its first message has no time.
pub(crate) const fn time_window(family: ProtocolFamily) -> Option<TimeWindow> {
    let (within, before_start) = match family {
        ProtocolFamily::Crc { auth: true } => (300, Some(0)),
        ProtocolFamily::Adler(AdlerKind::V1) => (3600, Some(1800)),
        ProtocolFamily::Adler(AdlerKind::V4)
        | ProtocolFamily::Mac(_)
        | ProtocolFamily::Chain(_) => (DAY, None),
        _ => return None,
    };
    Some(TimeWindow {
        within,
        before_start,
    })
}

impl TimeWindow {
    /// Checks a client's time, which has only 32 bits: differences are signed, so that the field
    /// may wrap.
    pub(crate) fn check_time(
        self,
        time: u32,
        now: UnixTime,
        started: UnixTime,
    ) -> Result<(), ProtocolError> {
        let skew = time.wrapping_sub(seconds_field(now)).cast_signed();
        if skew.unsigned_abs() > self.within {
            let skew = i64::from(skew);
            return Err(ProtocolError::Clock { skew });
        }
        if let Some(before) = self.before_start {
            let since = time.wrapping_sub(seconds_field(started)).cast_signed();
            if since < 0 && since.unsigned_abs() > before {
                return Err(ProtocolError::Replayed);
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

    fn check(kind: ProtocolKind, time: u32, started: u32) -> Result<(), ProtocolError> {
        let window = time_window(kind.family()).unwrap();
        window.check_time(time, UnixTime(NOW.into()), UnixTime(started.into()))
    }

    #[test]
    fn a_day_inclusive() {
        for kind in ProtocolKind::ALL.into_iter().filter(|k| k.has_users()) {
            assert_eq!(check(kind, NOW + DAY, NOW), Ok(()));
            assert_eq!(check(kind, NOW - DAY, NOW), Ok(()));
            let skew = i64::from(DAY) + 1;
            assert_eq!(
                check(kind, NOW + DAY + 1, NOW),
                Err(ProtocolError::Clock { skew })
            );
            let skew = -skew;
            assert_eq!(
                check(kind, NOW - DAY - 1, NOW),
                Err(ProtocolError::Clock { skew })
            );
            assert!(check(kind, NOW.wrapping_add(1 << 31), NOW).is_err());
        }
    }

    #[test]
    fn old_protocols_look_at_the_start() {
        use ProtocolKind::{AuthSha1, AuthSimple};
        assert_eq!(check(AuthSimple, NOW - 1, NOW - 1), Ok(()));
        assert_eq!(
            check(AuthSimple, NOW - 2, NOW - 1),
            Err(ProtocolError::Replayed)
        );
        assert_eq!(check(AuthSha1, NOW - 1800, NOW), Ok(()));
        assert_eq!(
            check(AuthSha1, NOW - 1801, NOW),
            Err(ProtocolError::Replayed)
        );
        assert!(matches!(
            check(AuthSimple, NOW - 301, 0),
            Err(ProtocolError::Clock { .. })
        ));
    }

    #[test]
    fn the_field_may_wrap() {
        let window = time_window(ProtocolKind::AuthChainA.family()).unwrap();
        let now = UnixTime((1 << 32) + 5);
        assert_eq!(window.check_time(u32::MAX, now, now), Ok(()));
    }
}
