//! Definitions of schemes and carriers: one for each, next to its code.

use core::fmt;

use crate::grammar::{Endpoint, UrlSyntax};
use crate::schema::{EndpointRole, EndpointRoles, SchemeParam};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::endpoint_types::{Hop, ListenerConfig, ServerHop};

/// A scheme: the part of a URL before `://`.
#[derive(Debug)]
pub struct Scheme {
    /// The name as it is written.
    pub name: &'static str,
    /// The form of its URLs.
    pub form: &'static str,
    /// A short description.
    pub doc: &'static str,
    /// The possible roles.
    pub roles: EndpointRoles,
    /// The keys, in the order of the reference.
    pub params: &'static [SchemeParam],
    /// Lists after the description, each with its title.
    pub(crate) extra_lists: fn() -> Vec<(&'static str, String)>,
    /// The carriers that can follow it after a `+`, in the order of the reference.
    pub carriers: &'static [&'static Carrier],
    /// True if with a carrier it can also be a hop, whose remote end has the target.
    pub(crate) has_remote_target: bool,
    /// True if other programs write links with it, and the same URL works at both ends.
    pub(crate) is_shared: bool,
    /// True if a file can have the keys of its listener in a table beside the URL.
    pub(crate) has_key_table: bool,
    /// The syntax of its URLs.
    pub(crate) syntax: UrlSyntax,
    /// Brings the part before the host into its canonical spelling.
    pub(crate) normalize: fn(&mut Endpoint),
    /// Builds a listener, or returns `None` with the reasons in the builder.
    pub(crate) listen: fn(&mut EndpointBuilder<'_, '_>) -> Option<ListenerConfig>,
    /// Builds a hop, or returns `None` with the reasons in the builder.
    pub(crate) hop: fn(&mut EndpointBuilder<'_, '_>) -> Option<Hop>,
}

impl Scheme {
    /// The base of all definitions, with empty defaults.
    pub(crate) const BASE: Self = Self {
        name: "",
        form: "",
        doc: "",
        roles: EndpointRoles::Both,
        params: &[],
        extra_lists: Vec::new,
        carriers: &[],
        has_remote_target: false,
        is_shared: false,
        has_key_table: false,
        syntax: UrlSyntax::PLAIN,
        normalize: |_| {},
        listen: |_| None,
        hop: |_| None,
    };
}

/// A carrier: the part after a dialect and a `+`. It transports the dialect instead of TCP.
#[derive(Debug)]
pub struct Carrier {
    /// The name as it is written.
    pub name: &'static str,
    /// A short description.
    pub doc: &'static str,
    /// The keys that it adds to those of a scheme.
    pub params: &'static [SchemeParam],
    /// Adds the carrier to the listener of a dialect.
    pub(crate) listen: fn(&mut EndpointBuilder<'_, '_>, ListenerConfig) -> Option<ListenerConfig>,
    /// Adds the carrier to the hop of a dialect.
    pub(crate) hop: fn(&mut EndpointBuilder<'_, '_>, ServerHop) -> Option<Hop>,
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for Carrier {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A scheme with its carrier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SchemeWithCarrier {
    /// The scheme of the dialect.
    pub(crate) scheme: &'static Scheme,
    /// The carrier, if there is one.
    pub(crate) carrier: Option<&'static Carrier>,
}

impl SchemeWithCarrier {
    /// Returns the keys, in the order of the reference.
    pub(crate) fn params(self) -> impl Iterator<Item = &'static SchemeParam> + Clone {
        let carrier = self.carrier.map_or(&[][..], |carrier| carrier.params);
        self.scheme.params.iter().chain(carrier)
    }

    /// Returns the possible roles.
    pub(crate) const fn roles(self) -> EndpointRoles {
        match self.carrier {
            Some(_) if self.scheme.has_remote_target => EndpointRoles::Both,
            _ => self.scheme.roles,
        }
    }

    /// Returns the form of its URLs in this role.
    pub(crate) fn url_form(self, role: EndpointRole) -> String {
        let (name, form) = (self.scheme.name, self.scheme.form);
        let rest = match (self.carrier, role) {
            (Some(_), EndpointRole::Hop) if self.scheme.has_remote_target => "://HOST:PORT",
            (Some(_), EndpointRole::Listener) if self.scheme.has_remote_target => {
                "://[HOST]:PORT/TARGET:PORT"
            }
            _ => form.strip_prefix(name).unwrap_or(form),
        };
        format!("{self}{rest}")
    }
}

impl fmt::Display for SchemeWithCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.name)?;
        match self.carrier {
            Some(carrier) => write!(f, "+{}", carrier.name),
            None => Ok(()),
        }
    }
}
