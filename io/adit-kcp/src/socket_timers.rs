//! Timers of the sessions: exactly one entry for each, the earliest of which wakes the driver.

use std::collections::BTreeSet;
use std::task::Waker;

use adit_wire::Time;

/// The timers of all sessions of a socket, by time and slot.
#[derive(Debug, Default)]
pub(super) struct SocketTimers {
    set: BTreeSet<(Time, usize)>,
    /// The waker of the driver, and the time until which it sleeps; it is awake while there is no
    /// waker.
    sleeper: Option<(Waker, Option<Time>)>,
}

impl SocketTimers {
    /// Moves a session's timer. Returns the driver's waker if the driver would sleep beyond it.
    pub(super) fn set_timer(&mut self, slot: usize, old: Option<Time>, new: Time) -> Option<Waker> {
        if let Some(old) = old {
            self.set.remove(&(old, slot));
        }
        self.set.insert((new, slot));
        let early = |until: &Option<Time>| until.is_none_or(|until| new < until);
        if self.sleeper.as_ref().is_some_and(|(_, until)| early(until)) {
            return self.take_waker();
        }
        None
    }

    /// Removes a session's timer.
    pub(super) fn clear_timer(&mut self, slot: usize, old: Option<Time>) {
        if let Some(old) = old {
            self.set.remove(&(old, slot));
        }
    }

    /// Removes the next timer that is due and returns its slot.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<usize> {
        let (at, slot) = *self.set.first()?;
        if at > now {
            return None;
        }
        self.set.pop_first();
        Some(slot)
    }

    /// Registers the driver as asleep. Returns the time of the first timer.
    pub(super) fn register_sleep(&mut self, waker: &Waker) -> Option<Time> {
        let until = self.set.first().map(|(at, _)| *at);
        match &mut self.sleeper {
            Some((old, time)) if old.will_wake(waker) => *time = until,
            sleeper => *sleeper = Some((waker.clone(), until)),
        }
        until
    }

    /// Returns the waker of a sleeping driver.
    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.sleeper.take().map(|(waker, _)| waker)
    }

    /// Registers that the driver was woken otherwise.
    pub(super) fn mark_awake(&mut self) {
        // The waker is kept for comparison; a timer in the past wakes no task.
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
        let mut alarms = SocketTimers::default();
        let waker = Waker::noop();
        assert!(
            alarms.set_timer(1, None, Time(50)).is_none(),
            "the driver is awake"
        );
        assert_eq!(alarms.register_sleep(waker), Some(Time(50)));
        assert!(alarms.set_timer(2, None, Time(60)).is_none());
        assert!(alarms.set_timer(2, Some(Time(60)), Time(40)).is_some());
        assert!(
            alarms.set_timer(3, None, Time(30)).is_none(),
            "already woken"
        );
        alarms.mark_awake();
        assert_eq!(alarms.pop_due(Time(45)), Some(3));
        assert_eq!(alarms.pop_due(Time(45)), Some(2));
        assert_eq!(alarms.pop_due(Time(45)), None);
        alarms.clear_timer(1, Some(Time(50)));
        assert_eq!(alarms.register_sleep(waker), None);
        alarms.mark_awake();
        assert!(alarms.set_timer(4, None, Time(10)).is_none(), "it is awake");
        alarms.register_sleep(waker);
        alarms.pop_due(Time(10));
        alarms.register_sleep(waker);
        assert!(
            alarms.set_timer(4, None, Time(1 << 60)).is_some(),
            "no timer at all"
        );
    }
}
