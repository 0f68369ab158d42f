//! How the datagrams of KCP and of `+fec` are sealed, and what is to be said of it.

use adit_crypto::packet::{Check, PacketKind};

use super::DEFAULTS;
use super::keys::{CRYPT, KCP9, KEY};
use super::text::Crypt;
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::typed::PacketSeal;
use crate::text::{Flaw, Secret, WarningKind};

/// Whether only those who have a key are understood, of a dialect over KCP.
pub(crate) fn is_keyed(builder: &mut EndpointBuilder<'_, '_>) -> bool {
    let crypt = builder.get(&CRYPT).unwrap_or(DEFAULTS.crypt);
    needs_key(crypt, builder.get(&KCP9))
}

const fn needs_key(crypt: Crypt, kcp9: bool) -> bool {
    match crypt {
        Crypt::Packets(PacketKind::None) => kcp9,
        Crypt::Packets(kind) => !matches!(kind, PacketKind::Null),
        Crypt::Aead => true,
    }
}

/// How datagrams are sealed; without `key` from the secret of the dialect.
pub(crate) fn seal(
    builder: &mut EndpointBuilder<'_, '_>,
    usual: Crypt,
    own: Option<Secret>,
) -> Option<PacketSeal> {
    let crypt = builder.get(&CRYPT).unwrap_or(usual);
    let kcp9 = builder.get(&KCP9);
    if kcp9 && crypt == Crypt::Packets(PacketKind::Null) {
        let flaw = Flaw::new(
            builder.key_span(&KCP9),
            "`kcp9` seals with the cipher, and `null` is none",
        )
        .help("name a cipher (`crypt=aes`), or leave `kcp9` away");
        builder.problem(flaw);
        return None;
    }
    let password = match builder.get(&KEY) {
        Some(written) => Some(builder.written_secret(&written, builder.value_span(&KEY))?),
        None => own.filter(|own| !own.expose().is_empty()),
    };
    if password.is_none() && needs_key(crypt, kcp9) {
        let flaw = Flaw::new(
            builder.endpoint().address,
            "the key of the datagrams is missing",
        )
        .help("write `?key=SECRET`, `?key=@FILE` or `?key=$NAME`, the same at both ends")
        .help("`crypt=null` does without: everybody can read and change the traffic");
        builder.problem(flaw);
        return None;
    }
    let password = password.unwrap_or_default();
    Some(match crypt {
        Crypt::Aead => {
            if kcp9 {
                let about = Flaw::new(builder.key_span(&KCP9), "`kcp9` is for ciphers of kcptun");
                builder.warn(WarningKind::IgnoredKey, about.label("ignored with `aead`"));
            }
            PacketSeal::Session(password)
        }
        Crypt::Packets(kind) => PacketSeal::Packets {
            kind,
            check: if kcp9 {
                Check::HighwayHash
            } else {
                Check::Crc32
            },
            password,
        },
    })
}

/// The password keeps nobody out.
pub(super) fn well_known(builder: &mut EndpointBuilder<'_, '_>) {
    let secret = builder.endpoint().secret.as_ref();
    let span = secret.map_or_else(|| builder.value_span(&KEY), |secret| secret.span);
    let about = Flaw::new(span, "the key is kcptun's default, which everybody knows")
        .label("everyone on the way can read and change the traffic")
        .help("write `?key=@FILE` or `?key=$NAME`, the same at both ends");
    builder.warn(WarningKind::NoEncryption, about);
}

/// What is in the datagrams has no protection of its own.
pub(crate) fn clear(builder: &mut EndpointBuilder<'_, '_>, seal: &PacketSeal) {
    let span = builder.value_span(&CRYPT);
    let name = seal.name();
    if !seal.hides() {
        let about = Flaw::new(span, format!("`{name}` does not encrypt"))
            .label("everyone on the way can read and change the traffic");
        builder.warn(WarningKind::NoEncryption, about);
    } else if !seal.authenticates() {
        let about = Flaw::new(span, format!("`{name}` does not authenticate"))
            .label("who knows what is said can change it on the way")
            .help("`aead` does, between two adits; `aes-128-gcm` does where kcptun has it");
        builder.warn(WarningKind::LegacyCipher, about);
    }
}
