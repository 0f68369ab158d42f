//! `direct://` and `reject://`: the ends of a chain.

use crate::schema::EndpointRoles;
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::definition::Scheme;
use crate::scheme::endpoint_types::Hop;
use crate::text::ConfigError;

pub(crate) static SCHEME_DIRECT: Scheme = Scheme {
    name: "direct",
    form: "direct://",
    doc: "Connects to the target directly, as a chain without hops does. In the first group it \
          means: without this hop.",
    roles: EndpointRoles::Hop,
    hop: |builder| build_end(builder, Hop::Direct),
    ..Scheme::BASE
};

pub(crate) static SCHEME_REJECT: Scheme = Scheme {
    name: "reject",
    form: "reject://",
    doc: "Refuses every request.",
    roles: EndpointRoles::Hop,
    hop: |builder| build_end(builder, Hop::Reject),
    ..Scheme::BASE
};

/// Builds the end of a chain. Its URL has no other parts.
fn build_end(builder: &mut EndpointBuilder<'_, '_>, end: Hop) -> Option<Hop> {
    let endpoint = builder.endpoint();
    let extra = [
        endpoint.user.as_ref().map(|user| user.span),
        endpoint.host.as_ref().map(|host| host.span),
        endpoint.port.as_ref().map(|port| port.span),
        endpoint.target.as_ref().map(|target| target.span),
    ];
    if let Some(span) = extra.into_iter().flatten().next() {
        let form = builder.scheme().form;
        builder.report_error(ConfigError::new(
            span,
            format!("`{form}` has no other parts"),
        ));
        return None;
    }
    Some(end)
}
