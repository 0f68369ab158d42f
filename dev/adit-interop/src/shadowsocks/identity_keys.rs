//! Keys for several users and several relays. All contain characters that have a meaning in URLs.

use super::{BLAKE3_AES_128, BLAKE3_AES_256, MethodKey};

/// The keys of one method with identity headers (SIP023).
#[derive(Debug, Clone, Copy)]
pub struct IdentityKeys {
    /// The method; its key is the server's own if the server has users.
    pub method: MethodKey,
    /// Key of a relay, and that of another relay behind it.
    pub relays: [&'static str; 2],
    /// Names and keys of users.
    pub users: [(&'static str, &'static str); 3],
}

/// The keyrings of all methods that have identity headers.
pub const IDENTITY_KEYS: [IdentityKeys; 2] = [
    IdentityKeys {
        method: BLAKE3_AES_128,
        relays: ["GLssXzU5nJPfR0+/I+j/7g==", "Hsy/hvMZbKvtemT+o/+Mlw=="],
        users: [
            ("alice", "0eo6F12zXxnOFJA/+VbN/Q=="),
            ("bob", "LGxF0zMu/n5bRxpiXb+7zA=="),
            ("carol", "qA4EhU+eho/u+J5A9C/yxg=="),
        ],
    },
    IdentityKeys {
        method: BLAKE3_AES_256,
        relays: [
            "O2QaVYrYIGs6Sk+njsDkRnrFYxyWdP+Vb/N3b1k0WXI=",
            "RuusKgd6OBUi+RGXb/uK18NUkmvyYmO4lgFk/ckE7Kk=",
        ],
        users: [
            ("alice", "enQr7qENxiINZmaaZaHnzSNq+Yz69Y/2ZWIRyzIicfU="),
            ("bob", "blnmxnqyZNMXF/bl9MUsWZ4MIWX+9yxUz8U1Wd5wNR0="),
            ("carol", "dgVi/y+EajA+hXCSboygQYrvuAjyOtPPnjcdWzkgVxA="),
        ],
    },
];
