//! Encryption of the datagrams of KCP and `+fec`, with warnings about weak choices.

use adit_crypto::packet::{Check, PacketKind};

use super::DEFAULTS;
use super::keys::{CRYPT, KCP9, KEY};
use super::text::Crypt;
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::typed::PacketSeal;
use crate::text::{Flaw, Secret, WarningKind};

/// True if a dialect over KCP accepts only datagrams made with the key.
pub(crate) fn is_keyed(builder: &mut EndpointBuilder<'_, '_>) -> bool {
    let crypt = builder.get(&CRYPT).unwrap_or(DEFAULTS.crypt);
    needs_key(crypt, builder.get(&KCP9))
}

/// True if this encryption has a key.
const fn needs_key(crypt: Crypt, kcp9: bool) -> bool {
    match crypt {
        Crypt::Packets(PacketKind::None) => kcp9,
        Crypt::Packets(kind) => !matches!(kind, PacketKind::Null),
        Crypt::Aead => true,
    }
}

/// Reads the encryption of datagrams. Without `key`, the secret of the dialect (`own`) is used.
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
            "`kcp9` needs a cipher, and `null` is not one",
        )
        .help("choose a cipher (`crypt=aes`), or remove `kcp9`");
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
        .help("`crypt=null` needs no key, but everyone can read and change the traffic");
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

/// Warns about the well-known password of kcptun.
pub(super) fn well_known(builder: &mut EndpointBuilder<'_, '_>) {
    let secret = builder.endpoint().secret.as_ref();
    let span = secret.map_or_else(|| builder.value_span(&KEY), |secret| secret.span);
    let about = Flaw::new(span, "the key is kcptun's default, which is public")
        .label("everyone on the path can read and change the traffic")
        .help("write `?key=@FILE` or `?key=$NAME`, the same at both ends");
    builder.warn(WarningKind::NoEncryption, about);
}

/// Warns if the encryption does not protect the content, which has no other protection.
pub(crate) fn clear(builder: &mut EndpointBuilder<'_, '_>, seal: &PacketSeal) {
    let span = builder.value_span(&CRYPT);
    let name = seal.name();
    if !seal.hides() {
        let about = Flaw::new(span, format!("`{name}` does not encrypt"))
            .label("everyone on the path can read and change the traffic");
        builder.warn(WarningKind::NoEncryption, about);
    } else if !seal.authenticates() {
        let about = Flaw::new(span, format!("`{name}` does not authenticate"))
            .label("an attacker on the path who knows the content can change it")
            .help("`aead` does, between two adits; `aes-128-gcm` does if kcptun supports it");
        builder.warn(WarningKind::LegacyCipher, about);
    }
}
