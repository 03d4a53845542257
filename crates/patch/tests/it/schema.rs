//! The schema that the cases and laws share.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ecp_schema::Structural;
use serde_json::Value;

/// A file of the cases.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name)
}

/// A YAML file of the cases.
pub(crate) fn yaml(name: &str) -> Value {
    let text = std::fs::read_to_string(file(name)).expect(name);
    serde_saphyr::from_str(&text).expect(name)
}

/// The shared schema.
pub(crate) fn structural() -> &'static Structural {
    static SCHEMA: LazyLock<Structural> = LazyLock::new(|| {
        Structural::compile(&yaml("schema.yaml")).expect("the schema is structural")
    });
    &SCHEMA
}
