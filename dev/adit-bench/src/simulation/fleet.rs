//! The running simulation: its events, its messages and its faults.

use std::collections::BTreeMap;

use adit_fleet::{ChangeBatch, UsageBatch, UserTotal};
use adit_link::SplitMix64;
use anyhow::{Context, Result};

use super::event_queue::{EventQueue, Micros};
use super::ledger::Ledger;
use super::node_table::{NodeTable, StoreCopy, holds_records};
use super::outcome::Outcome;
use super::scenario::{MILLISECOND, SECOND, Scenario};
use super::sim_node::{Leases, SimNode};
use super::store_port::{Backup, StorePort};
use super::user_table::News;

/// Time after which a node sends a batch or a question again.
const CALL_DEADLINE: Micros = 500 * MILLISECOND;
/// Time for which the store keeps a question for changes without news.
const WAIT_FOR_CHANGES: Micros = 5 * SECOND;
const HEARTBEAT: Micros = 5 * SECOND;
/// Time for which a killed node is down.
const DOWN_FOR: Micros = SECOND;

/// An event at an instant of the simulation.
#[derive(Debug)]
enum Event {
    /// A flow moves its next piece.
    Traffic(usize),
    /// A node's regular batch is due.
    Flush(Sender),
    /// A batch has no answer in time.
    FlushOverdue(Sender, u64),
    /// A question for changes has no answer in time, or is due.
    QuestionOverdue(Sender, u64),
    /// A question for totals of new users has no answer in time.
    TotalsOverdue(Sender, Vec<u32>),
    Heartbeat(Sender),
    /// A request reaches the store.
    Request(Sender, Request),
    /// A reply reaches a node.
    Reply(Sender, Reply),
    /// The store answers a question that has waited for long enough.
    NothingNew(Sender, u64),
    KillSome,
    Start(u32),
    ChangeUser,
    EmptyStore,
    SeedStore,
    TakeBackup,
    RestoreBackup,
}

/// A process of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sender {
    node: u32,
    life: u32,
}

#[derive(Debug)]
enum Request {
    Usage(UsageBatch),
    /// The totals of users whom the node has not had before.
    Totals(Vec<u32>),
    /// The number of the question, and the change after which there may be news.
    Changes(u64, u64),
    /// The number of the question that found a gap.
    Snapshot(u64),
    Heartbeat,
}

#[derive(Debug)]
enum Reply {
    /// The batch, or `None` for totals alone; and the number of live nodes.
    Totals(Option<u64>, Vec<UserTotal>),
    Changes(u64, ChangeBatch),
    Snapshot(u64, StoreCopy),
}

/// A simulation on its way.
pub(super) struct Fleet<'a> {
    scenario: &'a Scenario,
    queue: EventQueue<Event>,
    rng: SplitMix64,
    store: StorePort,
    nodes: Vec<SimNode>,
    with_records: bool,
    ledger: Ledger,
    outcome: Outcome,
    /// Nodes that wait for changes: the question, and the last change they know.
    waiting: BTreeMap<u32, (Sender, u64, u64)>,
    written: BTreeMap<u64, Micros>,
    backup: Option<Backup>,
}

impl<'a> Fleet<'a> {
    /// Runs a scenario to its end.
    pub(super) fn run(scenario: &'a Scenario) -> Result<Outcome> {
        let mut store = StorePort::with_users(scenario.users, scenario.seed)?;
        let with_records = holds_records(scenario.nodes, scenario.users);
        let copy = store.copy(with_records)?;
        let node = |id| SimNode::new(id, NodeTable::new(store.cipher(), &copy));
        let nodes = (0..scenario.nodes).map(node).collect();
        let mut fleet = Self {
            scenario,
            queue: EventQueue::new(),
            rng: SplitMix64::new(scenario.seed),
            store,
            nodes,
            with_records,
            ledger: Ledger::default(),
            outcome: Outcome::default(),
            waiting: BTreeMap::new(),
            written: BTreeMap::new(),
            backup: None,
        };
        fleet.schedule_start();
        let end = scenario.duration + scenario.settle;
        while let Some(event) = fleet.queue.next_until(end) {
            fleet.outcome.events += 1;
            fleet.store.set_time(fleet.queue.now());
            fleet.handle(event)?;
        }
        fleet.finish()
    }

