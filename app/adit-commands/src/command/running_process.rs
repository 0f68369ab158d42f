//! The running process of `adit status`, `sessions`, `routes` and `top`, which its management API describes.

use std::path::Path;

use adit_admin::api::{ApiClient, ApiRequestError};
use adit_cli::{Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use zeroize::Zeroizing;

use super::{admin, upgrade};
use crate::args;

/// Hint for a command without an address.
const HINT: &str = "--admin ADDRESS as in `adit run --admin ADDRESS`, or -c FILE with `[admin]`";

/// Returns a client of the API of the process that the arguments name, with its token.
pub(super) fn client_of(typed: &args::ProcessArgs) -> Result<ApiClient, Failure> {
    client_with(typed, HINT, admin::first_token)
}

/// Does the same with another hint for a command without an address.
pub(super) fn client_or_hint(typed: &args::ProcessArgs, hint: &str) -> Result<ApiClient, Failure> {
    client_with(typed, hint, admin::first_token)
}

/// Returns a client of the API of the process that the arguments name, with a token that may read keys.
pub(super) fn revealing_client_of(typed: &args::ProcessArgs) -> Result<ApiClient, Failure> {
    client_with(typed, HINT, admin::revealing_token)
}

/// Returns a token from the typed file of tokens, or from that of `[admin]`.
type TokenReader = fn(Option<&str>, Option<&Path>) -> Result<Option<Zeroizing<String>>, Failure>;

fn client_with(
    typed: &args::ProcessArgs,
    hint: &str,
    read_token: TokenReader,
) -> Result<ApiClient, Failure> {
    let file = typed.config.as_deref();
    let settings = upgrade::admin_of_file(file)?;
    let at = upgrade::api_address(typed.admin.as_deref(), file, settings.as_ref(), hint)?;
    let tokens = settings.as_ref().and_then(|admin| admin.tokens.as_deref());
    let token = read_token(typed.admin_token.as_deref(), tokens)?;
    Ok(ApiClient::new(at.to_owned(), token))
}

/// Returns the failure of a request.
pub(super) fn to_failure(why: ApiRequestError) -> Failure {
    // The words of another process.
    let what = sanitize_for_terminal(&why.to_string());
    match why {
        ApiRequestError::Connect { .. } | ApiRequestError::Exchange { .. } => {
            Failure::new(FailureCode::Network, what)
        }
        ApiRequestError::Refused { status: 401, .. } => Failure::new(FailureCode::Failure, what)
            .with_hint("--admin-token @FILE, with the tokens of the running process"),
        ApiRequestError::Refused { .. } => Failure::new(FailureCode::Failure, what),
    }
}

/// Returns true if the process has no such path: it is older than this program.
pub(super) const fn is_unknown_path(why: &ApiRequestError) -> bool {
    matches!(why, ApiRequestError::Refused { status: 404, .. })
}

/// Returns the failure of a request for figures that an older process does not have.
pub(super) fn to_figures_failure(why: ApiRequestError) -> Failure {
    if is_unknown_path(&why) {
        let what = "the running process does not report this: it is older than this program";
        return Failure::new(FailureCode::Failure, what)
            .with_hint("`adit upgrade` replaces it by a new version without closing a connection");
    }
    to_failure(why)
}
