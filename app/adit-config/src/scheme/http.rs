//! `http://`: a proxy of HTTP, as listener and hop.

use crate::draft::Draft;
use crate::param::{Param, both, listener};
use crate::plan::{Hop, HopKind, Listen, ServerHop};
use crate::scheme::keys;
use crate::scheme::mixed::{self, Languages};

pub(crate) const DOC: &str =
    "HTTP proxy: CONNECT and plain requests (RFC 9110). It carries TCP alone.";

pub(crate) const PARAMS: &[Param] = &[
    listener(&keys::ALLOW_OPEN_PROXY),
    listener(&keys::USERS),
    listener(&keys::ALLOW_PRIVATE),
    listener(&keys::PREFER),
    listener(&keys::HANDSHAKE),
    both(&keys::DIAL),
    listener(&keys::IDLE),
    listener(&keys::HALF_CLOSE_IDLE),
    listener(&keys::MAX_CONNECTIONS),
    listener(&keys::PROXY_PROTOCOL),
    listener(&keys::VERBOSE_ERRORS),
];

pub(crate) fn listen(draft: &mut Draft<'_, '_>) -> Option<Listen> {
    mixed::proxy(draft, Languages::Http)
}

pub(crate) fn hop(draft: &mut Draft<'_, '_>) -> Option<Hop> {
    draft.no_target();
    let login = draft.login();
    let server = draft.server();
    let dial = draft.get(&keys::DIAL);
    let login = login?;
    if login.as_ref().is_some_and(|login| login.user.contains(':')) {
        draft.problem(mixed::basic_user(draft.user_span()));
    }
    Some(Hop::Server(ServerHop {
        server: server?,
        kind: HopKind::Http { login },
        dial,
        carried: None,
    }))
}
