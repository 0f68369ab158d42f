//! Client and server against each other, and both against messages that the other never sends.

mod golden;
mod machines;
mod messages;
