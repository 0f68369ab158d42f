//! Writes an endpoint as a URL.

use core::fmt::Write;

use adit_wire::Host;

use crate::grammar::{Endpoint, SchemeLookups};
use crate::text::{SecretText, escape};

impl Endpoint {
    /// Returns the URL of these parts.
    pub(crate) fn to_url_with(&self, dialects: SchemeLookups) -> String {
        let syntax = (dialects.syntax)(&self.scheme.value);
        let mut url = format!("{}://", self.scheme.value);
        if self.user.is_some() || self.secret.is_some() {
            let user = self.user.as_ref().map_or("", |user| &user.value);
            let secret = self.secret.as_ref().map(|secret| &secret.value);
            match (secret, &syntax.encoded_user) {
                (Some(SecretText::Literal(secret)), Some(folded)) => {
                    url.push_str(&(folded.write)(user, secret.expose()));
                }
                (Some(secret), _) if syntax.secret_only => push_secret(&mut url, secret),
                (secret, _) => push_user(&mut url, user, secret),
            }
            url.push('@');
        }
        match self.host.as_ref().map(|host| &host.value) {
            None => {}
            Some(Host::Ip(ip)) if ip.is_ipv6() => push_formatted(&mut url, format_args!("[{ip}]")),
            Some(Host::Ip(ip)) => push_formatted(&mut url, format_args!("{ip}")),
            Some(Host::Name(name)) => url.push_str(name.as_str()),
        }
        if let Some(port) = &self.port {
            push_formatted(&mut url, format_args!(":{}", port.value));
        }
        if let Some(last) = self.last_port {
            push_formatted(&mut url, format_args!("-{last}"));
        }
        if let Some(target) = &self.target {
            push_formatted(
                &mut url,
                format_args!("/{}", escape::encode_value(&target.value)),
            );
        } else if syntax.encoded_user.is_some() && !self.params.is_empty() {
            // SIP002 has a slash before the query.
            url.push('/');
        }
        for (i, pair) in self.params.iter().enumerate() {
            url.push(if i == 0 { '?' } else { '&' });
            push_formatted(
                &mut url,
                format_args!("{}=", escape::encode_value(&pair.key.value)),
            );
            // A raw `@` is accepted only where it begins the path of a file.
            let value = match pair.value.value.strip_prefix('@') {
                Some(path) if (dialects.opens_file)(&url) => {
                    url.push('@');
                    path
                }
                _ => &pair.value.value,
            };
            url.push_str(&escape::encode_value(value));
        }
        push_name(&mut url, self.name.as_ref().map(|name| name.value.as_str()));
        url
    }
}

/// Appends a user with a secret.
fn push_user(url: &mut String, user: &str, secret: Option<&SecretText>) {
    url.push_str(&escape::encode_part(user));
    if let Some(secret) = secret {
        url.push(':');
        push_secret(url, secret);
    }
}

/// Appends a secret, or the reference to it.
fn push_secret(url: &mut String, secret: &SecretText) {
    match secret {
        SecretText::Literal(secret) => url.push_str(&escape::encode_part(secret.expose())),
        SecretText::File(path) => {
            push_formatted(url, format_args!("@{}", escape::encode_path(path)));
        }
        SecretText::Variable(name) => push_formatted(url, format_args!("${name}")),
    }
}

/// Appends the name.
fn push_name(url: &mut String, name: Option<&str>) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        push_formatted(url, format_args!("#{}", escape::encode_part(name)));
    }
}

/// Appends formatted text. Writing to a `String` cannot fail.
fn push_formatted(url: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = url.write_fmt(text);
}
