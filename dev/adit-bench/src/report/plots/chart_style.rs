//! The colours and patterns of charts, for light and dark pages.

/// Style sheet and patterns. A reader's system chooses the scheme (`prefers-color-scheme`); bars
/// differ by pattern too, for those who do not see the colours.
pub(super) const STYLE: &str = "<style>\
.page{fill:#ffffff}.ink{fill:#1f2933}.dim{fill:#52606d}.grid{stroke:#dde2e7}.axis{stroke:#52606d}\
.whisker{stroke:#1f2933;fill:none}.adit{fill:#0b69a3;stroke:#0b69a3}\
.rival{stroke:#616e7c}.rival-ground{fill:#e4e7eb}.rival-line{fill:#9aa5b1}\
.floor{stroke:#b44d12;stroke-dasharray:4 3}.floor-ground{fill:#ffffff}.floor-dot{fill:#b44d12}\
@media (prefers-color-scheme:dark){\
.page{fill:#0d1117}.ink{fill:#e6edf3}.dim{fill:#a3aeb9}.grid{stroke:#2b333d}.axis{stroke:#a3aeb9}\
.whisker{stroke:#e6edf3}.adit{fill:#4796e6;stroke:#4796e6}\
.rival{stroke:#8b949e}.rival-ground{fill:#21262d}.rival-line{fill:#6e7681}\
.floor{stroke:#f0883e}.floor-ground{fill:#0d1117}.floor-dot{fill:#f0883e}\
}</style>\n";

/// Stripes of rivals and dots of floors; adit's bars are plain.
pub(super) const PATTERNS: &str = "<defs>\
<pattern id=\"rival\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><rect class=\"rival-ground\" width=\"6\" height=\"6\"/>\
<rect class=\"rival-line\" width=\"2\" height=\"6\"/></pattern>\
<pattern id=\"floor\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<rect class=\"floor-ground\" width=\"6\" height=\"6\"/>\
<circle class=\"floor-dot\" cx=\"3\" cy=\"3\" r=\"1\"/></pattern></defs>\n";
