//! URLs and TOML to a validated plan.
