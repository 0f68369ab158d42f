//! Writes URLs in their canonical form.
//!
//! The canonical form has scheme and host in lower case, the main names of methods, keys in the order
//! of the scheme's table with values in their canonical spelling, and `ss` as SIP002. Files and
//! variables that a secret refers to are not read.

use core::fmt::Write;

use adit_shadowsocks::Method;
use adit_wire::{Host, Target};

use crate::grammar::{Endpoint, LinkForm, QueryPair};
use crate::scheme::builder::bad_value_error;
use crate::scheme::{
    Scheme, SchemeWithCarrier, duplicate_key, parse_scheme, secret_redaction,
    ss_share_link as shadowsocks, unknown_key_error,
};
use crate::text::{ConfigError, LineIndex, Origin, Problem, escape, format_target};

/// Returns the canonical form of a URL. It contains the secret if the URL does.
///
/// Keys of foreign `ss` links are kept, at the end.
///
/// # Errors
///
/// All problems of a URL that cannot be parsed, or whose keys are unknown, wrong or repeated.
pub fn canonical_url(text: &str) -> Result<String, Vec<Problem>> {
    let lines = LineIndex::default();
    let excerpt = secret_redaction::redacting_document(&Origin::Text, text, &lines).as_url();
    let problem = |flaw| vec![excerpt.locate_error(flaw)];
    let mut endpoint = Endpoint::parse(text).map_err(problem)?;
    let written = parse_scheme(&endpoint).map_err(problem)?;
    let flaws = normalize_endpoint(&mut endpoint, written);
    if flaws.is_empty() {
        Ok(endpoint.to_url())
    } else {
        Err(flaws
            .into_iter()
            .map(|flaw| excerpt.locate_error(flaw))
            .collect())
    }
}

/// Returns the link for other programs: the canonical form, or for `ssr` the base64 form.
///
/// # Errors
///
/// As for `canonical`, and keys that the base64 form cannot express.
pub fn share_link(text: &str) -> Result<String, Vec<Problem>> {
    let canonical = canonical_url(text)?;
    let Some(fold) = link_form_of(&canonical).and_then(|link| link.write) else {
        return Ok(canonical);
    };
    let folded = Endpoint::parse(&canonical).and_then(|endpoint| fold(&endpoint));
    let lines = LineIndex::default();
    let excerpt = secret_redaction::redacting_document(&Origin::Text, &canonical, &lines).as_url();
    folded.map_err(|flaw| vec![excerpt.locate_error(flaw)])
}

/// Returns the canonical form, or for an `ssr` URL the other of its two forms.
///
/// # Errors
///
/// As for `share`.
pub fn toggle_form(text: &str) -> Result<String, Vec<Problem>> {
    let behind = text.split_once("://").map_or("", |(_, behind)| behind);
    let raw = behind.split(['?', '#']).next().unwrap_or_default();
    match link_form_of(text) {
        Some(link) if link.write.is_some() && !(link.matches)(raw) => share_link(text),
        _ => canonical_url(text),
    }
}

/// Returns the link form of a URL's scheme, if it has one.
fn link_form_of(text: &str) -> Option<LinkForm> {
    let (scheme, _) = text.split_once("://")?;
    Scheme::find_by_name(scheme).ok()?.syntax.link
}

/// Converts a Shadowsocks link in any of its forms to SIP002. Any method is accepted.
///
/// # Errors
///
/// The text is not a URL, or not a Shadowsocks link.
pub fn ss_to_sip002(text: &str) -> Result<String, ConfigError> {
    let mut endpoint = Endpoint::parse(text)?;
    if endpoint.scheme.value != "ss" {
        let flaw = ConfigError::new(endpoint.scheme.span, "not a Shadowsocks link");
        return Err(flaw.with_label("expected `ss`"));
    }
    shadowsocks::normalize_method(&mut endpoint);
    Ok(endpoint.to_url())
}

/// Returns the SIP002 link of a server, as `adit server` prints it and a QR code contains it. `secret`
/// can be several keys joined by `:` (SIP023).
#[must_use]
pub fn shadowsocks_link(method: Method, secret: &str, host: &Host, port: u16) -> String {
    let user = shadowsocks::write_userinfo(method.name(), secret);
    let server = format_target(&Target::new(host.clone(), port));
    format!("ss://{user}@{server}")
}

/// Returns the URL of a ShadowsocksR server in adit's own form, with these keys.
#[must_use]
pub fn shadowsocksr_url(
    method: &str,
    secret: &str,
    host: &Host,
    port: u16,
    keys: &[(&str, &str)],
) -> String {
    let (user, secret) = (escape::encode_part(method), escape::encode_part(secret));
    let server = format_target(&Target::new(host.clone(), port));
    let mut url = format!("ssr://{user}:{secret}@{server}");
    for (i, (key, value)) in keys.iter().enumerate() {
        let mark = if i == 0 { '?' } else { '&' };
        // Writing to a `String` cannot fail.
        let _ = write!(url, "{mark}{key}={}", escape::encode_value(value));
    }
    url
}

/// Brings every part into its canonical spelling. Returns the errors in its keys.
fn normalize_endpoint(endpoint: &mut Endpoint, written: SchemeWithCarrier) -> Vec<ConfigError> {
    let mut flaws = Vec::new();
    (written.scheme.normalize)(endpoint);
    if let Some(host) = &mut endpoint.host
        && let Host::Name(name) = &host.value
        && let Ok(lower) = Host::parse(&name.as_str().to_ascii_lowercase())
    {
        host.value = lower;
    }
    if let Some(target) = &mut endpoint.target
        && let Ok(read) = target.value.parse::<Target>()
    {
        target.value = format_target(&read).to_ascii_lowercase();
    }
    let row = |pair: &QueryPair| {
        let name = pair.key.value.as_str();
        written
            .params()
            .position(|param| param.setting.is_named(name))
    };
    let param = |pair: &QueryPair| row(pair).and_then(|row| written.params().nth(row));
    for pair in &endpoint.params {
        flaws.extend(param(pair).and_then(|param| duplicate_key(endpoint, param, pair)));
    }
    for pair in &mut endpoint.params {
        match param(pair) {
            Some(param) => match param.setting.canonicalize(&pair.value.value) {
                Ok(value) => {
                    pair.value.value = value;
                    param.setting.name().clone_into(&mut pair.key.value);
                }
                Err(expected) => {
                    let span = pair.value.span;
                    flaws.push(bad_value_error(&pair.key.value, span, expected));
                }
            },
            None => flaws.extend(unknown_key_error(written, pair)),
        }
    }
    endpoint
        .params
        .sort_by_key(|pair| row(pair).unwrap_or(usize::MAX));
    flaws
}
