//! The reference page in the documentation is the one that the tables generate.

use std::path::Path;

#[test]
fn the_page_in_the_documentation_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/endpoints.md");
    let made = adit_config::markdown_reference();
    if std::env::var_os("ADIT_BLESS").is_some() {
        std::fs::write(&page, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        kept == made,
        "{} is not what the tables say: ADIT_BLESS=1 cargo test -p adit-config",
        page.display()
    );
}
