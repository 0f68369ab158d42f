//! Checks of carriers, and of hops whose far end has a target of its own.

use crate::plan::Stage;
use crate::plan::unchecked::{UncheckedListen, UncheckedStage};
use crate::scheme::typed::{Carried, Hop, ListenKind};
use crate::text::{Diagnostics, Problem};

/// A listener without a target, and a last hop that has one, belong together.
pub(super) fn fit(diagnostics: &mut Diagnostics, listen: &UncheckedListen, via: &[UncheckedStage]) {
    let far = via.last().filter(|last| is_far(&last.stage));
    let forward = match &listen.listen.kind {
        ListenKind::Forward(forward) => Some(forward),
        _ => None,
    };
    match (far, forward) {
        (None, Some(forward)) if forward.target.is_none() => diagnostics.problem(Problem::at(
            "the target is missing",
            listen.place.clone(),
            format!("write `{}/TARGET:PORT`", listen.listen),
        )),
        (Some(last), Some(forward)) if forward.target.is_none() => {
            let tcp = forward.tcp && last.stage.hops().iter().all(|hop| !carries_streams(hop));
            if tcp {
                diagnostics.problem(Problem::at(
                    format!("TCP from `{}` cannot pass `{}`", listen.listen, last.stage),
                    last.place.clone(),
                    "`udp+fec` carries UDP alone: listen with `udp://HOST:PORT`",
                ));
            }
        }
        (Some(last), Some(_)) => diagnostics.problem(Problem::at(
            format!("the target of `{}` is never reached", listen.listen),
            listen.place.clone(),
            format!(
                "the far end of `{}` has its own: leave this one away",
                last.stage
            ),
        )),
        (Some(last), None) => diagnostics.problem(Problem::at(
            format!(
                "`{}` cannot be asked for targets: its far end has one of its own",
                last.stage
            ),
            last.place.clone(),
            "listen with `tcp://HOST:PORT` (for `udp+fec`: `udp://HOST:PORT`), or put a hop \
             behind it that speaks with what is at that end",
        )),
        (None, _) => {}
    }
}

/// Carriers begin at this machine, and not all go everywhere.
pub(super) fn carriers(diagnostics: &mut Diagnostics, via: &[UncheckedStage]) {
    for (i, UncheckedStage { stage, place }) in via.iter().enumerate() {
        let carried = |hop: &Hop| hop.carried().is_some();
        if i > 0 && stage.hops().iter().any(carried) {
            diagnostics.problem(Problem::at(
                format!("`{stage}` goes by UDP from this machine, not through other hops"),
                place.clone(),
                "put it before the others",
            ));
        }
        let some_far = stage.hops().iter().any(Hop::is_far);
        if some_far && !is_far(stage) {
            diagnostics.problem(Problem::at(
                "hops with a target at their far end and hops without are in one group",
                place.clone(),
                "a group is of one kind",
            ));
        }
        let last = i + 1 == via.len();
        if !last && some_far && !stage.hops().iter().any(carries_streams) {
            diagnostics.problem(Problem::at(
                format!("nothing can go on behind `{stage}`"),
                place.clone(),
                "`udp+fec` is the only hop of its chain",
            ));
        }
    }
}

fn is_far(stage: &Stage) -> bool {
    stage.hops().iter().all(Hop::is_far)
}

const fn carries_streams(hop: &Hop) -> bool {
    !matches!(hop.carried(), Some(Carried::Fec(_)))
}
