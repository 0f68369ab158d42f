//! Share links of Shadowsocks: the user part of SIP002, and the older form that is all base64.

use adit_shadowsocks::{Edition, Method};
use zeroize::Zeroizing;

use crate::grammar::{
    self, Endpoint, FoldedUser, LinkForm, Syntax, Unfolded, UserInfo, read_address,
};
use crate::text::{Flaw, Secret, SecretText, Span, Spanned, base64, escape, nearest};

/// The syntax of `ss` URLs.
pub(crate) const SYNTAX: Syntax = Syntax {
    is_method: Some(is_method),
    folded_user: Some(FoldedUser {
        read: userinfo,
        write: folded_user,
    }),
    link: Some(LinkForm {
        is: is_folded,
        unfold: old_form,
        fold: None,
        with_carrier: true,
    }),
    ..Syntax::PLAIN
};

/// The hint for wrong URLs.
const FORMS: &str = "write `ss://METHOD:KEY@HOST:PORT`; `adit keygen METHOD` makes a key";

/// True if this is the older form: `base64(method:password@host:port)`.
fn is_folded(raw: &str) -> bool {
    !matches!(raw, "" | "/") && !raw.contains(['@', ':'])
}

/// Reads `method:percent(password)`, `base64(method:password)` or a method alone.
fn userinfo(raw: &str, span: Span) -> Result<UserInfo, Flaw> {
    if let Some((method, secret)) = raw.split_once(':') {
        let method_span = Span::of(span.start, method);
        let secret_span = Span::new(method_span.end + 1, span.end);
        let method = grammar::decode(method, method_span)?;
        let secret = grammar::secret_text(secret, secret_span)?;
        return Ok((
            Some(Spanned::new(method, method_span)),
            Some(Spanned::new(secret, secret_span)),
        ));
    }
    // The separator itself can be percent-encoded. Base64 has no colon, so this is unambiguous.
    let plain = Zeroizing::new(grammar::decode(raw, span)?);
    let text = if plain.contains(':') {
        plain
    } else if is_method(&plain) {
        return Ok((Some(Spanned::new(plain.to_string(), span)), None));
    } else {
        base64::link(raw).ok_or_else(|| neither(&plain, span))?
    };
    let (method, secret) = method_and_password(&text, span)?;
    Ok((Some(method), Some(secret)))
}

/// True if the text is the name of a method. No name is base64 of a text with a colon.
pub(crate) fn is_method(text: &str) -> bool {
    text.parse::<Method>().is_ok()
}

/// Returns the error of a user part that is neither plain nor base64.
fn neither(text: &str, span: Span) -> Flaw {
    let flaw = Flaw::new(span, "neither `METHOD:KEY` nor base64 of it").help(FORMS);
    match nearest(text, Method::ALL.into_iter().map(Method::name)) {
        Some(meant) => flaw.label(format!("did you mean the method `{meant}`?")),
        None => flaw,
    }
}

/// Reads `base64(method:password@host:port)`: the method ends at the first colon, the host begins
/// after the last `@`.
fn old_form(raw: &str, span: Span) -> Result<Unfolded, Flaw> {
    let unreadable = || {
        Flaw::new(span, "method, key, host and port are missing")
            .label("not base64 of `METHOD:KEY@HOST:PORT` either")
            .help(FORMS)
    };
    // `/` is a base64 digit, but some programs write it before the name.
    let text = base64::link(raw)
        .filter(|text| text.contains('@'))
        .or_else(|| base64::link(raw.strip_suffix('/')?))
        .ok_or_else(unreadable)?;
    let (user, address) = text.rsplit_once('@').ok_or_else(unreadable)?;
    let (method, secret) = method_and_password(user, span)?;
    let whole = |mut flaw: Flaw| {
        flaw.span = span;
        flaw
    };
    let (host, port) = read_address(address, Span::default()).map_err(whole)?;
    let port = port.ok_or_else(|| Flaw::new(span, "the port is missing in the base64 text"))?;
    Ok(Unfolded {
        method,
        secret,
        host: host.map(|host| Spanned::new(host.value, span)),
        port: Spanned::new(port.value, span),
        params: Vec::new(),
        name: None,
    })
}

/// Splits method and password. Inside base64 a password is always literal: links of other programs have
/// no `@file`.
fn method_and_password(
    text: &str,
    span: Span,
) -> Result<(Spanned<String>, Spanned<SecretText>), Flaw> {
    let Some((method, password)) = text.split_once(':') else {
        return Err(neither("", span));
    };
    let secret = SecretText::Literal(Secret::from(password));
    Ok((
        Spanned::new(method.to_owned(), span),
        Spanned::new(secret, span),
    ))
}

/// Replaces the name of a known method by its main name, and removes an empty password.
pub(crate) fn name_method(endpoint: &mut Endpoint) {
    if let Some(user) = &mut endpoint.user
        && let Ok(method) = user.value.parse::<Method>()
    {
        method.name().clone_into(&mut user.value);
        // The AEAD edition has no empty passwords: a server with users has none.
        if method.edition() == Edition::Aead
            && let Some(secret) = &endpoint.secret
            && matches!(&secret.value, SecretText::Literal(text) if text.expose().is_empty())
        {
            endpoint.secret = None;
        }
    }
}

/// Returns the user part of SIP002: plain text for the 2022 edition, base64url for all others.
pub(crate) fn folded_user(method: &str, secret: &str) -> String {
    if method.starts_with("2022-") {
        format!("{}:{}", escape::part(method), escape::part(secret))
    } else {
        base64::write_link(&format!("{method}:{secret}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_method_alone_could_be_a_folded_one_with_its_key() {
        for method in Method::ALL {
            let folded = base64::link(method.name());
            assert!(!folded.is_some_and(|text| text.contains(':')), "{method}");
        }
    }
}
