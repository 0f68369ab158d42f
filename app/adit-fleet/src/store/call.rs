//! The calls of a store by name, for metrics and for scripted faults.

/// A call of [`Store`](super::Store).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreCall {
    /// `realm_info`
    RealmInfo,
    /// `create_realm`
    CreateRealm,
    /// `head`
    Head,
    /// `snapshot`
    Snapshot,
    /// `restore` and `replace_key`
    Restore,
    /// `changes`
    Changes,
    /// `write`
    Write,
    /// `allocate_users`
    AllocateUsers,
    /// `user` and `user_by_name`
    User,
    /// `add_usage`
    AddUsage,
    /// `last_batch` and `usage`
    Usage,
    /// `reset_usage`
    ResetUsage,
    /// `claim_salts`
    ClaimSalts,
    /// `report_activity`
    ReportActivity,
    /// `heartbeat`
    Heartbeat,
    /// `nodes`
    Nodes,
    /// `add_node`, `put_node` and `remove_node`
    NodeRecords,
    /// `time`
    Time,
    /// `put_join` and `take_join`
    Join,
    /// `audit` and `audit_log`
    Audit,
}

impl StoreCall {
    /// All calls.
    pub const ALL: [Self; 20] = [
        Self::RealmInfo,
        Self::CreateRealm,
        Self::Head,
        Self::Snapshot,
        Self::Restore,
        Self::Changes,
        Self::Write,
        Self::AllocateUsers,
        Self::User,
        Self::AddUsage,
        Self::Usage,
        Self::ResetUsage,
        Self::ClaimSalts,
        Self::ReportActivity,
        Self::Heartbeat,
        Self::Nodes,
        Self::NodeRecords,
        Self::Time,
        Self::Join,
        Self::Audit,
    ];

    /// Returns the name of the call, as in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RealmInfo => "realm_info",
            Self::CreateRealm => "create_realm",
            Self::Head => "head",
            Self::Snapshot => "snapshot",
            Self::Restore => "restore",
            Self::Changes => "changes",
            Self::Write => "write",
            Self::AllocateUsers => "allocate_users",
            Self::User => "user",
            Self::AddUsage => "add_usage",
            Self::Usage => "usage",
            Self::ResetUsage => "reset_usage",
            Self::ClaimSalts => "claim_salts",
            Self::ReportActivity => "report_activity",
            Self::Heartbeat => "heartbeat",
            Self::Nodes => "nodes",
            Self::NodeRecords => "node_records",
            Self::Time => "time",
            Self::Join => "join",
            Self::Audit => "audit",
        }
    }
}
