//! The load of a task, and the lane that follows from it.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::RelayLane;
use super::can_change_lane;
use super::threads::{SessionLane, SessionLaneRef, bulk_lane};

/// Duration of a measurement window.
const WINDOW: Duration = Duration::from_millis(20);
/// Work in a window that makes a task bulk: a tenth. A flow of 60 MB/s through a Shadowsocks server
/// has 3 % on a processor of 2024.
const BULK_WORK: Duration = Duration::from_millis(2);
/// Duration for which a task has to be quiet before it moves back.
const QUIET_WINDOW: Duration = Duration::from_millis(100);
/// Maximum work in that time that counts as quiet: a fiftieth.
const QUIET_WORK: Duration = Duration::from_millis(2);

/// The load of a relay or a session, and its lane. Allocates nothing for a small relay.
#[derive(Debug, Default)]
pub struct TaskLoad(Option<Box<LoadState>>);

/// The state of a task that has worked measurably.
#[derive(Debug)]
struct LoadState {
    since: Instant,
    worked: Duration,
    place: CurrentLane,
}

/// The current lane of a task.
#[derive(Debug, Default)]
enum CurrentLane {
    /// In the lane where its task started.
    #[default]
    Home,
    /// In the bulk lane.
    Bulk { home: Handle },
    /// In the lane of a session, its own or that of one of its channels.
    Session { home: Handle, number: usize },
}

/// Result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadChange {
    /// No reason to move.
    Nothing,
    /// The task is bulk, outside the bulk lane.
    Bulk,
    /// The task is quiet, in the bulk lane.
    Quiet,
}

impl TaskLoad {
    /// Adds `worked`, the measured time that a relay has worked in one poll, on streams that
    /// require the lane `wanted`. Returns the lane to [change](super::change_lane) to, if the relay is
    /// not in the right one.
    pub fn lane_after(&mut self, worked: Duration, wanted: RelayLane) -> Option<Handle> {
        let session = match wanted {
            RelayLane::Session(lane) => Some(lane),
            RelayLane::Home => return self.0.as_mut()?.leave_lane(),
            RelayLane::ByLoad if worked.is_zero() && self.0.is_none() => return None,
            RelayLane::ByLoad => None,
        };
        if !can_change_lane() {
            return None;
        }
        let busy = self.state_mut();
        let seen = busy.measure_work(worked);
        match (&busy.place, session) {
            (CurrentLane::Session { number, .. }, Some(to)) if *number == to.number => None,
            (CurrentLane::Home, Some(SessionLaneRef { number, handle })) => {
                let home = Handle::current();
                busy.place = CurrentLane::Session { home, number };
                Some(handle)
            }
            // From there it may move on.
            (CurrentLane::Bulk { .. }, Some(_)) | (CurrentLane::Session { .. }, _) => {
                busy.leave_lane()
            }
            (CurrentLane::Bulk { .. }, None) if seen == LoadChange::Quiet => busy.leave_lane(),
            (CurrentLane::Home, None) if seen == LoadChange::Bulk => {
                let lane = bulk_lane()?;
                let home = Handle::current();
                busy.place = CurrentLane::Bulk { home };
                Some(lane)
            }
            (CurrentLane::Bulk { .. } | CurrentLane::Home, None) => None,
        }
    }

    /// Adds `worked`, the time that the task of a session has worked in one poll. `shared` is true
    /// if several channels wait for it, and `own` is the lane that it has while it is bulk. Returns
    /// the lane to [change](super::change_lane) to, if the session is not in the right one.
    pub fn session_lane_after(
        &mut self,
        worked: Duration,
        shared: bool,
        own: &mut Option<SessionLane>,
    ) -> Option<Handle> {
        if !can_change_lane() {
            return None;
        }
        let busy = self.state_mut();
        match busy.measure_work(worked) {
            LoadChange::Bulk if shared => {
                let lane = SessionLane::take_least_used()?;
                let SessionLaneRef { number, handle } = lane.lane_ref().clone();
                *own = Some(lane);
                let home = Handle::current();
                busy.place = CurrentLane::Session { home, number };
                Some(handle)
            }
            LoadChange::Quiet => {
                *own = None;
                busy.leave_lane()
            }
            LoadChange::Bulk | LoadChange::Nothing => None,
        }
    }

    fn state_mut(&mut self) -> &mut LoadState {
        self.0.get_or_insert_with(|| {
            Box::new(LoadState {
                since: Instant::now(),
                worked: Duration::ZERO,
                place: CurrentLane::Home,
            })
        })
    }
}

impl LoadState {
    /// Adds work, and evaluates the window once it has ended.
    fn measure_work(&mut self, worked: Duration) -> LoadChange {
        self.worked += worked;
        let now = Instant::now();
        let time = now.duration_since(self.since);
        let seen = match self.place {
            CurrentLane::Home if self.worked >= BULK_WORK => LoadChange::Bulk,
            CurrentLane::Home if time < WINDOW => return LoadChange::Nothing,
            CurrentLane::Home => LoadChange::Nothing,
            _ if time < QUIET_WINDOW => return LoadChange::Nothing,
            _ if self.worked <= QUIET_WORK => LoadChange::Quiet,
            _ => LoadChange::Nothing,
        };
        // The next window starts, in either lane.
        (self.since, self.worked) = (now, Duration::ZERO);
        seen
    }

