//! Links as QR codes on the terminal.

use anyhow::{Context, Result};
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// Returns a QR code of the text, with two rows of modules per line, light on dark.
pub(crate) fn render_qr_code(text: &str) -> Result<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)
        .context("the link does not fit into a QR code")?;
    Ok(code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .quiet_zone(true)
        .build())
}
