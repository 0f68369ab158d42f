//! The management API in a build without the feature `admin`.

#![allow(
    clippy::needless_pass_by_ref_mut,
    reason = "the functions are those of the type that this one replaces"
)]

use std::path::Path;
use std::sync::Arc;

use adit_admin::api::{Api, ApiListenerControl};
use adit_admin::user_store::UserStoreControl;
use adit_admin::webhook::WebhookHub;
use adit_cli::{Failure, FailureCode};
use adit_config::{AdminSettings, Family, LeftOut, Plan};
use adit_engine::Engine;

use super::upgrade::InheritedApi;
use crate::args;

/// The listener of the API: there is none.
pub(super) enum AdminApi {}

impl AdminApi {
    /// Fails if the arguments or the file request a listener. Ends that of the process which this one succeeds.
    pub(super) async fn open(
        typed: &args::RunArgs,
        file: Option<&AdminSettings>,
        inherited: Option<InheritedApi>,
    ) -> Result<Option<Self>, Failure> {
        let names_users = typed.metrics_users;
        let typed = [&typed.admin, &typed.admin_token, &typed.public_host];
        if file.is_some() || names_users || typed.iter().any(|option| option.is_some()) {
            return Err(left_out_failure());
        }
        if let Some(inherited) = inherited {
            match inherited.continue_at("", false).await {
                Ok(_) => {}
                Err(why) => match why {},
            }
        }
        Ok(None)
    }

    pub(super) const fn is_continued(&self) -> bool {
        match *self {}
    }

    pub(super) const fn address(&self) -> String {
        match *self {}
    }

    pub(super) const fn control(&self) -> ApiListenerControl {
        match *self {}
    }

    pub(super) fn api(&mut self, _: Arc<Engine>, _: &Plan) -> Api {
        match *self {}
    }

    pub(super) async fn serve(self, _: Arc<Api>) {
        match self {}
    }
}

/// The store of users: there is none.
pub(super) enum OpenStore {}

impl OpenStore {
    pub(super) async fn open(_: Option<&AdminSettings>) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(super) const fn restore(&mut self, _: &Engine) {
        match *self {}
    }

    pub(super) const fn follow(self, _: &Engine) -> UserStoreControl {
        match self {}
    }
}

/// Checks nothing: a plan with settings of the API has an error.
pub(super) const fn check_settings(_: &Plan) -> Result<(), Failure> {
    Ok(())
}

/// Fails: this build sends no events.
pub(super) fn start_webhooks(_: &Plan, _: &Path, _: &Engine) -> Result<WebhookHub, Failure> {
    Err(left_out_failure())
}

/// Never called.
pub(super) const fn set_webhooks(hub: &WebhookHub, _: &Plan) -> Result<(), String> {
    match *hub {}
}

/// Checks nothing: a plan with receivers has an error.
pub(super) const fn check_webhooks(_: &Plan) -> Result<(), String> {
    Ok(())
}

/// Never called.
pub(super) fn webhook_failure(why: String) -> Failure {
    Failure::new(FailureCode::Config, why)
}

/// Never called.
pub(super) const fn announce_users(_: Api, hub: &WebhookHub) -> Api {
    match *hub {}
}

/// Returns the failure of what needs the management API, or downloads.
pub(super) fn left_out_failure() -> Failure {
    Failure::new(FailureCode::Usage, LeftOut(Family::Admin).to_string())
        .with_hint("use a build with all features; `adit --version` lists those of this one")
}
