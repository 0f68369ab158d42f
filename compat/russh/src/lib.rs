//! [`adit_russh`] under the name `russh`, for `[patch.crates-io]`.

pub use adit_russh::*;
