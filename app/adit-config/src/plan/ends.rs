//! Checks of carriers, and of hops whose remote end has the target.

use crate::plan::Stage;
use crate::plan::unchecked::{UncheckedListen, UncheckedStage};
use crate::scheme::typed::{Carried, Hop, ListenKind};
use crate::text::{Diagnostics, Problem};

/// Checks that a listener without a target and a last hop with one are used together.
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
                    "`udp+fec` carries UDP only: listen with `udp://HOST:PORT`",
                ));
            }
        }
        (Some(last), Some(_)) => diagnostics.problem(Problem::at(
            format!("the target of `{}` is never reached", listen.listen),
            listen.place.clone(),
            format!(
                "the remote end of `{}` has its own target: remove this one",
                last.stage
            ),
        )),
        (Some(last), None) => diagnostics.problem(Problem::at(
            format!(
                "`{}` cannot connect to other targets: its remote end has its own",
                last.stage
            ),
            last.place.clone(),
            "listen with `tcp://HOST:PORT` (for `udp+fec`: `udp://HOST:PORT`), or add a hop \
             after it for the server at that end",
        )),
        (None, _) => {}
    }
}

/// Checks the positions of carriers in a chain: they start at this machine, and groups are of one kind.
pub(super) fn carriers(diagnostics: &mut Diagnostics, via: &[UncheckedStage]) {
    for (i, UncheckedStage { stage, place }) in via.iter().enumerate() {
        let carried = |hop: &Hop| hop.carried().is_some();
        if i > 0 && stage.hops().iter().any(carried) {
            diagnostics.problem(Problem::at(
                format!("`{stage}` sends UDP from this machine and cannot use other hops"),
                place.clone(),
                "put it before the other hops",
            ));
        }
        let some_far = stage.hops().iter().any(Hop::is_far);
        if some_far && !is_far(stage) {
            diagnostics.problem(Problem::at(
                "a group mixes hops with and without a target at their remote end",
                place.clone(),
                "use hops of one kind in a group",
            ));
        }
        let last = i + 1 == via.len();
        if !last && some_far && !stage.hops().iter().any(carries_streams) {
            diagnostics.problem(Problem::at(
                format!("no hop can follow `{stage}`"),
                place.clone(),
                "`udp+fec` must be the only hop of its chain",
            ));
        }
    }
}

/// True if the remote ends of all hops have the target.
fn is_far(stage: &Stage) -> bool {
    stage.hops().iter().all(Hop::is_far)
}

/// True if the hop can carry TCP.
const fn carries_streams(hop: &Hop) -> bool {
    !matches!(hop.carried(), Some(Carried::Fec(_)))
}
