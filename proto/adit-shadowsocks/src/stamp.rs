//! The timestamp rule of the 2022 edition (SIP022 section 3.1.3).

use adit_wire::{Broken, Unix};

/// Maximum difference of a peer's clock in seconds, inclusive.
const TOLERANCE: u64 = 30;

/// Checks a peer's timestamp and returns the peer's clock minus ours in seconds.
///
/// The peer chooses all 64 bits, so the difference is computed without overflow.
pub(crate) fn check(stamp: Unix, now: Unix) -> Result<i64, Broken> {
    let skew = stamp.skew_from(now);
    if skew.unsigned_abs() > TOLERANCE {
        return Err(Broken::Clock { skew });
    }
    Ok(skew)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_r1_thirty_seconds_inclusive() {
        let now = Unix(1_700_000_000);
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
            assert_eq!(check(Unix(stamp), now).is_ok(), ok, "{stamp}");
        }
    }

    #[test]
    fn ends_of_the_clock() {
        assert_eq!(check(Unix(u64::MAX), Unix(u64::MAX - 30)), Ok(30));
        assert_eq!(check(Unix(0), Unix(30)), Ok(-30));
        assert!(check(Unix(u64::MAX), Unix(0)).is_err());
        assert!(check(Unix(0), Unix(u64::MAX)).is_err());
    }
}
