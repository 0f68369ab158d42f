//! A fleet under load, whose nodes and store are killed, stopped, cut off and emptied at random.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use adit_fleet::FleetUser;
use adit_interop::TEST_TIMEOUT;
use adit_interop::store_server::StoreServer;
use adit_link::SplitMix64;
use anyhow::{Context, Result, ensure};

use crate::{CountingSink, FleetNode, FleetWorld, NodeOptions, StoreProxy, Upload, open_stream};

const NODES: usize = 4;
/// Users who exist from the beginning to the end.
const USERS: usize = 20;
/// Bytes per second of each of them.
const RATE: u64 = 256 << 10;
/// Lost replies of the store, in thousandths.
const LOST: u16 = 20;
/// Time in which all nodes know everything, once nothing happens any more.
const CALM: Duration = Duration::from_secs(45);
/// Number of users who ask a node at the same time.
const ASKING: usize = 8;

/// The events of a run, and the faults that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChaosReport {
    /// The events, and how often each has happened.
    pub events: BTreeMap<&'static str, u32>,
    /// Replies of the store that were lost.
    pub lost_replies: u64,
    /// Attempts to get in without the password.
    pub checks: u32,
    /// Attempts of these that succeeded.
    pub strangers: u32,
    /// Pairs of a user and a node that refuses the user at the end.
    pub refused: u32,
    /// Pairs of a user who was removed or may not connect, and a node that lets the user in at the end.
    pub let_in: u32,
    /// Users that the store does not have at the end, or has and should not.
    pub differing: u32,
    /// Users of whom the store has counted more bytes than they have sent.
    pub counted_twice: u32,
    /// Nodes that have panicked.
    pub panics: u32,
    /// Bytes that were sent and counted; what the store had counted before it was emptied is not included.
    pub sent: u64,
    /// See `sent`.
    pub counted: u64,
    /// The time until all nodes knew everything at the end.
    pub calm_after: Duration,
}

impl ChaosReport {
    /// Returns the number of faults.
    #[must_use]
    pub const fn faults(&self) -> u32 {
        self.strangers
            + self.refused
            + self.let_in
            + self.differing
            + self.counted_twice
            + self.panics
    }
}

struct Chaos {
    world: FleetWorld,
    /// The path of each node to the store.
    paths: Vec<StoreProxy>,
    sink: CountingSink,
    rng: SplitMix64,
    /// Users who were added meanwhile, those who were removed, and those who exist and may not connect.
    added: Vec<FleetUser>,
    removed: Vec<FleetUser>,
    barred: Vec<FleetUser>,
    report: ChaosReport,
}

/// Lets a fleet of `program` run for this time, while the seed decides what happens to it.
pub fn run_chaos(program: &Path, time: Duration, seed: u64) -> Result<ChaosReport> {
    let (mut chaos, users) = Chaos::start(program, seed)?;
    let upload =
        |(node, user): (&FleetNode, _)| Upload::start(node.addr(), user, chaos.sink.addr(), RATE);
    let nodes = chaos.world.nodes.iter().cycle();
    let uploads: Vec<Upload> = nodes.zip(&users).map(upload).collect();
    let begin = Instant::now();
    while begin.elapsed() < time {
        chaos.step()?;
        chaos.check_stranger(users.first().context("a user")?);
        chaos.pause(100..1000);
    }
    let sent = users.iter().zip(uploads);
    let sent: BTreeMap<u32, u64> = sent
        .map(|(user, upload)| (user.id, upload.stop().sent))
        .collect();
    chaos.check_users(&users)?;
    chaos.world.settled_count()?;
    chaos.check_counters(&sent)?;
    chaos.check_names(&users)?;
    for at in 0..NODES {
        let log = chaos.node(at)?.stop()?;
        chaos.check_log(&log);
    }
    chaos.report.lost_replies = chaos.paths.iter().map(StoreProxy::lost_count).sum();
    Ok(chaos.report)
}

/// Calls the store until it answers: a connection to a store that was killed fails.
fn until_answered<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match call() {
            Err(_) if start.elapsed() < TEST_TIMEOUT => sleep(Duration::from_millis(50)),
            outcome => return outcome,
        }
    }
}

