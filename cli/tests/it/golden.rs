//! Committed pages that must be those of the code.

use std::fs;
use std::path::Path;

/// Compares a page below `docs/` with what the code gives; `UPDATE=1` rewrites it.
pub(crate) fn check(page: &str, want: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, want).unwrap();
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    let line = have.lines().zip(want.lines()).position(|(h, w)| h != w);
    assert!(
        have == want,
        "docs/{page} is stale from line {}: run `UPDATE=1 cargo test -p ecp-cli` or `make generate`",
        line.unwrap_or_else(|| have.lines().count().min(want.lines().count())) + 1
    );
}
