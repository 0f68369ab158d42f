//! A client and a server connected in memory.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use adit_russh::keys::{Algorithm, PrivateKey, PublicKeyOrCertificate};
use adit_russh::server::{Auth, Response, VerifiedPublicKey};
use adit_russh::{
    Channel, ChannelId, ChannelOpenFailure, Error, MethodKind, MethodSet, Pty, Sig, client, server,
};

pub(crate) fn new_key() -> PrivateKey {
    PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap()
}

/// The calls of the server's handler.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A server for the user `me`: with the password `secret`, a key, or the answer `42`; the user `both`
/// needs the password and then a key.
pub(crate) struct Host {
    pub(crate) key: PrivateKey,
    pub(crate) log: Log,
    /// Channels whose bytes the handler echoes.
    programs: Vec<ChannelId>,
}

impl Host {
    pub(crate) fn new(key: PrivateKey, log: Log) -> Self {
        Self {
            key,
            log,
            programs: Vec::new(),
        }
    }

    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }
}

impl server::Handler for Host {
    type Error = Error;

    async fn authentication_banner(&mut self) -> Result<Option<String>, Error> {
        Ok(Some("welcome".to_owned()))
    }

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Error> {
        Ok(match (user, password) {
            ("me", "secret") => Auth::Accept,
            ("both", "secret") => Auth::Reject {
                proceed_with_methods: Some(MethodSet::from(&[MethodKind::PublicKey][..])),
                partial_success: true,
            },
            _ => Auth::reject(),
        })
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Error> {
        assert_eq!(*key.algorithm, Algorithm::Ed25519);
        let known = key.public_key == self.key.public_key() && ["me", "both"].contains(&user);
        Ok(if known { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        user: &str,
        submethods: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth, Error> {
        assert_eq!((user, submethods), ("me", ""));
        let Some(response) = response else {
            return Ok(Auth::Partial {
                name: Cow::Borrowed("riddle"),
                instructions: Cow::Borrowed("think"),
                prompts: Cow::Borrowed(&[(Cow::Borrowed("what is it? "), true)]),
            });
        };
        let right = response.map(|answer| answer.to_vec()).eq([b"42"]);
        Ok(if right { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_succeeded(&mut self, _: &mut server::Session) -> Result<(), Error> {
        self.note("in");
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<server::Msg>,
        reply: server::ChannelOpenHandle,
        session: &mut server::Session,
    ) -> Result<(), Error> {
        self.programs.push(channel.id());
        // Messages sent before the channel is open wait for it.
        session.data(channel.id(), &b"hello "[..])?;
        tokio::spawn(async move { reply.accept().await });
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<server::Msg>,
        host_to_connect: &str,
        port_to_connect: u32,
        originator_address: &str,
        originator_port: u32,
        reply: server::ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), Error> {
        self.note(format!(
            "{host_to_connect}:{port_to_connect} for {originator_address}:{originator_port}"
        ));
        if host_to_connect == "nowhere" {
            reply.reject(ChannelOpenFailure::ConnectFailed).await;
            return Ok(());
        }
        reply.accept().await;
        tokio::spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(channel.into_stream());
            tokio::io::copy(&mut reader, &mut writer).await
        });
        Ok(())
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        term: &str,
        col_width: u32,
        row_height: u32,
        _: u32,
        _: u32,
        modes: &[(Pty, u32)],
        session: &mut server::Session,
    ) -> Result<(), Error> {
        self.note(format!("{term} {col_width}x{row_height} {modes:?}"));
        session.channel_success(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        variable_name: &str,
        variable_value: &str,
        session: &mut server::Session,
    ) -> Result<(), Error> {
        self.note(format!("{variable_name}={variable_value}"));
        session.channel_failure(channel)
    }

    async fn window_change_request(
        &mut self,
        _: ChannelId,
        col_width: u32,
        row_height: u32,
        _: u32,
        _: u32,
        _: &mut server::Session,
    ) -> Result<(), Error> {
        self.note(format!("{col_width}x{row_height}"));
        Ok(())
    }

    async fn signal(
        &mut self,
        channel: ChannelId,
        signal: Sig,
        session: &mut server::Session,
    ) -> Result<(), Error> {
        session.exit_signal_request(channel, signal, false, "ended", "")?;
        session.close(channel)
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut server::Session,
    ) -> Result<(), Error> {
        if data == b"no" {
            return session.channel_failure(channel);
        }
        session.channel_success(channel)?;
        if data == b"wait" {
            return Ok(());
        }
        session.data(channel, data.to_vec())?;
        session.extended_data(channel, 1, &b"oh"[..])?;
        session.exit_status_request(channel, 7)?;
        session.eof(channel)?;
        session.close(channel)
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut server::Session,
    ) -> Result<(), Error> {
        if data == b"leave" {
            return Err(Error::Disconnect);
        }
        if self.programs.contains(&channel) {
            session.data(channel, data.to_vec())?;
        }
        Ok(())
    }

    async fn tcpip_forward(
        &mut self,
        address: &str,
        port: &mut u32,
        session: &mut server::Session,
    ) -> Result<bool, Error> {
        if *port != 0 {
            return Ok(false);
        }
        *port = 4711;
        let (handle, address) = (session.handle(), address.to_owned());
        tokio::spawn(async move {
            let opened = handle.channel_open_forwarded_tcpip(address, 4711, "1.2.3.4", 1234);
            let channel = opened.await.unwrap();
            channel.data(&b"from afar"[..]).await.unwrap();
            channel.eof().await.unwrap();
        });
        Ok(true)
    }
}

/// A client that accepts one host key and records its callbacks.
pub(crate) struct Guest {
    pub(crate) host: Option<PrivateKey>,
    pub(crate) log: Log,
    pub(crate) arrived: tokio::sync::mpsc::Sender<Channel<client::Msg>>,
}

impl client::Handler for Guest {
    type Error = Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Error> {
        let known = self.host.as_ref().map(PrivateKey::public_key);
        Ok(known == Some(&key.public_key()))
    }

    async fn auth_banner(&mut self, banner: &str, _: &mut client::Session) -> Result<(), Error> {
        self.log.lock().unwrap().push(banner.to_owned());
        Ok(())
    }

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        channel: Channel<client::Msg>,
        connected_address: &str,
        connected_port: u32,
        originator_address: &str,
        originator_port: u32,
        reply: client::ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Error> {
        self.log.lock().unwrap().push(format!(
            "{connected_address}:{connected_port} by {originator_address}:{originator_port}"
        ));
        reply.accept().await;
        self.arrived.send(channel).await.unwrap();
        Ok(())
    }

    async fn disconnected(&mut self, reason: client::DisconnectReason<Error>) -> Result<(), Error> {
        let told = match reason {
            client::DisconnectReason::ReceivedDisconnect(said) => {
                format!("{:?}: {}", said.reason_code, said.message)
            }
            client::DisconnectReason::Error(why) => format!("failed: {why}"),
        };
        self.log.lock().unwrap().push(told);
        Ok(())
    }
}

/// Both ends, before authentication.
pub(crate) struct World {
    pub(crate) client: client::Handle<Guest>,
    pub(crate) server: server::RunningSession<Host>,
    pub(crate) key: PrivateKey,
    pub(crate) told: Log,
    pub(crate) heard: Log,
    pub(crate) arrivals: tokio::sync::mpsc::Receiver<Channel<client::Msg>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(client::Config::default(), server::Config::default()).await
    }

    pub(crate) async fn with(client: client::Config, mut server: server::Config) -> Self {
        let (near, far) = tokio::io::duplex(20_000);
        let (host, key) = (new_key(), new_key());
        let (told, heard) = (Log::default(), Log::default());
        server.keys = vec![host.clone()];
        server.auth_rejection_time = std::time::Duration::from_millis(20);
        let handler = Host::new(key.clone(), Arc::clone(&told));
        let server = server::run_stream(Arc::new(server), far, handler).await;
        let (arrived, arrivals) = tokio::sync::mpsc::channel(4);
        let guest = Guest {
            host: Some(host),
            log: Arc::clone(&heard),
            arrived,
        };
        let client = client::connect_stream(Arc::new(client), near, guest).await;
        Self {
            client: client.unwrap(),
            server: server.unwrap(),
            key,
            told,
            heard,
            arrivals,
        }
    }

    /// Authenticates the user.
    pub(crate) async fn entered(mut self) -> Self {
        let result = self.client.authenticate_password("me", "secret").await;
        assert!(result.unwrap().success());
        self
    }
}
