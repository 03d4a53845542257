//! Integration tests of `ecp-cli`: the generated reference, and rules on all kinds together.

mod cli_page;
mod fields;
mod golden;
mod kind_names;
mod resources_page;
