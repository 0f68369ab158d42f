//! `tcp://`, `udp://`, `tcp+udp://`: ports that lead to one target.

use core::time::Duration;

use adit_wire::Target;

use crate::draft::Draft;
use crate::param::{Param, listener};
use crate::plan::{Access, Forward, Hop, HopKind, Listen, ListenKind, Private, ServerHop};
use crate::scheme::{Scheme, keys};
use crate::text::{Flaw, Span, write_duration};

pub(crate) const DOC: &str =
    "A TCP and a UDP port that lead to one target. The target may be private: it is yours.";
pub(crate) const DOC_TCP: &str = "A TCP port that leads to one target. The target may be private: it is yours. Before a hop that \
     has a target at its far end (`kcptun`, `tcp+kcp`) it is left away.";
pub(crate) const DOC_UDP: &str = "A UDP port that leads to one target. The target may be private: it is yours. Before `udp+fec`, \
     which has one at its far end, it is left away.";

pub(crate) const PARAMS: &[Param] = &[
    listener(&keys::PREFER),
    listener(&keys::DIAL),
    listener(&keys::FIRST_WAIT),
    listener(&keys::IDLE),
    listener(&keys::HALF_CLOSE_IDLE),
    listener(&keys::UDP_IDLE),
    listener(&keys::MAX_CONNECTIONS),
];

pub(crate) const PARAMS_TCP: &[Param] = &[
    listener(&keys::PREFER),
    listener(&keys::DIAL),
    listener(&keys::FIRST_WAIT),
    listener(&keys::IDLE),
    listener(&keys::HALF_CLOSE_IDLE),
    listener(&keys::MAX_CONNECTIONS),
];

pub(crate) const PARAMS_UDP: &[Param] = &[
    listener(&keys::PREFER),
    listener(&keys::DIAL),
    listener(&keys::UDP_IDLE),
];

pub(crate) fn listen(draft: &mut Draft<'_, '_>, tcp: bool, udp: bool) -> Option<Listen> {
    if draft.scheme() != Scheme::Kcptun {
        draft.no_user();
    }
    let target = target(draft);
    let addr = draft.listen_addr();
    let first_wait = draft.get(&keys::FIRST_WAIT).0;
    let limits = draft.limits();
    if first_wait > limits.dial {
        draft.problem(longer_than_dial(
            draft.value_span(&keys::FIRST_WAIT),
            limits.dial,
        ));
    }
    Some(Listen {
        addr: addr?,
        kind: ListenKind::Forward(Forward {
            tcp,
            udp,
            target: target?,
            first_wait,
        }),
        limits,
        access: Access {
            private: Private::All,
        },
        prefer: draft.get(&keys::PREFER),
        carried: None,
        proxy_protocol: false,
    })
}

/// A wait for first bytes that the deadline of the dial would cut.
pub(crate) fn longer_than_dial(span: Span, dial: Duration) -> Flaw {
    let dial = write_duration(dial);
    Flaw::new(span, "`first_wait` is longer than the time to dial")
        .label(format!("`dial` is {dial}"))
}

/// A server behind a carrier, which has a target of its own.
pub(crate) fn hop(draft: &mut Draft<'_, '_>) -> Option<Hop> {
    draft.no_user();
    if let Some(target) = &draft.endpoint().target {
        let flaw = Flaw::new(
            target.span,
            "a hop has no target: that of the far end counts",
        );
        draft.problem(flaw.help("leave it away"));
    }
    Some(Hop::Server(ServerHop {
        server: draft.server()?,
        kind: HopKind::Far,
        dial: keys::DIAL.default,
        carried: None,
    }))
}

/// The target. Without one the far end of the chain has to have it, which is looked at when the
/// chain is known; not so behind a carrier, where this is that end.
#[expect(clippy::option_option, reason = "wrong, or left out")]
fn target(draft: &mut Draft<'_, '_>) -> Option<Option<Target>> {
    let is_end = draft.carrier().is_some() || draft.scheme() == Scheme::Kcptun;
    let flaw = match &draft.endpoint().target {
        None if !is_end => return Some(None),
        None => no_target(draft.endpoint().address, &draft.form()),
        Some(text) => match text.value.parse::<Target>() {
            Ok(target) if target.port != 0 => return Some(Some(target)),
            Ok(_) => Flaw::new(text.span, "a target has no port 0"),
            Err(why) => Flaw::new(text.span, "not a target").label(why.to_string()),
        },
    };
    draft.problem(flaw);
    None
}

fn no_target(span: Span, form: &str) -> Flaw {
    Flaw::new(span, "the target is missing").help(format!("write `{form}`"))
}
