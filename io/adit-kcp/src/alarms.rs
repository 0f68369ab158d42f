//! When which session wants to be looked at: exactly one entry each, the earliest wakes the driver.

use std::collections::BTreeSet;
use std::task::Waker;

use adit_wire::Time;

/// The alarms of all sessions of a socket, by time and slot.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    set: BTreeSet<(Time, usize)>,
    /// The driver, and until when it sleeps; it is awake while there is no waker.
    sleeper: Option<(Waker, Option<Time>)>,
}

impl Alarms {
    /// Moves a session's alarm; gives the driver's waker if that comes earlier than it sleeps.
    pub(super) fn set(&mut self, slot: usize, old: Option<Time>, new: Time) -> Option<Waker> {
        if let Some(old) = old {
            self.set.remove(&(old, slot));
        }
        self.set.insert((new, slot));
        let early = |until: &Option<Time>| until.is_none_or(|until| new < until);
        if self.sleeper.as_ref().is_some_and(|(_, until)| early(until)) {
            return self.wake();
        }
        None
    }

    /// Removes a session's alarm.
    pub(super) fn clear(&mut self, slot: usize, old: Option<Time>) {
        if let Some(old) = old {
            self.set.remove(&(old, slot));
        }
    }

    /// Takes the next alarm that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<usize> {
        let (at, slot) = *self.set.first()?;
        if at > now {
            return None;
        }
        self.set.pop_first();
        Some(slot)
    }

    /// The driver goes to sleep; gives the time of the first alarm.
    pub(super) fn sleep(&mut self, waker: &Waker) -> Option<Time> {
        let until = self.set.first().map(|(at, _)| *at);
        match &mut self.sleeper {
            Some((old, time)) if old.will_wake(waker) => *time = until,
            sleeper => *sleeper = Some((waker.clone(), until)),
        }
        until
    }

    /// Gives the waker of a sleeping driver.
    pub(super) fn wake(&mut self) -> Option<Waker> {
        self.sleeper.take().map(|(waker, _)| waker)
    }

    /// The driver is awake by itself.
    pub(super) fn awake(&mut self) {
        // The waker stays to be compared with; an alarm in the past wakes nobody.
        if let Some((_, until)) = &mut self.sleeper {
            *until = Some(Time(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_alarm_wakes_a_sleeper() {
        let mut alarms = Alarms::default();
        let waker = Waker::noop();
        assert!(alarms.set(1, None, Time(50)).is_none(), "nobody sleeps");
        assert_eq!(alarms.sleep(waker), Some(Time(50)));
        assert!(alarms.set(2, None, Time(60)).is_none());
        assert!(alarms.set(2, Some(Time(60)), Time(40)).is_some());
        assert!(alarms.set(3, None, Time(30)).is_none(), "already woken");
        alarms.awake();
        assert_eq!(alarms.pop(Time(45)), Some(3));
        assert_eq!(alarms.pop(Time(45)), Some(2));
        assert_eq!(alarms.pop(Time(45)), None);
        alarms.clear(1, Some(Time(50)));
        assert_eq!(alarms.sleep(waker), None);
        alarms.awake();
        assert!(alarms.set(4, None, Time(10)).is_none(), "it is awake");
        alarms.sleep(waker);
        alarms.pop(Time(10));
        alarms.sleep(waker);
        assert!(
            alarms.set(4, None, Time(1 << 60)).is_some(),
            "no alarm at all"
        );
    }
}
