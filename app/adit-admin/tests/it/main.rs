//! The doors of `adit-admin` against others than themselves.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod https;
