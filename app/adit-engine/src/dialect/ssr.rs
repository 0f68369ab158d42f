//! The client of ShadowsocksR servers, for hops.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_config::{SsrHop, UdpTransport};
use adit_net::system::{self, ThreadRng};
use adit_obfs::{ClientSettings, ClientState, Codecs, ObfsKind};
use adit_shadowsocksr::{ClientCodecs, ClientParam, ClientStack};
use adit_stream::{BoxStream, Layered, run_handshake, write_all};
use adit_wire::{ProtocolError, Target, narrow_int};

use super::{HopDialect, HopError, RequestedStream};
use crate::connector::{Connector, HopWatch};
use crate::inflated_stream::InflatedStream;
use crate::udp::{BoxDatagramPath, SsrUdp, UdpOverTcp};
use crate::{BoxFuture, DialError, FailureCause, ServerHealth, StartError};

/// An obfs hello without an answer for this long is reported.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(3);

/// A client of one ShadowsocksR server. Keep it for the lifetime of the process: servers track the IDs
/// and numbers of connections.
pub struct SsrDialect {
    stack: ClientStack,
    obfs: ClientState,
    udp: UdpTransport,
    first_wait: Duration,
    health: Arc<ServerHealth>,
}

impl SsrDialect {
    /// Creates a client from its plan.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if a parameter does not fit the protocol or the obfs.
    pub fn new(plan: &SsrHop, server: &Target) -> Result<Self, StartError> {
        let (kind, obfs, method) = (plan.protocol, plan.obfs, plan.method);
        let param = ClientParam::parse(kind, plan.protocol_param.expose())?;
        let password = plan.password.expose().as_bytes();
        let overhead = narrow_int(obfs.overhead());
        let key = method.key_from_password(password);
        let mut settings = ClientSettings::new(obfs, &plan.obfs_param, server);
        settings.key = key.expose();
        settings.password = password;
        settings.url_bytes = method.iv_len() + 30;
        let doubt = format!(
            "another password, or another method, protocol or obfs than here ({method}, {kind}, \
             {obfs}); an unknown user; or a clock that differs by a day"
        );
        let proof = format!("in {method} with {kind} and {obfs}");
        Ok(Self {
            stack: ClientStack::new(method, password, kind, param, overhead)?,
            obfs: ClientState::new(&settings, &mut ThreadRng)?,
            udp: plan.udp,
            first_wait: plan.first_wait,
            health: Arc::new(ServerHealth::with_texts(
                format!("ssr://{server}"),
                proof,
                doubt,
            )),
        })
    }

    /// Wraps `io` in the codecs, and returns the stream with a watch on the server.
    fn wrap_stream(
        &self,
        io: BoxStream,
        codecs: Result<ClientCodecs, ProtocolError>,
    ) -> io::Result<(BoxStream, HopWatch)> {
        let (seal, open) = codecs.map_err(io::Error::other)?;
        let watch = HopWatch {
            health: self.health.clone(),
            progress: open.progress(),
            since: Instant::now(),
        };
        let io: BoxStream = if self.stack.kind().opens_in_place() {
            Box::new(Layered::new(io, seal, open))
        } else {
            Box::new(InflatedStream::new(io, seal, open))
        };
        Ok((io, watch))
    }

    /// Opens a stream for datagrams, in the original's format.
    async fn open_udp_over_tcp(
        &self,
        via: &dyn Connector,
        server: &Target,
    ) -> Result<BoxDatagramPath, DialError> {
        let below = via.connect(server, &[]).await?;
        let open = async {
            let io = self.start_obfs(below.io).await?;
            let codecs = self
                .stack
                .connect_datagrams(system::unix_now(), &mut ThreadRng);
            Ok::<_, HopError>(self.wrap_stream(io, codecs)?)
        };
        let hop = format!("ssr://{server}");
        let (io, _) = open.await.map_err(|why| why.into_dial_error(hop))?;
        Ok(Box::new(UdpOverTcp::new_ssr_client(io)))
    }

    /// Performs the obfs handshake.
    async fn start_obfs(&self, mut io: BoxStream) -> Result<BoxStream, HopError> {
        if self.obfs.kind() == ObfsKind::Plain {
            return Ok(io);
        }
        let mut unanswered = UnansweredHello {
            health: Some(&self.health),
            since: Instant::now(),
        };
        let mut core = self.obfs.new_handshake(system::unix_now(), &mut ThreadRng);
        let Codecs { seal, open } = match run_handshake(&mut *io, &mut core).await {
            Ok(codecs) => codecs.with_joined_records(),
            Err(why) => {
                unanswered.health = None;
                let what = "does not answer in the obfs";
                self.health.report_suspect(what, unanswered.since);
                return Err(HopError::from_handshake(why, |_| {
                    FailureCause::DeniedByServer
                }));
            }
        };
        unanswered.health = None;
        Ok(Box::new(Layered::new(io, seal, open)))
    }
}

/// An obfs hello without an answer. Dropping it reports that its client gave up.
struct UnansweredHello<'a> {
    health: Option<&'a Arc<ServerHealth>>,
    since: Instant,
}

impl Drop for UnansweredHello<'_> {
    fn drop(&mut self) {
        if let Some(health) = self
            .health
            .filter(|_| self.since.elapsed() > SILENCE_TIMEOUT)
        {
            let what = "takes the connection and does not answer in the obfs";
            health.report_suspect(what, self.since);
        }
    }
}

impl HopDialect for SsrDialect {
    fn request_target<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<RequestedStream, HopError>> {
        Box::pin(async move {
            let io = self.start_obfs(io).await?;
            let codecs = self
                .stack
                .connect_codecs(to, system::unix_now(), &mut ThreadRng);
            let (mut io, watch) = self.wrap_stream(io, codecs)?;
            write_all(&mut io, first).await?;
            Ok(RequestedStream {
                io,
                first_wait: self.first_wait,
                watch: Some(watch),
            })
        })
    }

    fn server_health(&self) -> Option<&Arc<ServerHealth>> {
        Some(&self.health)
    }

    fn open_datagrams<'a>(
        &'a self,
        via: &'a dyn Connector,
        server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            match self.udp {
                UdpTransport::Native => {}
                UdpTransport::Off => {
                    let why = "this hop has `udp=false` in its URL";
                    return Err(DialError::unsupported(why));
                }
                UdpTransport::OverTcp => return self.open_udp_over_tcp(via, server).await,
            }
            let below = via.open_datagrams().await?;
            let association = self.stack.new_association(&mut ThreadRng);
            Ok(Box::new(SsrUdp::new(association, server.clone(), below)) as BoxDatagramPath)
        })
    }
}
