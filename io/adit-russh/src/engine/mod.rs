//! What client and server share: the state of a session, its task's ends, and who meets there.
//!
//! ```text
//! Session, Handle, Channel ──▶ Core ◀── Wire ◀── the session's task ──▶ the program's Handler
//!                 Channel ◀── Mailbox ◀──────────────────┘
//! ```
//!
//! [`Core`] is the protocol's machine behind a lock, with what waits to be sent: whoever holds a
//! session speaks to it at once. [`Wire`] is the stream with the transport, and belongs to the
//! task alone. A [`Mailbox`] has what came for one channel; its bytes are granted to the peer
//! again when they are taken out.

mod arrive;
mod core;
mod idle;
mod inbox;
mod lives;
mod rx;
mod sending;
mod wire;

pub(crate) use self::core::{Core, Hold, Over};
pub(crate) use arrive::{Arrived, CHANNEL_STDERR};
pub(crate) use idle::{Idle, Patience};
pub(crate) use inbox::Mailbox;
pub(crate) use lives::{Behind, Live};
pub(crate) use wire::{Came, Wire};
