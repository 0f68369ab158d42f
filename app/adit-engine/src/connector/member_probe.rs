//! Probes of group members, in the background and only where no session shows if a member works.
//!
//! A probe looks like any other connection. A Shadowsocks server that is adit answers the name of the check itself.
//! All other servers receive a request for the group's `check`, or without one for the target of the last request
//! that was answered: a keyed server proves itself by the first byte of an answer to `HEAD /`, which nearly every
//! server sends in some form; one without a key by opening the stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_stream::{fill_to, write_and_flush};
use adit_wire::Target;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::group_member::GroupMember;
use crate::health::ProbeAnswer;

/// Time limit for opening the stream of a probe.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
/// Minimum pause before another probe.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// The result of a probe.
#[derive(Debug)]
enum Finding {
    /// The member serves; with the time that it took to answer.
    Works(Option<Duration>),
    /// It does not: the cause, and the reason for users.
    Fails(&'static str, String),
    /// There is no way to find out.
    Unknown,
}

/// Starts the task that lets a member return, unless there is one.
pub(super) fn start_return_probe(member: &Arc<GroupMember>) {
    let (Some(health), Ok(runtime)) = (member.health(), Handle::try_current()) else {
        return;
    };
    if !health.start_probe() {
        return;
    }
    let group = Arc::downgrade(&member.group);
    let at = member.position();
    let member = Arc::downgrade(member);
    runtime.spawn(async move {
        // Ends with the group.
        while let Some(rest) = member
            .upgrade()
            .and_then(|member| member.health()?.rest_left())
        {
            sleep(rest.max(MIN_PAUSE)).await;
            let Some(member) = member.upgrade() else {
                break;
            };
            if let Some(Duration::ZERO) = member.health().and_then(|health| health.rest_left()) {
                let since = Instant::now();
                match probe(&member).await {
                    Finding::Works(took) => member.record_success(took),
                    Finding::Fails(cause, why) => member.record_failure(since, cause, &why),
                    Finding::Unknown => {
                        if let Some(health) = member.health() {
                            health.allow_trial();
                        }
                    }
                }
            }
        }
        if let Some(group) = group.upgrade()
            && let Some(state) = group.member(at)
        {
            state.health.end_probe();
        }
    });
}

/// Looks at a member that has failed without another member's answer, so that its target may be the cause. The member
/// is last meanwhile.
pub(super) fn verify(member: &Arc<GroupMember>, since: Instant, cause: &'static str, what: String) {
    let (Some(health), Ok(runtime)) = (member.health(), Handle::try_current()) else {
        return;
    };
    if health.has_served_since(since) || !health.start_probe() {
        return;
    }
    health.record_late();
    let member = member.clone();
    runtime.spawn(async move {
        let finding = probe(&member).await;
        if let Some(health) = member.health() {
            health.end_probe();
        }
        match finding {
            Finding::Works(took) => member.record_success(took),
            Finding::Fails("clock", why) => member.record_failure(since, "clock", &why),
            Finding::Fails(..) | Finding::Unknown => member.record_no_answer(since, cause, &what),
        }
    });
}

/// Measures the answer time of a member that no session uses.
pub(super) fn measure(member: &Arc<GroupMember>, to: &Target) {
    let (Some(health), Ok(runtime)) = (member.health(), Handle::try_current()) else {
        return;
    };
    if !health.start_probe() {
        return;
    }
    let (member, to) = (member.clone(), to.clone());
    runtime.spawn(async move {
        let since = Instant::now();
        let to = member.group.probe_target().unwrap_or(to);
        let finding = request(&member, &to).await;
        if let Some(health) = member.health() {
            health.end_probe();
        }
        match finding {
            Finding::Works(took) => member.record_success(took),
            Finding::Fails(cause, why) => member.record_failure(since, cause, &why),
            Finding::Unknown => {}
        }
    });
}

/// Finds out if a member serves.
async fn probe(member: &GroupMember) -> Finding {
    let asked = match member.server() {
        Some(server) => server.ask().await,
        None => None,
    };
    let found = match asked {
        Some(Ok(ProbeAnswer::Authentic(_))) => return Finding::Works(None),
        Some(Ok(ProbeAnswer::WrongClock(skew))) => {
            let why = format!(
                "its clock differs by {skew} s, and beyond 30 s it refuses requests: set the clock of either machine \
                 (for example with NTP)"
            );
            return Finding::Fails("clock", why);
        }
        Some(Err(why)) => {
            let cause = crate::FailureCause::from_io_error(&why).label();
            return Finding::Fails(cause, format!("no connection: {why}"));
        }
        Some(Ok(ProbeAnswer::Silent)) => {
            Finding::Fails("silent", "a probe was not answered".to_owned())
        }
        Some(Ok(ProbeAnswer::Closed)) => Finding::Fails(
            "closed",
            "it has closed the connection of a probe".to_owned(),
        ),
        None => Finding::Unknown,
    };
    match member.group.probe_target() {
        Some(target) => request(member, &target).await,
        None => found,
    }
}

/// Sends a request for `to` through the member.
async fn request(member: &GroupMember, to: &Target) -> Finding {
    let since = Instant::now();
    let opened = timeout(OPEN_TIMEOUT, member.connector.connect(to, &[])).await;
    let mut stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(why)) if why.blames_hop() => {
            return Finding::Fails(why.cause.label(), why.to_string());
        }
        // A statement about the target is an answer.
        Ok(Err(_)) => return Finding::Works(None),
        Err(_) => return Finding::Fails("timed-out", "no connection in 5 s".to_owned()),
    };
    let Some(watch) = stream.watch.take() else {
        return Finding::Works(Some(since.elapsed()));
    };
    let head = format!(
        "HEAD / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        to.host
    );
    let exchange = async {
        write_and_flush(&mut stream.io, head.as_bytes()).await?;
        fill_to(&mut stream.io, 1).await
    };
    let answer = timeout(ANSWER_TIMEOUT, exchange).await;
    if watch.progress.is_authenticated() {
        watch.health.record_proof(watch.progress.clock_skew());
        return Finding::Works(Some(since.elapsed()));
    }
    match answer {
        Ok(Ok(_)) => Finding::Fails(
            "closed",
            "it has closed the connection of a probe".to_owned(),
        ),
        Ok(Err(why)) => {
            let cause = crate::FailureCause::from_io_error(&why).label();
            Finding::Fails(cause, format!("a probe has failed: {why}"))
        }
        Err(_) => Finding::Fails("silent", "a probe was not answered".to_owned()),
    }
}
