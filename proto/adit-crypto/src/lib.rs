//! The cryptography of adit behind our own names.
