//! Obfuscation of the connection between the two plugins.

use std::fmt;
use std::io;
use std::sync::Arc;

use adit_config::RejectPolicy;
use adit_crypto::{Secret, StreamKind};
use adit_net::system::{self, SystemClock, ThreadRng};
use adit_obfs::{
    Browser, ClientSettings, ClientState, Codecs, ObfsKind, ObfsParam, ParamError, RedirectRule,
    ServerSettings, ServerState, UnrecognizedPolicy,
};
use adit_stream::{BoxStream, HandshakeError, Layered, Tcp, run_handshake};
use adit_wire::Target;

use crate::acceptor::{ConnectionProgress, InboundRequest, RejectHandler, accept_obfs};
use crate::{AcceptError, HandshakeSlot};

/// Minimum number of request bytes that are encoded in the URL: those of a Shadowsocks header.
const MIN_URL_BYTES: usize = 30;

/// The configuration of an obfuscation.
pub(super) struct ObfsConfig {
    pub(super) kind: ObfsKind,
    /// A server's handling of clients without the obfuscation.
    pub(super) strangers: UnrecognizedPolicy,
    pub(super) param: ObfsParam,
    pub(super) key: Secret<String>,
    pub(super) browser: Browser,
    pub(super) redirect: Vec<RedirectRule>,
    pub(super) reject: RejectPolicy,
}

impl Default for ObfsConfig {
    fn default() -> Self {
        Self {
            kind: ObfsKind::Plain,
            strangers: UnrecognizedPolicy::Refuse,
            param: ObfsParam::default(),
            key: Secret::new(String::new()),
            browser: Browser::Chrome,
            redirect: Vec::new(),
            reject: RejectPolicy::Drain,
        }
    }
}

impl ObfsConfig {
    /// Returns all names, for error messages.
    pub(super) fn all_names() -> String {
        ObfsKind::ALL.map(|kind| format!("`{kind}`")).join(", ")
    }

    /// Derives the key of the TLS variants, which is that of a cipher with a key of 16 bytes.
    fn derived_key(&self) -> Secret<Vec<u8>> {
        StreamKind::None.key_from_password(self.key.expose().as_bytes())
    }

    /// Creates the state that a client's connections to `server` share.
    pub(super) fn client_state(&self, server: &Target) -> Result<ClientState, ParamError> {
        self.check_key()?;
        let key = self.derived_key();
        let mut settings = ClientSettings::new(self.kind, &self.param, server);
        settings.key = key.expose();
        settings.password = self.key.expose().as_bytes();
        settings.browser = self.browser;
        settings.url_bytes = MIN_URL_BYTES;
        ClientState::new(&settings, &mut ThreadRng)
    }

    /// Creates the state that a server's connections share.
    pub(super) fn server_state(&self) -> Result<ObfsServer, ParamError> {
        self.check_key()?;
        let key = self.derived_key();
        let mut settings = ServerSettings::new(self.kind, &self.param, Arc::new(SystemClock));
        settings.unrecognized = self.strangers;
        settings.key = key.expose();
        settings.password = self.key.expose().as_bytes();
        let rejects = RejectHandler::new(self.reject.clone()).with_redirects(self.redirect.clone());
        Ok(ObfsServer {
            state: ServerState::new(&settings, &mut ThreadRng)?,
            rejects: Arc::new(rejects),
        })
    }

    /// Checks that a key is set where one is required. Without it anyone could use the obfuscation.
    fn check_key(&self) -> Result<(), ParamError> {
        let keyed = self.kind.overhead() > 0;
        if keyed && self.key.expose().is_empty() {
            return Err(ParamError::NoKey);
        }
        Ok(())
    }
}

impl fmt::Debug for ObfsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Obfs({})", self.kind)
    }
}

/// Performs the client's side of the obfuscation.
pub(super) async fn obfuscate_client(state: &ClientState, mut io: Tcp) -> io::Result<BoxStream> {
    if state.kind() == ObfsKind::Plain {
        return Ok(Box::new(io));
    }
    let mut core = state.new_handshake(system::unix_now(), &mut ThreadRng);
    let dressed = run_handshake(&mut io, &mut core).await;
    let Codecs { seal, open } = dressed.map_err(|why| match why {
        HandshakeError::Core { error, .. } => io::Error::new(io::ErrorKind::InvalidData, error),
        HandshakeError::Eof => io::ErrorKind::UnexpectedEof.into(),
        HandshakeError::Io(e) => e,
    })?;
    Ok(Box::new(Layered::new(io, seal, open)))
}

/// The obfuscation of a server's connections.
#[derive(Clone)]
pub(super) struct ObfsServer {
    state: ServerState,
    rejects: Arc<RejectHandler>,
}

impl ObfsServer {
    /// Performs the server's side of the obfuscation. Other peers are handled by the reject policy, which may
    /// take long.
    pub(super) async fn accept_obfuscated(
        &self,
        mut io: Tcp,
        limit: std::time::Duration,
    ) -> io::Result<BoxStream> {
        if self.state.kind() == ObfsKind::Plain {
            return Ok(Box::new(io));
        }
        let port = io
            .socket()
            .and_then(|socket| socket.local_addr())
            .map_or(0, |addr| addr.port());
        let mut io: BoxStream = Box::new(io);
        let mut seen = ConnectionProgress::new(limit, HandshakeSlot::default(), &self.rejects);
        let undressed =
            tokio::time::timeout(limit, accept_obfs(&self.state, &mut io, &mut seen)).await;
        match undressed.unwrap_or(Err(AcceptError::Deadline)) {
            Ok(Codecs { seal, open }) if seal.is_raw() && open.is_raw() => Ok(io),
            Ok(Codecs { seal, open }) => Ok(Box::new(Layered::new(io, seal, open))),
            Err(why) => {
                let text = why.to_string();
                if let Ok(InboundRequest::Rejected(rejection)) =
                    seen.reject_connection(io, why, &self.rejects, port)
                {
                    rejection.apply_policy().await;
                }
                Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
            }
        }
    }
}
