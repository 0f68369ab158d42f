//! How busy a task is, and in which lane that puts it.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::RelayLane;
use super::can_change;
use super::threads::{OwnLane, SessionLane, bulk_lane};

/// The time over which a task's work is looked at.
const WINDOW: Duration = Duration::from_millis(20);
/// Work in a window that makes a task bulk: a tenth. A flow of 60 MB/s through a Shadowsocks
/// server has 3 % on a processor of 2024.
const BULK: Duration = Duration::from_millis(2);
/// The time over which a task has to be quiet before it comes back.
const QUIET_WINDOW: Duration = Duration::from_millis(100);
/// Work in that time, or less, which is quiet: a fiftieth.
const QUIET: Duration = Duration::from_millis(2);

/// How busy a relay or a session is, and where it runs. Nothing is kept of a small relay.
#[derive(Debug, Default)]
pub struct Load(Option<Box<Busy>>);

#[derive(Debug)]
struct Busy {
    since: Instant,
    worked: Duration,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    /// Where its task began.
    #[default]
    Home,
    /// In the bulk lane.
    Bulk { home: Handle },
    /// In the lane of a session, its own or that of one of its channels.
    Session { home: Handle, number: usize },
}

/// What a window has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Nothing that would move it.
    Nothing,
    /// It is bulk where there is none.
    Bulk,
    /// It is quiet where bulk is.
    Quiet,
}

impl Load {
    /// A relay has worked for `worked` in one poll, as far as it is measured, on streams that want
    /// it to run in `wanted`. Returns the lane to [change](super::change) to, if it is not in the
    /// right one.
    pub fn lane_after(&mut self, worked: Duration, wanted: RelayLane) -> Option<Handle> {
        let session = match wanted {
            RelayLane::Session(lane) => Some(lane),
            RelayLane::Home => return self.0.as_mut()?.goes_home(),
            RelayLane::ByLoad if worked.is_zero() && self.0.is_none() => return None,
            RelayLane::ByLoad => None,
        };
        if !can_change() {
            return None;
        }
        let busy = self.busy();
        let seen = busy.look(worked);
        match (&busy.place, session) {
            (Place::Session { number, .. }, Some(to)) if *number == to.number => None,
            (Place::Home, Some(OwnLane { number, handle })) => {
                let home = Handle::current();
                busy.place = Place::Session { home, number };
                Some(handle)
            }
            // From there it may go on.
            (Place::Bulk { .. }, Some(_)) | (Place::Session { .. }, _) => busy.goes_home(),
            (Place::Bulk { .. }, None) if seen == Seen::Quiet => busy.goes_home(),
            (Place::Home, None) if seen == Seen::Bulk => {
                let lane = bulk_lane()?;
                let home = Handle::current();
                busy.place = Place::Bulk { home };
                Some(lane)
            }
            (Place::Bulk { .. } | Place::Home, None) => None,
        }
    }

    /// The task of a session has worked for `worked` in one poll; `shared` says whether several
    /// channels wait for it. Returns the lane to [change](super::change) to, if it is not in the
    /// right one; `own` is the lane that it has while it is bulk.
    pub fn session_lane_after(
        &mut self,
        worked: Duration,
        shared: bool,
        own: &mut Option<SessionLane>,
    ) -> Option<Handle> {
        if !can_change() {
            return None;
        }
        let busy = self.busy();
        match busy.look(worked) {
            Seen::Bulk if shared => {
                let lane = SessionLane::take()?;
                let OwnLane { number, handle } = lane.own().clone();
                *own = Some(lane);
                let home = Handle::current();
                busy.place = Place::Session { home, number };
                Some(handle)
            }
            Seen::Quiet => {
                *own = None;
                busy.goes_home()
            }
            Seen::Bulk | Seen::Nothing => None,
        }
    }

    fn busy(&mut self) -> &mut Busy {
        self.0.get_or_insert_with(|| {
            Box::new(Busy {
                since: Instant::now(),
                worked: Duration::ZERO,
                place: Place::Home,
            })
        })
    }
}

impl Busy {
    fn look(&mut self, worked: Duration) -> Seen {
        self.worked += worked;
        let now = Instant::now();
        let time = now.duration_since(self.since);
        let seen = match self.place {
            Place::Home if self.worked >= BULK => Seen::Bulk,
            Place::Home if time < WINDOW => return Seen::Nothing,
            Place::Home => Seen::Nothing,
            _ if time < QUIET_WINDOW => return Seen::Nothing,
            _ if self.worked <= QUIET => Seen::Quiet,
            _ => Seen::Nothing,
        };
        // Another window begins, in either lane.
        (self.since, self.worked) = (now, Duration::ZERO);
        seen
    }

