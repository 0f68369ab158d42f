//! The client of ShadowsocksR servers, for hops.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_config::{SsrHop, UdpWay};
use adit_net::ambient::{self, Chance};
use adit_obfs::{Browser, ClientSettings, ClientState, Codecs, ObfsKind};
use adit_shadowsocksr::{ClientParam, ClientStack, StackClient};
use adit_stream::{BoxStream, Layered, put, run};
use adit_wire::{Broken, Target, narrow};

use super::{Dialect, DialogueError, Spoken};
use crate::connector::{Connector, Watch};
use crate::inflate::Inflated;
use crate::udp::{BoxDatagrams, OverTcp, SsrUdp};
use crate::{BoxFuture, Cause, DialError, Health, StartError};

/// An obfs hello without an answer for this long is reported.
const SILENCE: Duration = Duration::from_secs(3);

/// A client of one ShadowsocksR server. Keep it for the lifetime of the process: servers track the IDs
/// and numbers of connections.
pub struct ShadowsocksR {
    stack: ClientStack,
    obfs: ClientState,
    udp: UdpWay,
    first_wait: Duration,
    health: Arc<Health>,
}

impl ShadowsocksR {
    /// Creates a client from its plan.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if a parameter does not fit the protocol or the obfs.
    pub fn new(plan: &SsrHop, server: &Target) -> Result<Self, StartError> {
        let (kind, obfs, method) = (plan.protocol, plan.obfs, plan.method);
        let param = ClientParam::parse(kind, plan.protocol_param.expose())?;
        let password = plan.password.expose().as_bytes();
        let overhead = narrow(obfs.overhead());
        let key = method.key_from_password(password);
        let settings = ClientSettings {
            kind: obfs,
            param: &plan.obfs_param,
            server,
            key: key.expose(),
            password,
            browser: Browser::Chrome,
            url_bytes: method.iv_len() + 30,
        };
        let doubt = format!(
            "another password, or another method, protocol or obfs than here ({method}, {kind}, \
             {obfs}); an unknown user; or a clock that differs by a day"
        );
        let proof = format!("in {method} with {kind} and {obfs}");
        Ok(Self {
            stack: ClientStack::new(method, password, kind, param, overhead)?,
            obfs: ClientState::new(&settings, &mut Chance)?,
            udp: plan.udp,
            first_wait: plan.first_wait,
            health: Arc::new(Health::told(format!("ssr://{server}"), proof, doubt)),
        })
    }

    /// Wraps `io` in the codecs, and returns the stream with a watch on the server.
    fn layered(
        &self,
        io: BoxStream,
        codecs: Result<StackClient, Broken>,
    ) -> io::Result<(BoxStream, Watch)> {
        let (seal, open) = codecs.map_err(io::Error::other)?;
        let watch = Watch {
            health: self.health.clone(),
            progress: open.progress(),
            since: Instant::now(),
        };
        let io: BoxStream = if self.stack.kind().in_place() {
            Box::new(Layered::new(io, seal, open))
        } else {
            Box::new(Inflated::new(io, seal, open))
        };
        Ok((io, watch))
    }

    /// Opens a stream for datagrams, in the original's format.
    async fn over_tcp(
        &self,
        via: &dyn Connector,
        server: &Target,
    ) -> Result<BoxDatagrams, DialError> {
        let below = via.connect(server, &[]).await?;
        let open = async {
            let io = self.dress(below.io).await?;
            let codecs = self.stack.connect_datagrams(ambient::unix(), &mut Chance);
            Ok::<_, DialogueError>(self.layered(io, codecs)?)
        };
        let hop = format!("ssr://{server}");
        let (io, _) = open.await.map_err(|why| why.with(hop))?;
        Ok(Box::new(OverTcp::flagged_client(io)))
    }

    /// Performs the obfs handshake.
    async fn dress(&self, mut io: BoxStream) -> Result<BoxStream, DialogueError> {
        if self.obfs.kind() == ObfsKind::Plain {
            return Ok(io);
        }
        let mut unanswered = Unanswered {
            health: Some(&self.health),
            since: Instant::now(),
        };
        let mut core = self.obfs.handshake(ambient::unix(), &mut Chance);
        let Codecs { seal, open } = match run(&mut *io, &mut core).await {
            Ok(codecs) => codecs.joined(),
            Err(why) => {
                unanswered.health = None;
                let what = "does not answer in the obfs";
                self.health.suspect(what, unanswered.since, || {});
                return Err(DialogueError::of(why, |_| Cause::DeniedByServer));
            }
        };
        unanswered.health = None;
        Ok(Box::new(Layered::new(io, seal, open)))
    }
}

/// An obfs hello without an answer. Dropping it reports that its client gave up.
struct Unanswered<'a> {
    health: Option<&'a Arc<Health>>,
    since: Instant,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(health) = self.health.filter(|_| self.since.elapsed() > SILENCE) {
            let what = "takes the connection and does not answer in the obfs";
            health.suspect(what, self.since, || {});
        }
    }
}

impl Dialect for ShadowsocksR {
    fn speak<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>> {
        Box::pin(async move {
            let io = self.dress(io).await?;
            let codecs = self.stack.connect(to, ambient::unix(), &mut Chance);
            let (mut io, watch) = self.layered(io, codecs)?;
            put(&mut io, first).await?;
            Ok(Spoken {
                io,
                first_wait: self.first_wait,
                watch: Some(watch),
            })
        })
    }

    fn health(&self) -> Option<&Arc<Health>> {
        Some(&self.health)
    }

    fn associate<'a>(
        &'a self,
        via: &'a dyn Connector,
        server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            match self.udp {
                UdpWay::Native => {}
                UdpWay::Off => {
                    let why = "this hop has `udp=false` in its URL";
                    return Err(DialError::unsupported(why));
                }
                UdpWay::OverTcp => return self.over_tcp(via, server).await,
            }
            let below = via.associate().await?;
            let association = self.stack.association(&mut Chance);
            Ok(Box::new(SsrUdp::new(association, server.clone(), below)) as BoxDatagrams)
        })
    }
}
