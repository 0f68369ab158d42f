//! The doors of `adit-admin` against others than themselves.

mod https;
