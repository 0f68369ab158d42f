//! The user base that several adit servers share: a *realm*, in a store server (Valkey or Redis), in a file, or in
//! memory.
//!
//! ```text
//!  operator ── RealmWriter ──▶ ┌───────┐ ── changes ──▶ Feed ──▶ users of the node
//!                              │ Store │
//!  node ── UsageLedger ──────▶ └───────┘ ── totals ───▶ lease ─▶ bytes that users may move
//! ```
//!
//! * [`FleetUser`]: a user with limits, and the credentials that are derived from the user's secret;
//!   [`RecordCipher`] seals users and orders, so that the store sees neither, and cannot forge, move or roll them back;
//! * [`Store`]: the calls of a store, with the implementations [`MemoryStore`], [`EmbeddedStore`] and
//!   [`ValkeyStore`](store::valkey::ValkeyStore), and [`FaultyStore`], which fails as a test's script says;
//! * [`Feed`], [`mod@lease`], [`usage_batch`]: the rules of a node, without input and output;
//! * [`replay`]: checks whether another node has seen a request;
//! * [`subscription`]: the servers of all nodes for a user;
//! * [`LocalState`]: the file from which a node starts while the store does not answer;
//! * [`Membership`] and [`JoinToken`]: how a node gets there.
//!
//! # Costs
//!
//! Of Redis 7.0 on a Unix socket, with 10,000 users, on two busy cores and with an unoptimized client, printed by
//! `cargo test -p adit-fleet --test it -- --ignored --nocapture measure`:
//!
//! | call | time of a call | processor time of the server |
//! |---|--:|--:|
//! | `add_usage`, 1 / 100 / 1,000 entries | 170 / 780 / 3,900 µs | 59 / 430 / 2,300 µs |
//! | `claim_salts`, 1 / 16 / 512 salts | 114 / 193 / 1,430 µs | 35 / 64 / 980 µs |
//! | `report_activity`, 1 / 100 users with two devices | 240 / 2,080 µs | 100 / 1,400 µs |
//! | `head` | 71 µs | 14 µs |
//! | `head` and `write`, one user | 290 µs | 72 µs |
//! | `snapshot`, and opening all records | 37 ms + 89 ms | |
//!
//! The server needs 409 bytes for a user, including the entry in the log.

#![forbid(unsafe_code)]

mod announcement;
mod change;
mod feed;
mod frame_file;
mod join_token;
mod key_text;
pub mod lease;
mod local_state;
mod membership;
mod node_op;
mod node_status;
mod node_view;
mod node_watch;
mod packed_user;
mod period;
mod realm_key;
mod record;
pub mod replay;
mod rotation;
mod seal;
mod sealed_record;
pub mod store;
pub mod subscription;
mod subscription_address;
pub mod usage_batch;
mod writer;

pub use announcement::{
    ANNOUNCEMENT_TIME, CLAIM_TIME, UserChange, claim_events, claim_unannounced,
};
pub use change::{Change, ChangeBatch, ChangeId, ChangeOp, ChangeRequest, Snapshot};
pub use feed::{Feed, FeedEvent, FeedNext, FeedStep, Regression};
pub use join_token::{JOIN_TIME, JoinToken, JoinTokenError};
pub use lease::{Grace, UserLease, lease};
pub use local_state::{LocalContent, LocalState, LocalStateError, UsedQuota};
pub use membership::{Membership, MembershipError, Role, check_name};
pub use node_op::NodeOp;
pub use node_status::{
    DEFAULT_WEIGHT, NodeEntry, NodeIdentity, NodeRecord, NodeServer, NodeState, NodeStatus,
};
pub use node_view::{NodeProblem, NodeView};
pub use node_watch::{NodeChange, NodeWatch};
pub use packed_user::PackedUser;
pub use period::PeriodLabel;
pub use realm_key::RealmKey;
pub use record::{EncodeError, FleetUser, MAX_CREDENTIAL, MAX_NAME, RateScope, RecordLimits};
pub use rotation::reseal;
pub use seal::RecordCipher;
pub use sealed_record::{MAX_SEALED, NameDigest, RecordError, SealedRecord};
pub use store::{
    ActivityTotal, AuditEntry, EmbeddedStore, Fault, FaultyStore, MemoryStore, RealmInfo,
    SaltClaim, Store, StoreCall, StoreError, StoreErrorKind, StoreFuture, StoreHealth, StoreLogin,
    UserActivity, open_store,
};
pub use subscription_address::{SubscriptionAddress, subscription_addresses};
pub use usage_batch::{UsageBatch, UsageLedger, UsageReply, UserTotal, UserUsage};
pub use writer::{RealmWriter, WriteError};
