//! A server's computations for a key exchange, which can run on another thread.
//!
//! The shared secret and the signature of the host key take milliseconds, and any client can
//! request them. Therefore the transport can hand them out as a [`KexComputation`]
//! ([`Transport::defer_computations`]); it reads nothing until the result is returned.

use adit_wire::{Entropy, Role};

use std::sync::Arc;

use super::Transport;
use super::exchange::{ExchangeResult, ExchangeStage};
use crate::error::SshError;
use crate::kex::{ExchangeHashInput, KexSecret, Negotiated, ServerKex};
use crate::key::Signer;

/// Work that one message of a client requires of a server. It does not refer to the transport and
/// can be sent to another thread.
pub struct KexComputation {
    negotiated: Negotiated,
    method: ServerKex,
    message: Vec<u8>,
    transcript: KexTranscript,
    signer: Option<Arc<dyn Signer>>,
    entropy: Box<dyn Entropy + Send>,
}

/// Result of a [`KexComputation`], for [`Transport::finish_computation`].
pub struct KexComputationResult {
    negotiated: Negotiated,
    method: ServerKex,
    entropy: Box<dyn Entropy + Send>,
    outcome: Result<ServerKexOutcome, SshError>,
}

struct ServerKexOutcome {
    /// The answer, to be sent unencrypted or under the current keys.
    payload: Vec<u8>,
    /// `None` if the method has another message.
    finish: Option<ExchangeResult>,
}

/// Identifications and KEXINITs of both sides, as input of the exchange hash.
pub(super) struct KexTranscript {
    client_version: Vec<u8>,
    server_version: Vec<u8>,
    client_kexinit: Vec<u8>,
    server_kexinit: Vec<u8>,
}

impl KexTranscript {
    pub(super) fn exchange_hash(
        &self,
        negotiated: &Negotiated,
        host_key: &[u8],
        agreed: &KexSecret,
    ) -> Vec<u8> {
        ExchangeHashInput {
            client_version: &self.client_version,
            server_version: &self.server_version,
            client_kexinit: &self.client_kexinit,
            server_kexinit: &self.server_kexinit,
            host_key,
        }
        .exchange_hash(negotiated.kex, agreed)
    }
}

impl KexComputation {
    /// Runs the computation. It takes from 0.1 ms (X25519 with Ed25519) to 100 ms (an 8192-bit
    /// group).
    #[must_use]
    pub fn run(mut self) -> KexComputationResult {
        let outcome = self.compute_outcome();
        KexComputationResult {
            negotiated: self.negotiated,
            method: self.method,
            entropy: self.entropy,
            outcome,
        }
    }

    fn compute_outcome(&mut self) -> Result<ServerKexOutcome, SshError> {
        let mut payload = Vec::new();
        let answer = self
            .method
            .handle_input(&self.message, &mut *self.entropy, &mut payload)?;
        let Some(answer) = answer else {
            let finish = None;
            return Ok(ServerKexOutcome { payload, finish });
        };
        let negotiated = self.negotiated;
        let signer = self.signer.as_ref();
        let signer = signer.ok_or(SshError::Crypto("no host key to sign with"))?;
        let host_key = signer.public_blob(negotiated.host_key);
        let hash = self
            .transcript
            .exchange_hash(&negotiated, &host_key, &answer.agreed);
        let signature = signer.sign_data(negotiated.host_key, &hash)?;
        answer
            .reply
            .write_payload(&host_key, &signature, &mut payload);
        let finish = Some(ExchangeResult {
            negotiated,
            agreed: answer.agreed,
            hash,
            host_key,
            signature,
        });
        Ok(ServerKexOutcome { payload, finish })
    }
}

impl Transport {
    /// Makes a server's computations wait in [`Transport::take_computation`] instead of running
    /// immediately.
    pub const fn defer_computations(&mut self) {
        self.defers_computations = true;
    }

    /// Returns the next computation, if any. Each is returned once.
    pub fn take_computation(&mut self) -> Option<KexComputation> {
        self.computation.take().map(|computation| *computation)
    }

    /// Takes the result of a computation and adds the answer to the output.
    ///
    /// # Errors
    /// The same as for [`Transport::open_next`].
    pub fn finish_computation(&mut self, computed: KexComputationResult) -> Result<(), SshError> {
        self.check_open()?;
        self.apply_computation(computed)
            .map_err(|why| self.fail_with(why))
    }

    /// True if a computation has not returned its result yet.
    pub(super) fn is_computing(&self) -> bool {
        let stage = self.exchange.as_ref().map(|exchange| &exchange.stage);
        matches!(stage, Some(ExchangeStage::Computing))
    }

    /// Runs the computation for a client's message, or hands it out.
    pub(super) fn run_or_defer_computation(
        &mut self,
        negotiated: Negotiated,
        method: ServerKex,
        message: &[u8],
    ) -> Result<(), SshError> {
        let away = SshError::Crypto("the result of a computation was not returned");
        let computation = KexComputation {
            negotiated,
            method,
            message: message.to_vec(),
            transcript: self.transcript(),
            signer: self.signer.clone(),
            entropy: self.entropy.take().ok_or(away)?,
        };
        if self.defers_computations {
            self.computation = Some(Box::new(computation));
            return Ok(());
        }
        self.apply_computation(computation.run())
    }

    fn apply_computation(&mut self, computed: KexComputationResult) -> Result<(), SshError> {
        let Some(exchange) = &mut self.exchange else {
            return Err(SshError::Crypto(
                "a computation's result without a key exchange",
            ));
        };
        self.entropy = Some(computed.entropy);
        let outcome = computed.outcome?;
        if outcome.finish.is_none() {
            exchange.stage = ExchangeStage::Server(computed.negotiated, computed.method);
        }
        self.seal_method(&outcome.payload)?;
        match outcome.finish {
            None => Ok(()),
            Some(finish) => self.apply_exchange(finish),
        }
    }

    /// Returns the identifications and KEXINITs of both sides.
    pub(super) fn transcript(&self) -> KexTranscript {
        let theirs = self.theirs.as_ref();
        let theirs = theirs.map_or_else(Vec::new, |version| version.as_bytes().to_vec());
        let inits = self.exchange.as_ref();
        let inits = inits.map_or_else(Default::default, |x| (x.ours.clone(), x.theirs.clone()));
        let ours = (self.ours.as_bytes().to_vec(), inits.0);
        let theirs = (theirs, inits.1);
        let (client, server) = match self.role {
            Role::Client => (ours, theirs),
            Role::Server => (theirs, ours),
        };
        KexTranscript {
            client_version: client.0,
            server_version: server.0,
            client_kexinit: client.1,
            server_kexinit: server.1,
        }
    }
}

impl core::fmt::Debug for KexComputation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let kex = self.negotiated.kex;
        f.debug_struct("Computation")
            .field("kex", &kex)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for KexComputationResult {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let failed = self.outcome.as_ref().err();
        f.debug_struct("Computed")
            .field("failed", &failed)
            .finish_non_exhaustive()
    }
}
