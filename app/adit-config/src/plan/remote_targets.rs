//! Checks of carriers, and of hops whose remote end has the target.

use crate::plan::Stage;
use crate::plan::unchecked_route::{UncheckedListener, UncheckedStage};
use crate::scheme::endpoint_types::{CarrierSettings, Hop, ListenerKind};
use crate::text::{Diagnostics, Problem};

/// Checks that a listener without a target and a last hop with one are used together.
pub(super) fn check_remote_target(
    diagnostics: &mut Diagnostics,
    listen: &UncheckedListener,
    via: &[UncheckedStage],
) {
    let far = via
        .last()
        .filter(|last| all_have_remote_target(&last.stage));
    let forward = match &listen.listen.kind {
        ListenerKind::Forward(forward) => Some(forward),
        _ => None,
    };
    match (far, forward) {
        (None, Some(forward)) if forward.target.is_none() => {
            diagnostics.add_problem(Problem::at_place(
                "the target is missing",
                listen.place.clone(),
                format!("write `{}/TARGET:PORT`", listen.listen),
            ));
        }
        (Some(last), Some(forward)) if forward.target.is_none() => {
            let tcp = forward.tcp && last.stage.hops().iter().all(|hop| !carries_streams(hop));
            if tcp {
                diagnostics.add_problem(Problem::at_place(
                    format!("TCP from `{}` cannot pass `{}`", listen.listen, last.stage),
                    last.place.clone(),
                    "`udp+fec` carries UDP only: listen with `udp://HOST:PORT`",
                ));
            }
        }
        (Some(last), Some(_)) => diagnostics.add_problem(Problem::at_place(
            format!("the target of `{}` is never reached", listen.listen),
            listen.place.clone(),
            format!(
                "the remote end of `{}` has its own target: remove this one",
                last.stage
            ),
        )),
        (Some(last), None) => diagnostics.add_problem(Problem::at_place(
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
pub(super) fn check_carriers(diagnostics: &mut Diagnostics, via: &[UncheckedStage]) {
    for (i, UncheckedStage { stage, place }) in via.iter().enumerate() {
        let carried = |hop: &Hop| hop.carrier().is_some();
        if i > 0 && stage.all_hops().any(carried) {
            diagnostics.add_problem(Problem::at_place(
                format!("`{stage}` sends UDP from this machine and cannot use other hops"),
                place.clone(),
                "put it before the other hops",
            ));
        }
        let some_far = stage.hops().iter().any(Hop::has_remote_target);
        if some_far && !all_have_remote_target(stage) {
            diagnostics.add_problem(Problem::at_place(
                "a group mixes hops with and without a target at their remote end",
                place.clone(),
                "use hops of one kind in a group",
            ));
        }
        let last = i + 1 == via.len();
        if !last && some_far && !stage.hops().iter().any(carries_streams) {
            diagnostics.add_problem(Problem::at_place(
                format!("no hop can follow `{stage}`"),
                place.clone(),
                "`udp+fec` must be the only hop of its chain",
            ));
        }
    }
}

/// True if the remote ends of all hops have the target.
fn all_have_remote_target(stage: &Stage) -> bool {
    stage.hops().iter().all(Hop::has_remote_target)
}

/// True if the hop can carry TCP.
const fn carries_streams(hop: &Hop) -> bool {
    !matches!(hop.carrier(), Some(CarrierSettings::Fec(_)))
}