impl Chaos {
    fn start(program: &Path, seed: u64) -> Result<(Self, Vec<FleetUser>)> {
        let mut world = FleetWorld::new(StoreServer::start_persistent()?)?;
        let names = (0..USERS).map(|n| format!("user-{n}"));
        let set = |user: &mut FleetUser| user.limits.quota = Some(1 << 40);
        let users = world.operator.add_users(names, set)?;
        let options = NodeOptions::default();
        let mut paths = Vec::with_capacity(NODES);
        for (node, seed) in (0..NODES).zip(seed..) {
            // Half of the nodes have a bad path to the store.
            let lost = if node < NODES / 2 { LOST } else { 0 };
            let path = StoreProxy::start(&world.store.socket(), lost, seed)?;
            world.start_node_behind(program, &path, &options)?;
            paths.push(path);
        }
        world.wait_for_tables(TEST_TIMEOUT)?;
        let chaos = Self {
            world,
            paths,
            sink: CountingSink::start()?,
            rng: SplitMix64::new(seed),
            added: Vec::new(),
            removed: Vec::new(),
            barred: Vec::new(),
            report: ChaosReport::default(),
        };
        Ok((chaos, users))
    }

    fn node(&mut self, at: usize) -> Result<&mut FleetNode> {
        self.world.nodes.get_mut(at).context("a node")
    }

    fn pause(&mut self, millis: std::ops::Range<u64>) {
        sleep(Duration::from_millis(self.rng.pick(millis)));
    }

    /// Lets one thing happen, and ends what must end.
    fn step(&mut self) -> Result<()> {
        let what = match self.rng.pick(0..100) {
            0..30 => self.kill_node(),
            30..45 => self.stall_store(),
            45..55 => self.restart_store(),
            55..62 => self.empty_store(),
            62..66 => Ok(self.cut_nodes()),
            66..69 => self.part_node(StoreProxy::set_cut, "a node is cut off"),
            69..72 => self.part_node(StoreProxy::set_silent, "the path of a node is silent"),
            72..86 => self.add_user(),
            86..90 => self.disable_new_user(),
            90..93 => self.replace_user(None, "a user is replaced by another one of the name"),
            93..96 => self.replace_user(Some(1), "a user is replaced by one who has expired"),
            _ => self.remove_user(),
        }?;
        *self.report.events.entry(what).or_default() += 1;
        Ok(())
    }

