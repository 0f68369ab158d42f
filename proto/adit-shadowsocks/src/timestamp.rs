//! The timestamp rule of the 2022 edition (SIP022 section 3.1.3).

use adit_wire::{ProtocolError, UnixTime};

/// Maximum difference between the timestamp of a request of the 2022 edition and the receiver's clock, in seconds,
/// inclusive (SIP022 section 3.1.3).
pub const MAX_CLOCK_SKEW: u64 = 30;

/// Checks a peer's timestamp and returns the peer's clock minus ours in seconds.
///
/// The peer chooses all 64 bits, so the difference is computed without overflow.
pub(crate) fn check_timestamp(stamp: UnixTime, now: UnixTime) -> Result<i64, ProtocolError> {
    let skew = stamp.skew_from(now);
    if skew.unsigned_abs() > MAX_CLOCK_SKEW {
        return Err(ProtocolError::Clock { skew });
    }
    Ok(skew)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_r1_thirty_seconds_inclusive() {
        let now = UnixTime(1_700_000_000);
        for (stamp, ok) in [
            (now.0 + 30, true),
            (now.0 - 30, true),
            (now.0 + 31, false),
            (now.0 - 31, false),
            (0, false),
            (1 << 63, false),
            (u64::MAX, false),
            (now.0.wrapping_sub(1 << 63), false),
        ] {
            assert_eq!(check_timestamp(UnixTime(stamp), now).is_ok(), ok, "{stamp}");
        }
    }

    #[test]
    fn ends_of_the_clock() {
        assert_eq!(
            check_timestamp(UnixTime(u64::MAX), UnixTime(u64::MAX - 30)),
            Ok(30)
        );
        assert_eq!(check_timestamp(UnixTime(0), UnixTime(30)), Ok(-30));
        assert!(check_timestamp(UnixTime(u64::MAX), UnixTime(0)).is_err());
        assert!(check_timestamp(UnixTime(0), UnixTime(u64::MAX)).is_err());
    }
}
