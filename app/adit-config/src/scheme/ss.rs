//! `ss://`: Shadowsocks, as listener a server, as hop a client.

use adit_shadowsocks::{Edition, Method};

use crate::base64_text;
use crate::draft::Draft;
use crate::param::{Param, both, hop as for_hop, listener};
use crate::plan::{Hop, HopKind, Listen, ListenKind, ServerHop, SsServer};
use crate::problem::{Flaw, WarningKind};
use crate::scheme::{forward, keys};
use crate::secret::Secret;
use crate::span::Span;
use crate::suggest::nearest;

pub(crate) const DOC: &str = "Shadowsocks: the 2022 edition (SIP022) with a base64 key, or the AEAD edition (SIP004) with \
     a password. The same URL serves on both ends; share links (SIP002, and the older form) are \
     read as they are.";

pub(crate) const PARAMS: &[Param] = &[
    listener(&keys::ALLOW_PRIVATE),
    listener(&keys::REJECT),
    listener(&keys::RESTART),
    listener(&keys::TCP),
    both(&keys::UDP),
    listener(&keys::PREFER),
    for_hop(&keys::FIRST_WAIT),
    listener(&keys::HANDSHAKE),
    both(&keys::DIAL),
    listener(&keys::IDLE),
    listener(&keys::HALF_CLOSE_IDLE),
    listener(&keys::UDP_IDLE),
    listener(&keys::MAX_CONNECTIONS),
    both(&keys::PLUGIN),
];

pub(crate) fn listen(draft: &mut Draft<'_, '_>) -> Option<Listen> {
    draft.no_target();
    no_plugin(draft);
    let keyed = method_and_secret(draft);
    let addr = draft.listen_addr();
    let (tcp, udp) = (draft.get(&keys::TCP), draft.get(&keys::UDP));
    if !tcp && !udp {
        let span = draft.value_span(&keys::UDP);
        draft.problem(Flaw::new(span, "neither TCP nor UDP is left to listen on"));
    }
    let reject = draft.get(&keys::REJECT);
    let restart = draft.get(&keys::RESTART);
    let limits = draft.limits();
    let private = draft.get(&keys::ALLOW_PRIVATE);
    let prefer = draft.get(&keys::PREFER);
    let (method, secret) = keyed?;
    let addr = addr?;
    if !addr.is_loopback() {
        plain_text(draft, method);
    }
    Some(Listen {
        access: addr.access(private, false),
        addr,
        kind: ListenKind::Shadowsocks(SsServer {
            method,
            secret,
            tcp,
            udp,
            reject,
            restart,
        }),
        limits,
        prefer,
    })
}

pub(crate) fn hop(draft: &mut Draft<'_, '_>) -> Option<Hop> {
    draft.no_target();
    no_plugin(draft);
    let keyed = method_and_secret(draft);
    let server = draft.server();
    let udp = draft.get(&keys::UDP);
    let first_wait = draft.get(&keys::FIRST_WAIT).0;
    let dial = draft.get(&keys::DIAL);
    if first_wait > dial {
        let span = draft.value_span(&keys::FIRST_WAIT);
        draft.problem(forward::longer_than_dial(span, dial));
    }
    let (method, secret) = keyed?;
    let server = server?;
    if !crate::plan::is_this_machine(&server.host) {
        plain_text(draft, method);
    }
    Some(Hop::Server(ServerHop {
        server,
        kind: HopKind::Shadowsocks {
            method,
            secret,
            udp,
            first_wait,
        },
        dial,
    }))
}

fn plain_text(draft: &mut Draft<'_, '_>, method: Method) {
    if method.edition() == Edition::None {
        let about = Flaw::new(draft.user_span(), "method `none` does not encrypt")
            .label("everyone on the way can read and change the traffic")
            .help("`adit keygen 2022-blake3-aes-128-gcm` makes a key for a method that does");
        draft.warn(WarningKind::NoEncryption, about);
    }
}

fn no_plugin(draft: &mut Draft<'_, '_>) {
    if draft.get(&keys::PLUGIN).is_some() {
        let flaw = Flaw::new(
            draft.key_span(&keys::PLUGIN),
            "plugins are not supported by this version",
        )
        .help("a server that expects a plugin does not answer without it; ask for a plain link");
        draft.problem(flaw);
    }
}

fn method_and_secret(draft: &mut Draft<'_, '_>) -> Option<(Method, Secret)> {
    let endpoint = draft.endpoint();
    let (Some(name), Some(written)) = (&endpoint.user, &endpoint.secret) else {
        let flaw = Flaw::new(endpoint.address, "method and key are missing")
            .help("write `ss://METHOD:KEY@HOST:PORT`")
            .help("`adit keygen METHOD` makes a key");
        draft.problem(flaw);
        return None;
    };
    let (span, written) = (written.span, &written.value);
    let method = match name.value.parse::<Method>() {
        Ok(method) => Some(method),
        Err(_) => {
            draft.problem(unknown_method(&name.value, name.span));
            None
        }
    };
    let secret = draft.secret(written, span)?;
    let method = method?;
    if let Err(flaw) = check(method, &secret, span) {
        draft.problem(flaw);
        return None;
    }
    Some((method, secret))
}

fn unknown_method(name: &str, span: Span) -> Flaw {
    let names = || Method::ALL.into_iter().map(Method::name);
    let flaw = Flaw::new(span, format!("unknown method `{name}`"));
    let flaw = match nearest(name, names()) {
        Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
        None => flaw,
    };
    let all = names().collect::<Vec<_>>().join(", ");
    flaw.help(format!("methods: {all}"))
}

/// Checks what can be known about a secret without deriving a key from it. The text of a flaw
/// says lengths, never content.
fn check(method: Method, secret: &Secret, span: Span) -> Result<(), Flaw> {
    let text = secret.expose();
    match method.edition() {
        Edition::None => Ok(()),
        Edition::Aead if text.is_empty() => {
            Err(Flaw::new(span, "the password is empty").help(keygen(method)))
        }
        Edition::Aead => Ok(()),
        Edition::Aead2022 if text.contains(':') => Err(Flaw::new(
            span,
            "identity keys (`SERVER_KEY:USER_KEY`, SIP023) are not supported by this version",
        )
        .help("ask the operator of the server for a link with one key")),
        Edition::Aead2022 => check_2022(method, text, span),
    }
}

fn check_2022(method: Method, text: &str, span: Span) -> Result<(), Flaw> {
    let must = method.key_len();
    let Some(key) = base64_text::key(text) else {
        let flaw = Flaw::new(span, "the key is not base64")
            .label(format!("`{method}` needs {must} bytes in base64"));
        let flaw = if text.contains(['-', '_']) {
            flaw.help("this looks like base64url: write `+` for `-` and `/` for `_`")
        } else {
            flaw
        };
        return Err(flaw.help(keygen(method)));
    };
    if key.len() == must {
        return Ok(());
    }
    let has = key.len();
    Err(Flaw::new(span, "the key has the wrong length")
        .label(format!("`{method}` needs {must} bytes, this is {has}"))
        .help(keygen(method)))
}

fn keygen(method: Method) -> String {
    format!("`adit keygen {method}` makes one")
}