    fn schedule_start(&mut self) {
        for node in 0..self.scenario.nodes {
            self.schedule_process(node);
        }
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            let start = flow.start + self.rng.pick(0..flow.every.max(1));
            self.queue.add(start, Event::Traffic(index));
        }
        let faults = &self.scenario.faults;
        if faults.kill_every > 0 {
            self.queue.add(faults.kill_every, Event::KillSome);
        }
        if let Some((at, seeded_after)) = faults.flush {
            self.queue.add(at, Event::EmptyStore);
            self.queue.add(at + seeded_after, Event::SeedStore);
        }
        if let Some((taken, restored)) = faults.old_backup {
            self.queue.add(taken, Event::TakeBackup);
            self.queue.add(restored, Event::RestoreBackup);
        }
        if let Some(gap) = SECOND.checked_div(self.scenario.changes_per_second.into()) {
            self.queue.add(gap, Event::ChangeUser);
        }
    }

    fn schedule_process(&mut self, node: u32) {
        let Some(sender) = self.sender(node) else {
            return;
        };
        let first = self.rng.pick(0..SECOND);
        self.queue.add(first, Event::Flush(sender));
        self.queue.add(0, Event::Heartbeat(sender));
        self.ask_for_changes(sender);
    }

    fn sender(&self, node: u32) -> Option<Sender> {
        let life = self.node(node)?.life;
        Some(Sender { node, life })
    }

    fn node(&self, node: u32) -> Option<&SimNode> {
        self.nodes.get(usize::try_from(node).ok()?)
    }

    /// Returns the node of a process that still runs.
    fn living(&mut self, sender: Sender) -> Option<&mut SimNode> {
        let node = self.nodes.get_mut(usize::try_from(sender.node).ok()?)?;
        (node.is_up && node.life == sender.life).then_some(node)
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Traffic(flow) => self.move_traffic(flow),
            Event::Flush(sender) => {
                if self.living(sender).is_some() {
                    self.send_batch(sender, false);
                    let next = SimNode::flush_interval(self.rng.next_number());
                    self.queue.add(next, Event::Flush(sender));
                }
            }
            Event::FlushOverdue(sender, number) => self.send_batch_again(sender, number),
            Event::QuestionOverdue(sender, question) => {
                let is_open = self
                    .living(sender)
                    .is_some_and(|node| node.question == question);
                if is_open {
                    self.ask_for_changes(sender);
                }
            }
            Event::TotalsOverdue(sender, users) => {
                if let Some(node) = self.living(sender) {
                    node.ask_again(&users);
                    self.ask_for_totals(sender);
                }
            }
            Event::Heartbeat(sender) => {
                if self.living(sender).is_some() {
                    self.send(sender, Request::Heartbeat);
                    self.queue.add(HEARTBEAT, Event::Heartbeat(sender));
                }
            }
            Event::Request(sender, request) => self.serve(sender, request)?,
            Event::Reply(sender, reply) => self.take_reply(sender, reply)?,
            Event::NothingNew(sender, question) => {
                let known = self.waiting.get(&sender.node).copied();
                if let Some((_, _, after)) =
                    known.filter(|open| (open.0, open.1) == (sender, question))
                {
                    self.waiting.remove(&sender.node);
                    let nothing = self.store.changes_or_none(after)?;
                    self.reply(sender, Reply::Changes(question, nothing));
                }
            }
            Event::KillSome => self.kill_some(),
            Event::Start(node) => self.start(node),
            Event::ChangeUser => self.change_user()?,
            Event::EmptyStore => {
                self.store.empty();
                self.tell_waiting()?;
            }
            Event::SeedStore => {
                let up = self.nodes.iter().filter(|node| node.is_up);
                let best = up.max_by_key(|node| node.table.version());
                let records = best.and_then(|node| node.table.records());
                self.store.seed(&records.context("no node has records")?)?;
                self.tell_waiting()?;
            }
            Event::TakeBackup => self.backup = Some(self.store.backup()),
            Event::RestoreBackup => {
                let backup = self.backup.take().context("a backup was taken")?;
                self.store.restore_backup(backup)?;
                self.tell_waiting()?;
            }
        }
        Ok(())
    }

    fn move_traffic(&mut self, index: usize) {
        let now = self.queue.now();
        let Some(flow) = self.scenario.flows.get(index).copied() else {
            return;
        };
        if now >= self.scenario.duration {
            return;
        }
        self.queue.add(flow.every, Event::Traffic(index));
        let (quota, Some(sender)) = (self.scenario.quota, self.sender(flow.node)) else {
            return;
        };
        if !flow.is_active(now) {
            return;
        }
        let wanted = u128::from(flow.rate) * u128::from(flow.every) / u128::from(SECOND);
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        let Some(node) = self.living(sender) else {
            return;
        };
        let moved = node.move_bytes(flow.user, wanted, quota.is_some());
        let flush = node.is_flush_due();
        if moved > 0 {
            self.ledger.add_moved(flow.user, moved, quota, now);
        }
        if flush {
            self.send_batch(sender, false);
        }
        self.ask_for_totals(sender);
    }

    fn ask_for_totals(&mut self, sender: Sender) {
        let users = self.living(sender).and_then(SimNode::take_new_users);
        if let Some(users) = users {
            let overdue = Event::TotalsOverdue(sender, users.clone());
            self.queue.add(CALL_DEADLINE, overdue);
            self.send(sender, Request::Totals(users));
        }
    }

    /// Sends the next batch, unless one is under way.
    fn send_batch(&mut self, sender: Sender, again: bool) {
        let (period, now) = (self.store.period.clone(), self.queue.now());
        let Some(node) = self.living(sender) else {
            return;
        };
        if node.is_flushing && !again {
            return;
        }
        let Some(batch) = node.batch_to_send(&period, now) else {
            return;
        };
        node.is_flushing = true;
        let overdue = Event::FlushOverdue(sender, batch.number);
        self.queue.add(CALL_DEADLINE, overdue);
        self.send(sender, Request::Usage(batch));
    }

    fn send_batch_again(&mut self, sender: Sender, number: u64) {
        let is_open = |node: &mut SimNode| node.is_under_way(number);
        if self.living(sender).is_some_and(is_open) {
            self.outcome.repeated_batches += 1;
            self.send_batch(sender, true);
        }
    }

    fn ask_for_changes(&mut self, sender: Sender) {
        let Some(node) = self.living(sender) else {
            return;
        };
        node.question += 1;
        let (question, after) = (node.question, node.table.version());
        self.send(sender, Request::Changes(question, after));
        let deadline = WAIT_FOR_CHANGES + CALL_DEADLINE;
        self.queue
            .add(deadline, Event::QuestionOverdue(sender, question));
    }

    /// Returns the time that a message takes; `None` if it does not arrive.
    fn travel(&mut self, node: u32, lost: u16) -> Option<Micros> {
        let (least, most) = self.scenario.delay;
        let delay = self.rng.pick(least..most.max(least) + 1);
        let is_lost = self.rng.roll_per_mille(lost);
        let now = self.queue.now();
        let is_cut = self
            .scenario
            .faults
            .partition
            .is_some_and(|(count, from, to)| node < count && (from..to).contains(&now));
        (!is_lost && !is_cut).then_some(delay)
    }

    fn send(&mut self, sender: Sender, request: Request) {
        let lost = self.scenario.faults.lost_requests;
        if let Some(delay) = self.travel(sender.node, lost) {
            self.queue.add(delay, Event::Request(sender, request));
        } else if let Request::Changes(question, _) = request {
            // The connection is gone, which the node notices.
            self.queue
                .add(CALL_DEADLINE, Event::QuestionOverdue(sender, question));
        }
    }

    fn reply(&mut self, sender: Sender, reply: Reply) {
        let lost = self.scenario.faults.lost_replies;
        if let Some(delay) = self.travel(sender.node, lost) {
            self.queue.add(delay, Event::Reply(sender, reply));
        }
    }

    /// Handles a request at the store. A request of a killed process is handled too: it may have been on its way.
    fn serve(&mut self, sender: Sender, request: Request) -> Result<()> {
        let now = self.queue.now();
        let stalls = &self.scenario.faults.stalls;
        let stall = stalls.iter().find(|(from, to)| (*from..*to).contains(&now));
        if let Some((_, to)) = stall {
            // It waits in the socket.
            self.queue.add(to - now, Event::Request(sender, request));
            return Ok(());
        }
        match request {
            Request::Heartbeat => {
                self.outcome.heartbeats += 1;
            }
            Request::Usage(batch) => {
                self.outcome.batches += 1;
                self.outcome.batch_users += u64::try_from(batch.entries.len())?;
                let totals = self.store.add_usage(sender.node, &batch)?;
                self.reply(sender, Reply::Totals(Some(batch.number), totals));
            }
            Request::Totals(users) => {
                let totals = self.store.totals(&users)?;
                self.reply(sender, Reply::Totals(None, totals));
            }
            Request::Changes(question, after) => {
                self.outcome.questions += 1;
                match self.store.changes(after)? {
                    Some(changes) => self.reply(sender, Reply::Changes(question, changes)),
                    None => {
                        self.waiting.insert(sender.node, (sender, question, after));
                        self.queue
                            .add(WAIT_FOR_CHANGES, Event::NothingNew(sender, question));
                    }
                }
            }
            Request::Snapshot(question) => {
                self.outcome.snapshots += 1;
                let copy = self.store.copy(self.with_records)?;
                self.reply(sender, Reply::Snapshot(question, copy));
            }
        }
        Ok(())
    }

    fn take_reply(&mut self, sender: Sender, reply: Reply) -> Result<()> {
        let scenario = self.scenario;
        let Some(node) = self.living(sender) else {
            return Ok(());
        };
        match reply {
            Reply::Totals(number, totals) => {
                let leases = Leases {
                    rule: scenario.lease,
                    quota: scenario.quota,
                    nodes: scenario.nodes,
                };
                match number {
                    Some(number) => node.take_batch_answer(number, &totals, leases),
                    None => node.take_totals(&totals, leases),
                }
                if node.is_flush_due() {
                    self.send_batch(sender, false);
                }
            }
            Reply::Changes(question, batch) if node.question == question => {
                let news = node.table.take_batch(&batch);
                self.take_news(sender, question, news);
            }
            Reply::Snapshot(question, copy) if node.question == question => {
                let news = node.table.take_copy(copy);
                self.take_news(sender, question, news);
            }
            Reply::Changes(..) | Reply::Snapshot(..) => {}
        }
        Ok(())
    }

    fn take_news(&mut self, sender: Sender, question: u64, news: News) {
        match news {
            News::Applied(numbers) => {
                let now = self.queue.now();
                let times = numbers.iter().filter_map(|number| self.written.get(number));
                let times = times.map(|written| now - written);
                self.outcome.propagation.extend(times);
                self.ask_for_changes(sender);
            }
            News::Gap => self.send(sender, Request::Snapshot(question)),
            News::Regression => {
                self.outcome.regressions += 1;
                let again = Event::QuestionOverdue(sender, question);
                self.queue.add(SECOND, again);
            }
        }
    }

    fn kill_some(&mut self) {
        let faults = &self.scenario.faults;
        if self.queue.now() >= self.scenario.duration {
            return;
        }
        self.queue.add(faults.kill_every, Event::KillSome);
        let node = self.rng.pick(0..self.scenario.nodes.into());
        let Some(node) = usize::try_from(node)
            .ok()
            .and_then(|at| self.nodes.get_mut(at))
        else {
            return;
        };
        if node.is_up {
            node.kill(&self.store.period, &mut self.ledger);
            self.outcome.kills += 1;
            self.queue.add(DOWN_FOR, Event::Start(node.id));
        }
    }

    fn start(&mut self, node: u32) {
        let cipher = self.store.cipher();
        if let Some(node) = usize::try_from(node)
            .ok()
            .and_then(|at| self.nodes.get_mut(at))
        {
            node.is_up = true;
            node.table.reopen(cipher);
        }
        self.schedule_process(node);
    }

    fn change_user(&mut self) -> Result<()> {
        let now = self.queue.now();
        if now >= self.scenario.duration {
            return Ok(());
        }
        let gap = SECOND / u64::from(self.scenario.changes_per_second.max(1));
        self.queue.add(gap, Event::ChangeUser);
        let number = self.store.change_some_user(&mut self.rng)?;
        self.written.insert(number, now);
        self.tell_waiting()
    }

    /// Answers the nodes that wait for changes, if there are any.
    fn tell_waiting(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for (_, (sender, question, after)) in waiting {
            match self.store.changes(after)? {
                Some(changes) => self.reply(sender, Reply::Changes(question, changes)),
                None => drop(self.waiting.insert(sender.node, (sender, question, after))),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome> {
        for (user, truth) in self.ledger.users() {
            let counted = self.store.used(user)?;
            self.outcome.add_user(truth, counted, self.scenario.quota);
        }
        let wanted = self.store.copy(self.with_records)?;
        let up = self.nodes.iter().filter(|node| node.is_up);
        self.outcome.differing_tables = up.filter(|node| !node.table.equals(&wanted)).count();
        self.outcome.users_at_end = wanted.len();
        Ok(self.outcome)
    }
}
