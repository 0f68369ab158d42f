//! Writing URLs: any form in, the canonical one out.
//!
//! Canonical means: lower case scheme and host, known names of methods, keys in the order of the
//! scheme's table with values in their one spelling, `ss` as SIP002. Files and variables that a
//! secret names are not read.

use core::fmt::Write;

use adit_shadowsocks::{Edition, Method};
use adit_wire::{Host, Target};

use crate::draft;
use crate::endpoint::{Endpoint, Pair};
use crate::param;
use crate::quote::Quote;
use crate::scheme::carrier::dialect;
use crate::scheme::{Scheme, Written, ssr};
use crate::text::{Flaw, Origin, Problem, SecretText, base64, escape, write_target};

/// The canonical form of a URL. It holds the secret if the URL does.
///
/// Keys of foreign `ss` links are kept, at the end.
pub fn canonical(text: &str) -> Result<String, Vec<Problem>> {
    let quote = Quote::whole(&Origin::Text, text);
    let problem = |flaw| vec![quote.problem(flaw)];
    let mut endpoint = Endpoint::parse(text).map_err(problem)?;
    let scheme = draft::written(&endpoint).map_err(problem)?;
    let flaws = normalize(&mut endpoint, scheme);
    if flaws.is_empty() {
        Ok(endpoint.to_url())
    } else {
        Err(flaws.into_iter().map(|flaw| quote.problem(flaw)).collect())
    }
}

/// The link to pass on to other programs: the canonical form, for `ssr` the base64 form.
pub fn share(text: &str) -> Result<String, Vec<Problem>> {
    let canonical = canonical(text)?;
    if !is_ssr(&canonical) {
        return Ok(canonical);
    }
    let folded = Endpoint::parse(&canonical).and_then(|endpoint| ssr::link::fold(&endpoint));
    let quote = Quote::whole(&Origin::Text, &canonical);
    folded.map_err(|flaw| vec![quote.problem(flaw)])
}

/// The canonical form; of an `ssr` URL the other of its two forms.
pub fn turned(text: &str) -> Result<String, Vec<Problem>> {
    let behind = text.split_once("://").map_or("", |(_, behind)| behind);
    let raw = behind.split(['?', '#']).next().unwrap_or_default();
    if is_ssr(text) && !ssr::link::is_folded(raw) {
        return share(text);
    }
    canonical(text)
}

fn is_ssr(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(Scheme::Ssr.name()))
}

/// A Shadowsocks link in any of its forms as SIP002, whatever its method.
pub fn ss_to_sip002(text: &str) -> Result<String, Flaw> {
    let mut endpoint = Endpoint::parse(text)?;
    if endpoint.scheme.value != Scheme::Ss.name() {
        let flaw = Flaw::new(endpoint.scheme.span, "not a Shadowsocks link");
        return Err(flaw.label("expected `ss`"));
    }
    name_method(&mut endpoint);
    Ok(endpoint.to_url())
}

/// The SIP002 link of a server: what `adit server` prints and a QR code holds. `secret` can be
/// several keys joined by `:` (SIP023).
#[must_use]
pub fn ss(method: Method, secret: &str, host: &Host, port: u16) -> String {
    let user = folded_user(method.name(), secret);
    let server = write_target(&Target::new(host.clone(), port));
    format!("ss://{user}@{server}")
}

/// The URL of a ShadowsocksR server, in the form that adit has for it, with these keys.
#[must_use]
pub fn ssr(method: &str, secret: &str, host: &Host, port: u16, keys: &[(&str, &str)]) -> String {
    let (user, secret) = (escape::part(method), escape::part(secret));
    let server = write_target(&Target::new(host.clone(), port));
    let mut url = format!("ssr://{user}:{secret}@{server}");
    for (i, (key, value)) in keys.iter().enumerate() {
        let mark = if i == 0 { '?' } else { '&' };
        push(
            &mut url,
            format_args!("{mark}{key}={}", escape::value(value)),
        );
    }
    url
}

