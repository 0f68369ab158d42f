//! Only tests: crates that depend on russh run on adit-russh.
