//! What a scheme and a carrier say of themselves: one definition each, beside its code.

use core::fmt;

use crate::grammar::{Endpoint, Syntax};
use crate::schema::{EndpointRole, EndpointRoles, Param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::typed::{Hop, Listen, ServerHop};

/// What stands before `://`.
#[derive(Debug)]
pub struct Scheme {
    /// The name as it is written.
    pub name: &'static str,
    /// How an endpoint is written with it.
    pub form: &'static str,
    /// What it is, in a sentence or two.
    pub doc: &'static str,
    /// What it can be used as.
    pub roles: EndpointRoles,
    /// The keys, in the order of the reference.
    pub params: &'static [Param],
    /// Lists behind the doc, each with its name.
    pub(crate) lists: fn() -> Vec<(&'static str, String)>,
    /// What can stand behind it and a `+`, in the order of the reference.
    pub carriers: &'static [&'static Carrier],
    /// With a carrier it is a hop, too, whose target is at its far end.
    pub(crate) has_far_end: bool,
    /// Foreign links are written with it, and the same URL serves on both ends.
    pub(crate) is_shared: bool,
    /// A file can have the keys of its listener in a table beside the URL.
    pub(crate) has_key_table: bool,
    pub(crate) syntax: Syntax,
    /// Puts what stands before the host into its one spelling.
    pub(crate) normalize: fn(&mut Endpoint),
    /// The endpoint as a listener; `None` if it is none, with the reasons in the builder.
    pub(crate) listen: fn(&mut EndpointBuilder<'_, '_>) -> Option<Listen>,
    /// The endpoint as a hop.
    pub(crate) hop: fn(&mut EndpointBuilder<'_, '_>) -> Option<Hop>,
}

impl Scheme {
    /// What a definition begins with: nothing that is not said.
    pub(crate) const BLANK: Self = Self {
        name: "",
        form: "",
        doc: "",
        roles: EndpointRoles::Both,
        params: &[],
        lists: Vec::new,
        carriers: &[],
        has_far_end: false,
        is_shared: false,
        has_key_table: false,
        syntax: Syntax::PLAIN,
        normalize: |_| {},
        listen: |_| None,
        hop: |_| None,
    };
}

/// What stands behind a dialect and a `+`: it brings the bytes to the server where that is not TCP.
#[derive(Debug)]
pub struct Carrier {
    /// The name as it is written.
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub doc: &'static str,
    /// The keys that a scheme has with it besides its own.
    pub params: &'static [Param],
    /// A listener of a dialect, carried.
    pub(crate) listen: fn(&mut EndpointBuilder<'_, '_>, Listen) -> Option<Listen>,
    /// A hop of a dialect, carried.
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
pub(crate) struct Written {
    pub(crate) scheme: &'static Scheme,
    pub(crate) carrier: Option<&'static Carrier>,
}

impl Written {
    /// The keys, in the order of the reference.
    pub(crate) fn params(self) -> impl Iterator<Item = &'static Param> + Clone {
        let carrier = self.carrier.map_or(&[][..], |carrier| carrier.params);
        self.scheme.params.iter().chain(carrier)
    }

    /// What it can be used as.
    pub(crate) const fn roles(self) -> EndpointRoles {
        match self.carrier {
            Some(_) if self.scheme.has_far_end => EndpointRoles::Both,
            _ => self.scheme.roles,
        }
    }

    /// How it is written in this role.
    pub(crate) fn form(self, role: EndpointRole) -> String {
        let (name, form) = (self.scheme.name, self.scheme.form);
        let rest = match (self.carrier, role) {
            (Some(_), EndpointRole::Hop) if self.scheme.has_far_end => "://HOST:PORT",
            (Some(_), EndpointRole::Listener) if self.scheme.has_far_end => {
                "://[HOST]:PORT/TARGET:PORT"
            }
            _ => form.strip_prefix(name).unwrap_or(form),
        };
        format!("{self}{rest}")
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.name)?;
        match self.carrier {
            Some(carrier) => write!(f, "+{}", carrier.name),
            None => Ok(()),
        }
    }
}
