//! Message numbers (RFC 4250 section 4.1, RFC 8308, OpenSSH's `PROTOCOL`).

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $number;)*
    };
}

numbers! {
    /// The connection ends.
    DISCONNECT = 1;
    /// Nothing.
    IGNORE = 2;
    /// A message number was not known.
    UNIMPLEMENTED = 3;
    /// Words for a log.
    DEBUG = 4;
    /// A service is wanted.
    SERVICE_REQUEST = 5;
    /// The service is there.
    SERVICE_ACCEPT = 6;
    /// Extensions (RFC 8308).
    EXT_INFO = 7;
    /// Lists of algorithms.
    KEXINIT = 20;
    /// The next packet has the new keys.
    NEWKEYS = 21;
    /// Key exchange, first message of the client.
    KEX_INIT = 30;
    /// Key exchange, the server's answer (with group exchange: the group).
    KEX_REPLY = 31;
    /// Group exchange: the client's public value (RFC 4419).
    KEX_GEX_INIT = 32;
    /// Group exchange: the server's answer.
    KEX_GEX_REPLY = 33;
    /// Group exchange: sizes wanted.
    KEX_GEX_REQUEST = 34;
    /// A try to authenticate (RFC 4252).
    USERAUTH_REQUEST = 50;
    /// The try failed, or was one part.
    USERAUTH_FAILURE = 51;
    /// The user is in.
    USERAUTH_SUCCESS = 52;
    /// Words for the user.
    USERAUTH_BANNER = 53;
    /// `publickey`: the key would do.
    USERAUTH_PK_OK = 60;
    /// `password`: change it first.
    USERAUTH_PASSWD_CHANGEREQ = 60;
    /// `keyboard-interactive`: questions (RFC 4256).
    USERAUTH_INFO_REQUEST = 60;
    /// `keyboard-interactive`: answers.
    USERAUTH_INFO_RESPONSE = 61;
    /// A request outside of channels (RFC 4254).
    GLOBAL_REQUEST = 80;
    /// It was granted.
    REQUEST_SUCCESS = 81;
    /// It was not.
    REQUEST_FAILURE = 82;
    /// A channel is wanted.
    CHANNEL_OPEN = 90;
    /// It is open.
    CHANNEL_OPEN_CONFIRMATION = 91;
    /// It is not.
    CHANNEL_OPEN_FAILURE = 92;
    /// More may be sent.
    CHANNEL_WINDOW_ADJUST = 93;
    /// Bytes.
    CHANNEL_DATA = 94;
    /// Bytes of another kind, such as standard error.
    CHANNEL_EXTENDED_DATA = 95;
    /// No more bytes in this direction.
    CHANNEL_EOF = 96;
    /// The channel ends.
    CHANNEL_CLOSE = 97;
    /// A request inside a channel.
    CHANNEL_REQUEST = 98;
    /// It was granted.
    CHANNEL_SUCCESS = 99;
    /// It was not.
    CHANNEL_FAILURE = 100;
    /// OpenSSH: answer with the same data.
    PING = 192;
    /// OpenSSH: the answer.
    PONG = 193;
}
