//! Sets and lists as a whole.

mod decisions;
