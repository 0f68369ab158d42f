//! russh's own examples.
