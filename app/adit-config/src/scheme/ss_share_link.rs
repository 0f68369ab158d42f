//! Share links of Shadowsocks: the user part of SIP002, and the older form that is all base64.

use adit_shadowsocks::{Edition, Method};
use zeroize::Zeroizing;

use crate::family::{Family, LeftOut};
use crate::grammar::{
    self, EncodedUser, Endpoint, LinkForm, ParsedLink, UrlSyntax, UserInfo, parse_address,
};
use crate::text::{ConfigError, Secret, SecretText, Span, Spanned, base64, escape, nearest_word};

/// The syntax of `ss` URLs.
pub(crate) const SYNTAX: UrlSyntax = UrlSyntax {
    is_method: Some(is_method),
    encoded_user: Some(EncodedUser {
        read: parse_userinfo,
        write: write_userinfo,
    }),
    link: Some(LinkForm {
        matches: is_old_form,
        parse: parse_old_form,
        write: None,
        with_carrier: true,
    }),
    ..UrlSyntax::PLAIN
};

/// The hint for wrong URLs.
const FORM_HINT: &str = "write `ss://METHOD:KEY@HOST:PORT`; `adit keygen METHOD` makes a key";

/// True if this is the older form: `base64(method:password@host:port)`.
fn is_old_form(raw: &str) -> bool {
    !matches!(raw, "" | "/") && !raw.contains(['@', ':'])
}

/// Reads `method:percent(password)`, `base64(method:password)` or a method alone.
fn parse_userinfo(raw: &str, span: Span) -> Result<UserInfo, ConfigError> {
    if let Some((method, secret)) = raw.split_once(':') {
        let method_span = Span::of_part(span.start, method);
        let secret_span = Span::new(method_span.end + 1, span.end);
        let method = grammar::decode_text(method, method_span)?;
        let secret = grammar::parse_secret(secret, secret_span)?;
        return Ok((
            Some(Spanned::new(method, method_span)),
            Some(Spanned::new(secret, secret_span)),
        ));
    }
    // The separator itself can be percent-encoded. Base64 has no colon, so this is unambiguous.
    let plain = Zeroizing::new(grammar::decode_text(raw, span)?);
    let text = if plain.contains(':') {
        plain
    } else if is_method(&plain) {
        return Ok((Some(Spanned::new(plain.to_string(), span)), None));
    } else {
        base64::decode_link(raw).ok_or_else(|| userinfo_error(&plain, span))?
    };
    let (method, secret) = method_and_password(&text, span)?;
    Ok((Some(method), Some(secret)))
}

/// True if the text is the name of a method. No name is base64 of a text with a colon.
pub(crate) fn is_method(text: &str) -> bool {
    text.parse::<Method>().is_ok()
}

/// Returns the error of a user part that is neither plain nor base64.
fn userinfo_error(text: &str, span: Span) -> ConfigError {
    if let Err(why) = text.parse::<Method>()
        && why.is_left_out()
    {
        return LeftOut(Family::LegacyCiphers).error_at(span);
    }
    let flaw = ConfigError::new(span, "neither `METHOD:KEY` nor base64 of it").with_help(FORM_HINT);
    match nearest_word(text, Method::ALL.into_iter().map(Method::name)) {
        Some(meant) => flaw.with_label(format!("did you mean the method `{meant}`?")),
        None => flaw,
    }
}

/// Reads `base64(method:password@host:port)`: the method ends at the first colon, the host begins
/// after the last `@`.
fn parse_old_form(raw: &str, span: Span) -> Result<ParsedLink, ConfigError> {
    let unreadable = || {
        ConfigError::new(span, "method, key, host and port are missing")
            .with_label("not base64 of `METHOD:KEY@HOST:PORT` either")
            .with_help(FORM_HINT)
    };
    // `/` is a base64 digit, but some programs write it before the name.
    let text = base64::decode_link(raw)
        .filter(|text| text.contains('@'))
        .or_else(|| base64::decode_link(raw.strip_suffix('/')?))
        .ok_or_else(unreadable)?;
    let (user, address) = text.rsplit_once('@').ok_or_else(unreadable)?;
    let (method, secret) = method_and_password(user, span)?;
    let whole = |mut flaw: ConfigError| {
        flaw.span = span;
        flaw
    };
    let (host, port) = parse_address(address, Span::default()).map_err(whole)?;
    let port =
        port.ok_or_else(|| ConfigError::new(span, "the port is missing in the base64 text"))?;
    Ok(ParsedLink {
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
) -> Result<(Spanned<String>, Spanned<SecretText>), ConfigError> {
    let Some((method, password)) = text.split_once(':') else {
        return Err(userinfo_error("", span));
    };
    let secret = SecretText::Literal(Secret::from(password));
    Ok((
        Spanned::new(method.to_owned(), span),
        Spanned::new(secret, span),
    ))
}

/// Replaces the name of a known method by its main name, and removes an empty password.
pub(crate) fn normalize_method(endpoint: &mut Endpoint) {
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
pub(crate) fn write_userinfo(method: &str, secret: &str) -> String {
    if method.starts_with("2022-") {
        format!(
            "{}:{}",
            escape::encode_part(method),
            escape::encode_part(secret)
        )
    } else {
        base64::encode_link(&format!("{method}:{secret}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_method_alone_could_be_a_folded_one_with_its_key() {
        for method in Method::ALL {
            let folded = base64::decode_link(method.name());
            assert!(!folded.is_some_and(|text| text.contains(':')), "{method}");
        }
    }
}