    fn goes_home(&mut self) -> Option<Handle> {
        match std::mem::take(&mut self.place) {
            Place::Home => None,
            Place::Bulk { home } | Place::Session { home, .. } => Some(home),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::super::spawn;
    use super::super::tests::runtime;
    use super::*;

    /// What `work` returns in a task that can change lanes.
    fn in_a_task<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        runtime().block_on(async {
            let (tell, told) = oneshot::channel();
            spawn(async {
                let _ = tell.send(work());
            });
            told.await.unwrap()
        })
    }

    fn age(load: &mut Load, time: Duration) {
        load.0.as_mut().unwrap().since -= time;
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_has_one_lane() {
        let (tell, told) = oneshot::channel();
        spawn(async {
            let mut load = Load::default();
            let _ = tell.send(load.lane_after(BULK, RelayLane::ByLoad).is_none());
        });
        assert!(told.await.unwrap());
    }

    #[test]
    fn a_relay_that_works_much_is_bulk_until_it_is_quiet() {
        let (lanes, at_home) = in_a_task(|| {
            let mut load = Load::default();
            let goes =
                |load: &mut Load, worked| load.lane_after(worked, RelayLane::ByLoad).is_some();
            let mut seen = vec![goes(&mut load, Duration::ZERO)];
            assert!(load.0.is_none(), "nothing is kept of little");
            seen.push(goes(&mut load, BULK / 2));
            // A window later it has done too little.
            age(&mut load, WINDOW);
            seen.push(goes(&mut load, BULK / 4));
            seen.push(goes(&mut load, BULK / 2));
            seen.push(goes(&mut load, BULK / 2));
            // There.
            seen.push(goes(&mut load, BULK));
            age(&mut load, QUIET_WINDOW);
            seen.push(goes(&mut load, QUIET));
            age(&mut load, QUIET_WINDOW);
            seen.push(goes(&mut load, QUIET));
            (seen, matches!(load.0.unwrap().place, Place::Home))
        });
        let seen = [false, false, false, false, true, false, false, true];
        assert_eq!((lanes, at_home), (seen.to_vec(), true));
    }

    #[test]
    fn a_relay_that_belongs_home_stays_there() {
        in_a_task(|| {
            let mut load = Load::default();
            assert!(load.lane_after(BULK, RelayLane::Home).is_none());
            assert!(load.0.is_none(), "nothing is kept of it");
            assert!(load.lane_after(BULK, RelayLane::ByLoad).is_some());
            assert!(load.lane_after(BULK, RelayLane::Home).is_some());
            assert!(load.lane_after(BULK, RelayLane::Home).is_none());
        });
    }

    #[test]
    fn a_busy_session_has_a_lane_and_its_relays_follow_it() {
        in_a_task(|| {
            let (mut session, mut own) = (Load::default(), None);
            let alone = session.session_lane_after(BULK, false, &mut own);
            assert!(alone.is_none() && own.is_none(), "nobody shares it");
            let lane = session.session_lane_after(BULK, true, &mut own);
            assert!(lane.is_some());
            let at = RelayLane::Session(own.as_ref().unwrap().own().clone());

            let (mut small, mut bulk) = (Load::default(), Load::default());
            assert!(
                bulk.lane_after(BULK, RelayLane::ByLoad).is_some(),
                "to the bulk lane"
            );
            assert!(small.lane_after(Duration::ZERO, at.clone()).is_some());
            assert!(small.lane_after(Duration::ZERO, at.clone()).is_none());
            // By way of the lane in which it began.
            assert!(bulk.lane_after(Duration::ZERO, at.clone()).is_some());
            assert!(matches!(bulk.busy().place, Place::Home));
            assert!(bulk.lane_after(Duration::ZERO, at.clone()).is_some());
            assert!(matches!(bulk.busy().place, Place::Session { .. }));

            age(&mut session, QUIET_WINDOW);
            assert!(session.session_lane_after(QUIET, true, &mut own).is_some());
            assert!(own.is_none());
            for relay in [&mut small, &mut bulk] {
                assert!(
                    relay
                        .lane_after(Duration::ZERO, RelayLane::ByLoad)
                        .is_some()
                );
                assert!(matches!(relay.busy().place, Place::Home));
            }
        });
    }
}
