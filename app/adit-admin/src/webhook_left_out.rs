//! Receivers of events in a build without the management API: there are none.

/// The receivers of a process: there are none.
#[derive(Debug, Clone)]
pub enum WebhookHub {}

impl WebhookHub {
    /// Never called.
    pub async fn close(&self) {
        match *self {}
    }

    /// Never called.
    pub fn reopen(&self, _: std::sync::Arc<adit_engine::UserRegistry>) {
        match *self {}
    }
}
