//! Encryption of the datagrams of KCP and `+fec`, with warnings about weak choices.

use adit_crypto::packet::{PacketCheck, PacketKind};

use super::DEFAULTS;
use super::keys::{CRYPT, KCP9, KEY};
use super::text::KcpCrypt;
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::endpoint_types::PacketSeal;
use crate::text::{ConfigError, Secret, WarningKind};

/// True if a dialect over KCP accepts only datagrams made with the key.
pub(crate) fn is_keyed(builder: &mut EndpointBuilder<'_, '_>) -> bool {
    let crypt = builder.get(&CRYPT).unwrap_or(DEFAULTS.crypt);
    needs_key(crypt, builder.get(&KCP9))
}

/// True if this encryption has a key.
const fn needs_key(crypt: KcpCrypt, kcp9: bool) -> bool {
    match crypt {
        KcpCrypt::Packets(PacketKind::None) => kcp9,
        KcpCrypt::Packets(kind) => !matches!(kind, PacketKind::Null),
        KcpCrypt::Aead => true,
    }
}

/// Reads the encryption of datagrams. Without `key`, the secret of the dialect (`own`) is used.
pub(crate) fn read_seal(
    builder: &mut EndpointBuilder<'_, '_>,
    usual: KcpCrypt,
    own: Option<Secret>,
) -> Option<PacketSeal> {
    let crypt = builder.get(&CRYPT).unwrap_or(usual);
    let kcp9 = builder.get(&KCP9);
    if kcp9 && crypt == KcpCrypt::Packets(PacketKind::Null) {
        let flaw = ConfigError::new(
            builder.key_span(&KCP9),
            "`kcp9` needs a cipher, and `null` is not one",
        )
        .with_help("choose a cipher (`crypt=aes`), or remove `kcp9`");
        builder.report_error(flaw);
        return None;
    }
    let password = match builder.get(&KEY) {
        Some(written) => Some(builder.read_query_secret(&written, builder.value_span(&KEY))?),
        None => own.filter(|own| !own.expose().is_empty()),
    };
    if password.is_none() && needs_key(crypt, kcp9) {
        let flaw = ConfigError::new(
            builder.endpoint().address,
            "the key of the datagrams is missing",
        )
        .with_help("write `?key=SECRET`, `?key=@FILE` or `?key=$NAME`, the same at both ends")
        .with_help("`crypt=null` needs no key, but everyone can read and change the traffic");
        builder.report_error(flaw);
        return None;
    }
    let password = password.unwrap_or_default();
    Some(match crypt {
        KcpCrypt::Aead => {
            if kcp9 {
                let about =
                    ConfigError::new(builder.key_span(&KCP9), "`kcp9` is for ciphers of kcptun");
                builder.add_warning(
                    WarningKind::IgnoredKey,
                    about.with_label("ignored with `aead`"),
                );
            }
            PacketSeal::Session(password)
        }
        KcpCrypt::Packets(kind) => PacketSeal::Packets {
            kind,
            check: if kcp9 {
                PacketCheck::HighwayHash
            } else {
                PacketCheck::Crc32
            },
            password,
        },
    })
}

/// Warns about the well-known password of kcptun.
pub(super) fn warn_default_key(builder: &mut EndpointBuilder<'_, '_>) {
    let secret = builder.endpoint().secret.as_ref();
    let span = secret.map_or_else(|| builder.value_span(&KEY), |secret| secret.span);
    let about = ConfigError::new(span, "the key is kcptun's default, which is public")
        .with_label("everyone on the path can read and change the traffic")
        .with_help("write `?key=@FILE` or `?key=$NAME`, the same at both ends");
    builder.add_warning(WarningKind::NoEncryption, about);
}

/// Warns if the encryption does not protect the content, which has no other protection.
pub(crate) fn warn_unprotected(builder: &mut EndpointBuilder<'_, '_>, seal: &PacketSeal) {
    let span = builder.value_span(&CRYPT);
    let name = seal.name();
    if !seal.is_confidential() {
        let about = ConfigError::new(span, format!("`{name}` does not encrypt"))
            .with_label("everyone on the path can read and change the traffic");
        builder.add_warning(WarningKind::NoEncryption, about);
    } else if !seal.is_authenticated() {
        let about = ConfigError::new(span, format!("`{name}` does not authenticate"))
            .with_label("an attacker on the path who knows the content can change it")
            .with_help("`aead` does, between two adits; `aes-128-gcm` does if kcptun supports it");
        builder.add_warning(WarningKind::LegacyCipher, about);
    }
}
