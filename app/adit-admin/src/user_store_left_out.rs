//! The store of users in a build without the management API: there is none.

/// The control of a store: there is none.
#[derive(Debug, Clone)]
pub enum UserStoreControl {}

impl UserStoreControl {
    /// Never called.
    pub async fn close(&self) {
        match *self {}
    }

    /// Never called.
    pub async fn reopen(&self) {
        match *self {}
    }
}