    fn kill_node(&mut self) -> Result<&'static str> {
        let at = usize::try_from(self.rng.pick(0..NODES as u64))?;
        let log = self.node(at)?.kill()?;
        self.check_log(&log);
        self.node(at)?.start_process()?;
        Ok("a node is killed")
    }

    fn stall_store(&mut self) -> Result<&'static str> {
        self.world.store.stall()?;
        self.pause(200..3000);
        self.world.store.resume()?;
        Ok("the store stands still")
    }

    fn restart_store(&mut self) -> Result<&'static str> {
        self.world.store.kill()?;
        self.pause(0..1500);
        self.world.store.restart()?;
        Ok("the store is killed")
    }

    /// Empties the store, and restores it from what the operator has.
    fn empty_store(&mut self) -> Result<&'static str> {
        let records = until_answered(|| self.world.operator.snapshot())?;
        let reply = self.world.store.run(&["FLUSHALL"])?;
        ensure!(reply == "OK", "FLUSHALL: {reply}");
        self.pause(200..3000);
        until_answered(|| self.world.operator.restore(&records))?;
        Ok("the store is emptied and restored")
    }

    fn cut_nodes(&mut self) -> &'static str {
        let set = |chaos: &Self, is_cut| {
            let half = chaos.paths.iter().take(NODES / 2);
            half.for_each(|path| path.set_cut(is_cut));
        };
        set(self, true);
        self.pause(200..4000);
        set(self, false);
        "half of the nodes are cut off"
    }

    /// Parts one node from the store, for longer than its calls wait.
    fn part_node(
        &mut self,
        set: impl Fn(&StoreProxy, bool),
        what: &'static str,
    ) -> Result<&'static str> {
        let at = usize::try_from(self.rng.pick(0..NODES as u64))?;
        set(self.paths.get(at).context("a path")?, true);
        self.pause(500..8000);
        set(self.paths.get(at).context("a path")?, false);
        Ok(what)
    }

    fn add_user(&mut self) -> Result<&'static str> {
        let user = self.new_user()?;
        self.added.push(user);
        Ok("a user is added")
    }

    fn new_user(&self) -> Result<FleetUser> {
        let number = self.added.len() + self.removed.len() + self.barred.len();
        let name = format!("new-{number}");
        until_answered(|| self.world.operator.add_user(&name))
    }

    /// Adds a user, and disables them at once: nodes that are busy read both changes together.
    fn disable_new_user(&mut self) -> Result<&'static str> {
        let mut user = self.new_user()?;
        user.disabled = true;
        let disabled = std::slice::from_ref(&user);
        until_answered(|| self.world.operator.put_users(disabled))?;
        self.barred.push(user);
        Ok("a user is added and disabled")
    }

    /// Removes a user, and adds another one of the same name who expires then.
    fn replace_user(&mut self, expires: Option<u64>, what: &'static str) -> Result<&'static str> {
        let Some(old) = self.added.pop() else {
            return self.add_user();
        };
        until_answered(|| self.world.operator.delete_user(&old))?;
        let name = || [old.name.clone()];
        let set = |user: &mut FleetUser| user.limits.expires = expires;
        let new = until_answered(|| self.world.operator.add_users(name(), set))?;
        self.removed.push(old);
        match expires {
            None => self.added.extend(new),
            Some(_) => self.barred.extend(new),
        }
        Ok(what)
    }

    fn remove_user(&mut self) -> Result<&'static str> {
        let Some(user) = self.added.pop() else {
            return self.add_user();
        };
        until_answered(|| self.world.operator.delete_user(&user))?;
        self.removed.push(user);
        Ok("a user is removed")
    }

    fn is_let_in(&self, node: &FleetNode, user: &FleetUser) -> bool {
        open_stream(node.addr(), user, self.sink.addr()).is_ok()
    }

    /// Tries to get in without the password, at every node.
    fn check_stranger(&mut self, known: &FleetUser) {
        let stranger = FleetUser::new(known.id, known.name.clone(), [7; 32]);
        let nodes = self.world.nodes.iter();
        let let_in = nodes.filter(|node| self.is_let_in(node, &stranger)).count();
        self.report.strangers += count(let_in);
        self.report.checks += count(NODES);
    }

    /// Waits until all users are let in everywhere, and those who were removed or barred nowhere.
    fn check_users(&mut self, users: &[FleetUser]) -> Result<()> {
        let start = Instant::now();
        loop {
            let refused = self.count_answers(users.iter().chain(&self.added), false)?;
            let let_in = self.count_answers(self.removed.iter().chain(&self.barred), true)?;
            if (refused, let_in) == (0, 0) || start.elapsed() > CALM {
                self.report.refused = count(refused);
                self.report.let_in = count(let_in);
                self.report.calm_after = start.elapsed();
                return Ok(());
            }
            sleep(Duration::from_millis(200));
        }
    }

    /// Returns the number of pairs of a user and a node with this answer. The nodes are asked at the same time, each by
    /// several users: they wait before they refuse.
    fn count_answers<'a>(
        &self,
        users: impl Iterator<Item = &'a FleetUser>,
        is_let_in: bool,
    ) -> Result<usize> {
        let users: Vec<&FleetUser> = users.collect();
        let sink = self.sink.addr();
        let ask = |node, users: &[&FleetUser]| {
            let answers = users
                .iter()
                .map(|user| open_stream(node, user, sink).is_ok());
            answers.filter(|answer| *answer == is_let_in).count()
        };
        let addrs: Vec<SocketAddr> = self.world.nodes.iter().map(FleetNode::addr).collect();
        thread::scope(|scope| {
            let parts = users.chunks(users.len().div_ceil(ASKING).max(1));
            let parts = parts.flat_map(|users| addrs.iter().map(move |node| (*node, users)));
            let asking: Vec<_> = parts
                .map(|(node, users)| scope.spawn(move || ask(node, users)))
                .collect();
            let counts = asking.into_iter().map(|one| one.join().ok());
            let sum: Option<usize> = counts.sum();
            sum.context("a thread")
        })
    }

    fn check_counters(&mut self, sent: &BTreeMap<u32, u64>) -> Result<()> {
        self.report.sent = sent.values().sum();
        for total in self.world.usage()? {
            // The other users have sent nothing.
            if let Some(sent) = sent.get(&total.user) {
                self.report.counted += total.sum();
                self.report.counted_twice += u32::from(total.sum() > *sent);
            }
        }
        Ok(())
    }

    fn check_names(&mut self, users: &[FleetUser]) -> Result<()> {
        let stored = self.world.operator.user_names()?;
        let wanted: Vec<&String> = users
            .iter()
            .chain(&self.added)
            .chain(&self.barred)
            .map(|user| &user.name)
            .collect();
        let missing = wanted.iter().filter(|name| !stored.contains(name)).count();
        let foreign = stored.iter().filter(|name| !wanted.contains(name)).count();
        self.report.differing = count(missing + foreign);
        Ok(())
    }

    fn check_log(&mut self, log: &str) {
        self.report.panics += u32::from(log.contains("panicked"));
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
