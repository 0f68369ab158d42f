//! Nodes of fleets in a build without the feature `fleet`: a plan with `[fleet]` has an error.

#![allow(
    clippy::needless_pass_by_ref_mut,
    clippy::unnecessary_wraps,
    reason = "the functions are those of the module that this one replaces"
)]

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use adit_admin::api::Api;
use adit_admin::webhook::WebhookHub;
use adit_cli::Failure;
use adit_config::Plan;
use adit_engine::{Engine, FleetUsers};
use tokio::sync::oneshot;

/// The control of a node: there is none.
#[derive(Clone)]
pub(super) struct FleetControl(Infallible);

impl FleetControl {
    pub(super) async fn close(&self) {
        match self.0 {}
    }

    pub(super) async fn reopen(&self) {
        match self.0 {}
    }

    pub(super) async fn finish(&self) {
        match self.0 {}
    }

    pub(super) async fn next_upgrade(&self) -> Option<PathBuf> {
        match self.0 {}
    }

    pub(super) async fn next_resume(&self) -> oneshot::Sender<bool> {
        match self.0 {}
    }

    pub(super) fn set_upgrade_result(&self, _: String) {
        match self.0 {}
    }
}

/// A node that does not follow its fleet yet: there is none.
pub(super) struct PendingNode(Infallible);

impl PendingNode {
    pub(super) const fn load(_: &Plan) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(super) fn users(node: Option<&Self>) -> Arc<FleetUsers> {
        match node {
            None => Arc::default(),
            Some(node) => match node.0 {},
        }
    }

    pub(super) async fn open(&mut self, _: &Engine) -> Result<(), Failure> {
        match self.0 {}
    }

    pub(super) const fn follow(self, _: &Arc<Engine>, _: &Plan) -> FleetControl {
        match self.0 {}
    }
}

pub(super) const fn announce_changes(node: &FleetControl, _: &WebhookHub) {
    match node.0 {}
}

pub(super) const fn with_node(_: Api, node: &FleetControl) -> Api {
    match node.0 {}
}

pub(super) const fn set_plan(node: &FleetControl, _: &Engine, _: &Plan) {
    match node.0 {}
}

pub(super) const fn check_settings(_: &Plan) -> Result<(), Failure> {
    Ok(())
}