    /// Marks the task as being in its first lane. Returns that lane if it was in another.
    fn leave_lane(&mut self) -> Option<Handle> {
        match std::mem::take(&mut self.place) {
            CurrentLane::Home => None,
            CurrentLane::Bulk { home } | CurrentLane::Session { home, .. } => Some(home),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::super::spawn_movable;
    use super::super::tests::runtime;
    use super::*;

    /// Returns the result of `work` in a task that can change lanes.
    fn in_a_task<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        runtime().block_on(async {
            let (tell, told) = oneshot::channel();
            spawn_movable(async {
                let _ = tell.send(work());
            });
            told.await.unwrap()
        })
    }

    fn age(load: &mut TaskLoad, time: Duration) {
        load.0.as_mut().unwrap().since -= time;
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_has_one_lane() {
        let (tell, told) = oneshot::channel();
        spawn_movable(async {
            let mut load = TaskLoad::default();
            let _ = tell.send(load.lane_after(BULK_WORK, RelayLane::ByLoad).is_none());
        });
        assert!(told.await.unwrap());
    }

    #[test]
    fn a_relay_that_works_much_is_bulk_until_it_is_quiet() {
        let (lanes, at_home) = in_a_task(|| {
            let mut load = TaskLoad::default();
            let goes =
                |load: &mut TaskLoad, worked| load.lane_after(worked, RelayLane::ByLoad).is_some();
            let mut seen = vec![goes(&mut load, Duration::ZERO)];
            assert!(load.0.is_none(), "no state is kept for a small load");
            seen.push(goes(&mut load, BULK_WORK / 2));
            // A window later it has done too little.
            age(&mut load, WINDOW);
            seen.push(goes(&mut load, BULK_WORK / 4));
            seen.push(goes(&mut load, BULK_WORK / 2));
            seen.push(goes(&mut load, BULK_WORK / 2));
            // In the bulk lane.
            seen.push(goes(&mut load, BULK_WORK));
            age(&mut load, QUIET_WINDOW);
            seen.push(goes(&mut load, QUIET_WORK));
            age(&mut load, QUIET_WINDOW);
            seen.push(goes(&mut load, QUIET_WORK));
            (seen, matches!(load.0.unwrap().place, CurrentLane::Home))
        });
        let seen = [false, false, false, false, true, false, false, true];
        assert_eq!((lanes, at_home), (seen.to_vec(), true));
    }

    #[test]
    fn a_relay_that_belongs_home_stays_there() {
        in_a_task(|| {
            let mut load = TaskLoad::default();
            assert!(load.lane_after(BULK_WORK, RelayLane::Home).is_none());
            assert!(load.0.is_none(), "no state is kept for it");
            assert!(load.lane_after(BULK_WORK, RelayLane::ByLoad).is_some());
            assert!(load.lane_after(BULK_WORK, RelayLane::Home).is_some());
            assert!(load.lane_after(BULK_WORK, RelayLane::Home).is_none());
        });
    }

    #[test]
    fn a_busy_session_has_a_lane_and_its_relays_follow_it() {
        in_a_task(|| {
            let (mut session, mut own) = (TaskLoad::default(), None);
            let alone = session.session_lane_after(BULK_WORK, false, &mut own);
            assert!(alone.is_none() && own.is_none(), "it is not shared");
            let lane = session.session_lane_after(BULK_WORK, true, &mut own);
            assert!(lane.is_some());
            let at = RelayLane::Session(own.as_ref().unwrap().lane_ref().clone());

            let (mut small, mut bulk) = (TaskLoad::default(), TaskLoad::default());
            assert!(
                bulk.lane_after(BULK_WORK, RelayLane::ByLoad).is_some(),
                "to the bulk lane"
            );
            assert!(small.lane_after(Duration::ZERO, at.clone()).is_some());
            assert!(small.lane_after(Duration::ZERO, at.clone()).is_none());
            // By way of the lane in which it started.
            assert!(bulk.lane_after(Duration::ZERO, at.clone()).is_some());
            assert!(matches!(bulk.state_mut().place, CurrentLane::Home));
            assert!(bulk.lane_after(Duration::ZERO, at.clone()).is_some());
            assert!(matches!(
                bulk.state_mut().place,
                CurrentLane::Session { .. }
            ));

            age(&mut session, QUIET_WINDOW);
            assert!(
                session
                    .session_lane_after(QUIET_WORK, true, &mut own)
                    .is_some()
            );
            assert!(own.is_none());
            for relay in [&mut small, &mut bulk] {
                assert!(
                    relay
                        .lane_after(Duration::ZERO, RelayLane::ByLoad)
                        .is_some()
                );
                assert!(matches!(relay.state_mut().place, CurrentLane::Home));
            }
        });
    }
}
