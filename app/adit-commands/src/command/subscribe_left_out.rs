//! Documents with servers in a build without the feature `admin`.

use std::convert::Infallible;
use std::path::Path;

use adit_cli::CommandResult;

use super::admin;
use crate::args;

/// Returns true if a URL names a document, and not a server.
pub(super) fn is_document_url(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["https", "ssconf"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns no URL: documents are not fetched.
pub(super) const fn document_url(_: &str) -> Option<Infallible> {
    None
}

pub(super) fn run_client_of_file(_: &args::ClientArgs, _: &Path) -> CommandResult {
    Err(admin::left_out_failure())
}

pub(super) fn run_subscribed_client(_: &args::ClientArgs, _: &str) -> CommandResult {
    Err(admin::left_out_failure())
}
