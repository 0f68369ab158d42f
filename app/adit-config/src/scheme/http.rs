//! `http://`: a proxy of HTTP, as listener and hop.

use crate::schema::{Roles, both, listener};
use crate::scheme::definition::Scheme;
use crate::scheme::draft::Draft;
use crate::scheme::mixed::{self, Languages};
use crate::scheme::typed::{Hop, HopKind, ServerHop};
use crate::scheme::{kcp, keys};

pub(crate) static SCHEME: Scheme = Scheme {
    name: "http",
    form: "http://[USER:PASSWORD@][HOST]:PORT",
    doc: "HTTP proxy: CONNECT and plain requests (RFC 9110). It carries TCP alone.",
    roles: Roles::Both,
    params: &[
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
    ],
    carriers: &[&kcp::CARRIER],
    listen: |draft| mixed::proxy(draft, Languages::Http),
    hop,
    ..Scheme::BLANK
};

fn hop(draft: &mut Draft<'_, '_>) -> Option<Hop> {
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
