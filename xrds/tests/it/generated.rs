use std::fs;
use std::path::PathBuf;

use ecp_xrds::Flavour;
use serde_json::{Map, Value};

const HEADER: &str =
    "# Generated from the Rust types in xrds/src by `make generate`. Do not edit.\n";

fn directory(flavour: Flavour) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("generated")
        .join(flavour.as_str())
}

/// The same value with the keys of every object in order, whatever map `serde_json` is built with.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

/// `UPDATE=1 cargo test -p ecp-xrds` rewrites the files.
#[test]
fn committed_xrds_are_those_of_the_rust_types() {
    let update = std::env::var_os("UPDATE").is_some();
    for flavour in Flavour::ALL {
        let directory = directory(flavour);
        if update {
            fs::create_dir_all(&directory).unwrap();
        }
        let mut names = Vec::new();
        for xrd in ecp_xrds::xrds(flavour) {
            let name = format!("{}.yaml", xrd["metadata"]["name"].as_str().unwrap());
            let path = directory.join(&name);
            let want = format!("{HEADER}{}", serde_saphyr::to_string(&sorted(xrd)).unwrap());
            if update {
                fs::write(&path, &want).unwrap();
            }
            let have = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                have == want,
                "{} is stale: run `make generate`",
                path.display()
            );
            names.push(name);
        }
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            let known = names.contains(&entry.file_name().to_string_lossy().into_owned());
            if update && !known {
                fs::remove_file(entry.path()).unwrap();
            }
            assert!(known || update, "{} is of no kind", entry.path().display());
        }
    }
}

#[test]
fn committed_xrds_read_back_as_they_were_made() {
    for flavour in Flavour::ALL {
        for xrd in ecp_xrds::xrds(flavour) {
            let name = format!("{}.yaml", xrd["metadata"]["name"].as_str().unwrap());
            let text = fs::read_to_string(directory(flavour).join(name)).unwrap();
            let read: Value = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(read, xrd);
        }
    }
}