impl Endpoint {
    /// The URL of these parts; `ss` is written as SIP002. Reading it gives the same parts.
    #[must_use]
    pub fn to_url(&self) -> String {
        let scheme = dialect(&self.scheme.value);
        let ss = scheme == Some(Scheme::Ss);
        let mut url = format!("{}://", self.scheme.value);
        if self.user.is_some() || self.secret.is_some() {
            let user = self.user.as_ref().map_or("", |user| &user.value);
            let secret = self.secret.as_ref().map(|secret| &secret.value);
            match secret {
                Some(SecretText::Literal(secret)) if ss => {
                    url.push_str(&folded_user(user, secret.expose()));
                }
                Some(secret) if scheme == Some(Scheme::Kcptun) => push_secret(&mut url, secret),
                secret => push_user(&mut url, user, secret),
            }
            url.push('@');
        }
        match self.host.as_ref().map(|host| &host.value) {
            None => {}
            Some(Host::Ip(ip)) if ip.is_ipv6() => push(&mut url, format_args!("[{ip}]")),
            Some(Host::Ip(ip)) => push(&mut url, format_args!("{ip}")),
            Some(Host::Name(name)) => url.push_str(name.as_str()),
        }
        if let Some(port) = &self.port {
            push(&mut url, format_args!(":{}", port.value));
        }
        if let Some(target) = &self.target {
            push(&mut url, format_args!("/{}", escape::value(&target.value)));
        } else if ss && !self.params.is_empty() {
            // SIP002 has a slash before the query.
            url.push('/');
        }
        for (i, pair) in self.params.iter().enumerate() {
            url.push(if i == 0 { '?' } else { '&' });
            push(
                &mut url,
                format_args!("{}=", escape::value(&pair.key.value)),
            );
            // A raw `@` is read only where it opens the path of a file.
            let value = match pair.value.value.strip_prefix('@') {
                Some(path) if param::opens_file(&url) => {
                    url.push('@');
                    path
                }
                _ => &pair.value.value,
            };
            url.push_str(&escape::value(value));
        }
        push_name(&mut url, self.name.as_ref().map(|name| name.value.as_str()));
        url
    }
}

/// Puts every part into its one spelling; what is wrong with the keys comes back.
fn normalize(endpoint: &mut Endpoint, written: Written) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let scheme = written.scheme;
    if scheme == Scheme::Ss {
        name_method(endpoint);
    }
    if scheme == Scheme::Ssr
        && let Some(user) = &mut endpoint.user
        && ssr::is_method(&user.value)
    {
        user.value.make_ascii_lowercase();
    }
    if let Some(host) = &mut endpoint.host
        && let Host::Name(name) = &host.value
        && let Ok(lower) = Host::parse(&name.as_str().to_ascii_lowercase())
    {
        host.value = lower;
    }
    if let Some(target) = &mut endpoint.target
        && let Ok(read) = target.value.parse::<Target>()
    {
        target.value = write_target(&read).to_ascii_lowercase();
    }
    let row = |pair: &Pair| {
        let name = pair.key.value.as_str();
        written
            .params()
            .position(|param| param.setting.name() == name)
    };
    for pair in &mut endpoint.params {
        match row(pair).and_then(|row| written.params().nth(row)) {
            Some(param) => match param.setting.canonical(&pair.value.value) {
                Ok(value) => pair.value.value = value,
                Err(expected) => {
                    let span = pair.value.span;
                    flaws.push(draft::bad_value(param.setting.name(), span, expected));
                }
            },
            None => flaws.extend(draft::unknown_key(written, pair)),
        }
    }
    endpoint
        .params
        .sort_by_key(|pair| row(pair).unwrap_or(usize::MAX));
    flaws
}

/// Known methods by the name they have today, others as they are; and no empty password.
fn name_method(endpoint: &mut Endpoint) {
    if let Some(user) = &mut endpoint.user
        && let Ok(method) = user.value.parse::<Method>()
    {
        method.name().clone_into(&mut user.value);
        // The AEAD edition has no empty passwords: users bring theirs.
        if method.edition() == Edition::Aead
            && let Some(secret) = &endpoint.secret
            && matches!(&secret.value, SecretText::Literal(text) if text.expose().is_empty())
        {
            endpoint.secret = None;
        }
    }
}

/// SIP002: the 2022 edition in plain text, all others as base64url.
fn folded_user(method: &str, secret: &str) -> String {
    if method.starts_with("2022-") {
        format!("{}:{}", escape::part(method), escape::part(secret))
    } else {
        base64::write_link(&format!("{method}:{secret}"))
    }
}

fn push_user(url: &mut String, user: &str, secret: Option<&SecretText>) {
    url.push_str(&escape::part(user));
    if let Some(secret) = secret {
        url.push(':');
        push_secret(url, secret);
    }
}

fn push_secret(url: &mut String, secret: &SecretText) {
    match secret {
        SecretText::Literal(secret) => url.push_str(&escape::part(secret.expose())),
        SecretText::File(path) => push(url, format_args!("@{}", escape::path(path))),
        SecretText::Variable(name) => push(url, format_args!("${name}")),
    }
}

fn push_name(url: &mut String, name: Option<&str>) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        push(url, format_args!("#{}", escape::part(name)));
    }
}

/// Writing to a `String` cannot fail.
fn push(url: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = url.write_fmt(text);
}
