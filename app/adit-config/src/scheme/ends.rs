//! `direct://` and `reject://`: where a chain can end.

use crate::draft::Draft;
use crate::param::Param;
use crate::plan::Hop;
use crate::text::Flaw;

pub(crate) const DOC_DIRECT: &str =
    "Straight to the target; what a chain without hops does. In the first group: without this hop.";
pub(crate) const DOC_REJECT: &str = "Refuses every request.";

pub(crate) const PARAMS: &[Param] = &[];

pub(crate) fn hop(draft: &mut Draft<'_, '_>, end: Hop) -> Option<Hop> {
    let endpoint = draft.endpoint();
    let extra = [
        endpoint.user.as_ref().map(|user| user.span),
        endpoint.host.as_ref().map(|host| host.span),
        endpoint.port.as_ref().map(|port| port.span),
        endpoint.target.as_ref().map(|target| target.span),
    ];
    if let Some(span) = extra.into_iter().flatten().next() {
        let form = draft.scheme().form();
        draft.problem(Flaw::new(span, format!("`{form}` stands alone")));
        return None;
    }
    Some(end)
}
