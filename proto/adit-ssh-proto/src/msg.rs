//! Message numbers (RFC 4250 section 4.1, RFC 8308, OpenSSH's `PROTOCOL`).

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $number;)*
    };
}

numbers! {
    /// Ends the connection.
    DISCONNECT = 1;
    /// Carries data to ignore.
    IGNORE = 2;
    /// Reports an unknown message number.
    UNIMPLEMENTED = 3;
    /// Text for a log.
    DEBUG = 4;
    /// Requests a service.
    SERVICE_REQUEST = 5;
    /// Accepts the service.
    SERVICE_ACCEPT = 6;
    /// Lists extensions (RFC 8308).
    EXT_INFO = 7;
    /// Lists the supported algorithms.
    KEXINIT = 20;
    /// Announces that the next packet uses the new keys.
    NEWKEYS = 21;
    /// Key exchange: the client's first message.
    KEX_INIT = 30;
    /// Key exchange: the server's answer (in group exchange, the group).
    KEX_REPLY = 31;
    /// Group exchange: the client's public value (RFC 4419).
    KEX_GEX_INIT = 32;
    /// Group exchange: the server's answer.
    KEX_GEX_REPLY = 33;
    /// Group exchange: the requested group sizes.
    KEX_GEX_REQUEST = 34;
    /// An authentication attempt (RFC 4252).
    USERAUTH_REQUEST = 50;
    /// The attempt failed, or succeeded only as one of several required methods.
    USERAUTH_FAILURE = 51;
    /// The user is authenticated.
    USERAUTH_SUCCESS = 52;
    /// Text for the user.
    USERAUTH_BANNER = 53;
    /// `publickey`: the key would be accepted.
    USERAUTH_PK_OK = 60;
    /// `password`: the password must be changed first.
    USERAUTH_PASSWD_CHANGEREQ = 60;
    /// `keyboard-interactive`: prompts (RFC 4256).
    USERAUTH_INFO_REQUEST = 60;
    /// `keyboard-interactive`: responses.
    USERAUTH_INFO_RESPONSE = 61;
    /// A request outside of a channel (RFC 4254).
    GLOBAL_REQUEST = 80;
    /// The global request was granted.
    REQUEST_SUCCESS = 81;
    /// The global request was refused.
    REQUEST_FAILURE = 82;
    /// Requests to open a channel.
    CHANNEL_OPEN = 90;
    /// The channel is open.
    CHANNEL_OPEN_CONFIRMATION = 91;
    /// The channel was not opened.
    CHANNEL_OPEN_FAILURE = 92;
    /// Adds to the window: more bytes may be sent.
    CHANNEL_WINDOW_ADJUST = 93;
    /// Bytes of the channel.
    CHANNEL_DATA = 94;
    /// Bytes of another type, such as standard error.
    CHANNEL_EXTENDED_DATA = 95;
    /// No more bytes follow in this direction.
    CHANNEL_EOF = 96;
    /// The channel is closed.
    CHANNEL_CLOSE = 97;
    /// A request within a channel.
    CHANNEL_REQUEST = 98;
    /// The channel request was granted.
    CHANNEL_SUCCESS = 99;
    /// The channel request was refused.
    CHANNEL_FAILURE = 100;
    /// OpenSSH: a ping, to be answered with the same data.
    PING = 192;
    /// OpenSSH: the answer to a ping.
    PONG = 193;
}
