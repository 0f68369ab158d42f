//! Client and server against each other, and both against what the other never sends.

mod golden;
mod machines;
mod messages;
