//! Integration tests of `ecp-cli`: the generated reference, and rules on all kinds together.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cli_page;
mod fields;
mod golden;
mod kind_names;
mod resources_page;
