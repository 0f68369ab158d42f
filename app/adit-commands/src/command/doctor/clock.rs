//! The clock of this machine, compared with the server's and with that of a web server. A difference is a frequent cause
//! of a 2022-edition server that does not answer.

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{HopKind, ServerHop};
use adit_engine::clock_reference;
use adit_engine::probe::{self, ProbeFinding};
use adit_shadowsocks::{Edition, KeyChain, MAX_CLOCK_SKEW};
use adit_wire::Target;

use super::PATIENCE;
use super::step::{CheckResult, CheckState, DoctorReport};

/// Clock difference that may be due to the travel time of a message, in seconds.
const CLOCK_NOISE: u64 = 3;
/// Clock difference above which there is a warning, in seconds.
const SKEW_WARN: u64 = 15;
/// The hint for a clock that is refused.
pub(in crate::command) const SET_CLOCK: &str =
    "set the clock of this machine (for example `timedatectl set-ntp true`), or the server's";

/// Checks whether the server has our key and refuses our clock.
///
/// # Errors
///
/// It does.
pub(super) async fn check_refusal(report: &mut DoctorReport, hop: &ServerHop) -> CommandResult {
    let Some(skew) = refused_clock(hop).await else {
        return Ok(());
    };
    let what = format!("the server has our key but refuses our clock, which differs by {skew} s");
    let step = CheckResult::new("clock", CheckState::Failed, what.clone()).with_advice(SET_CLOCK);
    report.add_step(step.with_figure("skew_s", skew));
    Err(Failure::new(FailureCode::Clock, what).with_hint(SET_CLOCK))
}

/// Compares the clock with that of a web server, which is connected to directly.
///
/// # Errors
///
/// The difference is why the server does not answer.
pub(super) async fn compare_with_web_server(
    report: &mut DoctorReport,
    kind: &HopKind,
    server: &Target,
) -> CommandResult {
    let offset = match clock_reference::ask_web_server(server, PATIENCE).await {
        Ok(Some(offset)) => offset,
        Ok(None) => {
            let why = format!("{server} does not report its time");
            report.add_step(CheckResult::new("clock", CheckState::Skipped, why));
            return Ok(());
        }
        Err(why) => {
            let why = format!("{server} does not answer directly: {why}");
            report.add_step(CheckResult::new("clock", CheckState::Skipped, why));
            return Ok(());
        }
    };
    let is_dated = matches!(kind, HopKind::Shadowsocks { method, .. }
        if method.edition() == Edition::Aead2022);
    if !is_dated || offset.seconds.unsigned_abs() <= MAX_CLOCK_SKEW {
        add_step(report, offset.seconds, &format!("that of {server}"));
        return Ok(());
    }
    let what = format!("{offset}, and Shadowsocks 2022 allows {MAX_CLOCK_SKEW} s");
    let step = CheckResult::new("clock", CheckState::Failed, what.clone()).with_advice(SET_CLOCK);
    report.add_step(step.with_figure("skew_s", offset.seconds));
    Err(Failure::new(FailureCode::Clock, what).with_hint(SET_CLOCK))
}

/// Returns the difference of the clocks in seconds, if that is why the server does not answer.
async fn refused_clock(hop: &ServerHop) -> Option<i64> {
    let HopKind::Shadowsocks {
        method,
        secret,
        plugin: None,
        ..
    } = &hop.kind
    else {
        return None;
    };
    if method.edition() != Edition::Aead2022 {
        return None;
    }
    let keys = KeyChain::parse(*method, secret.expose()).ok()?;
    match probe::probe_hop(hop, keys).await {
        ProbeFinding::WrongClock { skew } => Some(skew),
        _ => None,
    }
}

/// Adds the step of a difference in seconds, which refuses nothing.
pub(super) fn add_step(report: &mut DoctorReport, skew: i64, whose: &str) {
    let what = match skew.unsigned_abs() {
        0..=CLOCK_NOISE => format!("ours and {whose} agree"),
        off => format!(
            "ours is {off} s {} {whose}",
            if skew > 0 { "behind" } else { "ahead of" }
        ),
    };
    let step = if skew.unsigned_abs() > SKEW_WARN {
        let advice = format!(
            "beyond {MAX_CLOCK_SKEW} s, Shadowsocks 2022 refuses us: set one of the clocks"
        );
        CheckResult::new("clock", CheckState::Warning, what).with_advice(advice)
    } else {
        CheckResult::new("clock", CheckState::Ok, what)
    };
    report.add_step(step.with_figure("skew_s", skew));
}
