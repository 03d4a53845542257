//! Integration tests of `ecp-cli`: the generated reference.

mod cli_page;
mod fields;
mod golden;
mod resources_page;
