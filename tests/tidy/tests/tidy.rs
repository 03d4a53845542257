//! Rules of the repository that a compiler does not check.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crates by level, lowest first: a crate may depend on lower levels only (ARCHITECTURE.md).
const LEVELS: &[&[&str]] = &[
    &["ecp-meta"],
    &["ecp-schema"],
    &["ecp-patch", "ecp-store", "ecp-xrds"],
    &["ecp-xr", "ecp-provider", "ecp-package"],
    &["ecp-fnproto", "ecp-oci"],
    &["function-ecp", "provider-ecp", "provider-dummy"],
    &["ecp-apiserver", "ecp-engine", "ecp-facade", "ecp-packages"],
    &["ecp-cli"],
    &["ecp-test-cluster", "ecp-upstream"],
    &["ecp-harness"],
    &["ecp-bench", "ecp-conformance", "ecp-e2e", "ecp-tidy"],
];

/// Crates that must compile without these, so that they test in seconds and stay pure.
const WITHOUT: &[(&[&str], &[&str])] = &[
    (
        &[
            "ecp-meta",
            "ecp-schema",
            "ecp-patch",
            "ecp-store",
            "ecp-xr",
            "ecp-xrds",
            "ecp-package",
        ],
        &[
            "kube",
            "k8s-openapi",
            "hyper",
            "axum",
            "tonic",
            "function-sdk-rust",
            "reqwest",
        ],
    ),
    (
        &["ecp-meta", "ecp-schema", "ecp-patch", "ecp-xr", "ecp-xrds"],
        &["tokio", "rand", "redb"],
    ),
    (
        &["function-ecp", "ecp-fnproto", "ecp-apiserver"],
        &["kube", "k8s-openapi"],
    ),
];

/// Two TLS providers in one process panic at first use (docs/decisions/0001).
const NEVER: &[&str] = &["ring", "openssl-sys", "native-tls", "serde_yaml"];

const FILE_LINES_MAX: usize = 900;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Direct dependencies of each workspace crate: name, and whether for development only.
fn workspace(metadata: &Value) -> BTreeMap<String, Vec<(String, bool)>> {
    let members: BTreeSet<_> = metadata["workspace_members"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| members.contains(p["id"].as_str().unwrap()))
        .map(|p| {
            let dependencies = p["dependencies"].as_array().unwrap().iter().map(|d| {
                (
                    d["name"].as_str().unwrap().to_owned(),
                    d["kind"].as_str() == Some("dev"),
                )
            });
            (
                p["name"].as_str().unwrap().to_owned(),
                dependencies.collect(),
            )
        })
        .collect()
}

fn tracked(suffixes: &[&str]) -> Vec<(String, String)> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|f| suffixes.iter().any(|s| f.ends_with(s)))
        .filter_map(|f| Some((f.to_owned(), std::fs::read_to_string(root().join(f)).ok()?)))
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let level_of: BTreeMap<&str, usize> = LEVELS
        .iter()
        .enumerate()
        .flat_map(|(level, crates)| crates.iter().map(move |c| (*c, level)))
        .collect();
    let crates = workspace(&metadata());
    let known: BTreeSet<_> = level_of.keys().copied().collect();
    let there: BTreeSet<_> = crates.keys().map(String::as_str).collect();
    assert_eq!(
        known, there,
        "every crate has a level, in this test and in ARCHITECTURE.md"
    );
    let mut wrong = Vec::new();
    for (name, dependencies) in &crates {
        for (dependency, dev) in dependencies {
            let Some(level) = level_of.get(dependency.as_str()) else {
                continue;
            };
            if !dev && *level >= level_of[name.as_str()] {
                wrong.push(format!("{name} must not depend on {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_crates_stay_pure() {
    let crates = workspace(&metadata());
    let mut wrong = Vec::new();
    for (names, without) in WITHOUT {
        for name in *names {
            for (dependency, dev) in &crates[*name] {
                if !dev && without.contains(&dependency.as_str()) {
                    wrong.push(format!("{name} must not depend on {dependency}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_is_one_tls_provider_and_no_retired_crate() {
    let metadata = metadata();
    // What is resolved for this platform, not every optional package of the lock file.
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--locked",
            "--offline",
        ])
        .args(["--edges", "normal,build"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let tree = String::from_utf8(tree.stdout).unwrap();
    let used: BTreeSet<_> = tree.lines().filter_map(|l| l.split(' ').next()).collect();
    let found: Vec<_> = NEVER.iter().filter(|n| used.contains(**n)).collect();
    assert!(found.is_empty(), "{found:?}");
    assert!(
        metadata["packages"]
            .as_array()
            .is_some_and(|p| p.len() > 50)
    );
}

#[test]
fn workspace_crates_take_versions_and_lints_from_the_workspace() {
    let mut wrong = Vec::new();
    for (file, text) in tracked(&["Cargo.toml"]) {
        if file == "Cargo.toml" || file.starts_with("fuzz/") {
            continue;
        }
        if !text.contains("[lints]\nworkspace = true") {
            wrong.push(format!("{file}: [lints] workspace = true is missing"));
        }
        for line in text.lines().filter(|l| l.contains("version = \"")) {
            wrong.push(format!(
                "{file}: {line}: versions belong into the workspace manifest"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn libraries_say_what_they_are_for_and_what_they_never_know() {
    let mut wrong = Vec::new();
    for (file, text) in tracked(&["src/lib.rs"]) {
        if file.starts_with("tests/") {
            continue;
        }
        for want in ["//! ", "Invariant:", "Entry point"] {
            if !text
                .lines()
                .any(|l| l.starts_with("//!") && l.contains(want))
            {
                wrong.push(format!("{file}: its docs lack {want:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sources_have_no_stubs_no_ignored_tests_and_bounded_length() {
    let words = ["todo!(", "unimplemented!(", "FIX".to_owned().as_str()].map(str::to_owned);
    let (todo, unimplemented) = (&words[0], &words[1]);
    let fixme = format!("{}ME", words[2]);
    let ignored = format!("#[{}", "ignore");
    let mut wrong = Vec::new();
    for (file, text) in tracked(&[".rs"]) {
        if file.starts_with("tests/tidy/") {
            continue;
        }
        for word in [todo, unimplemented, &fixme, &ignored] {
            if text.contains(word.as_str()) {
                wrong.push(format!("{file}: contains {word}"));
            }
        }
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{file}: {lines} lines, at most {FILE_LINES_MAX}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_module_is_named_after_nothing() {
    let bad = [
        "utils", "util", "common", "helpers", "helper", "misc", "manager",
    ];
    let wrong: Vec<_> = tracked(&[".rs"])
        .into_iter()
        .map(|(file, _)| file)
        .filter(|f| {
            let path = Path::new(f);
            path.components()
                .filter_map(|c| Path::new(c.as_os_str()).file_stem())
                .any(|s| bad.iter().any(|b| s == *b))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn makefile_targets_are_documented() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    for target in [
        "run",
        "demo",
        "test",
        "test-processes",
        "secatest",
        "lint",
        "generate",
        "pre-commit",
        "bench",
        "package",
        "docs",
        "help",
    ] {
        let documented = makefile
            .lines()
            .any(|l| l.starts_with(&format!("{target}:")) && l.contains("## "));
        assert!(
            documented,
            "Makefile: target {target} with a '## ' description"
        );
    }
}

#[test]
fn documents_link_to_files_that_exist() {
    let mut wrong = Vec::new();
    for (file, text) in tracked(&[".md"]) {
        let dir = root().join(&file).parent().unwrap().to_owned();
        // What stands in backticks is no link.
        let text: String = text.split('`').step_by(2).collect();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = link.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            if !dir.join(path).exists() {
                wrong.push(format!("{file}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let missing: Vec<String> = tracked(&[".md"])
        .into_iter()
        .filter_map(|(file, _)| Some(file.strip_prefix("docs/")?.to_owned()))
        // Decision records are found by their folder, too.
        .filter(|page| page != "SUMMARY.md" && !page.starts_with("decisions/"))
        .filter(|page| !summary.contains(&format!("]({page})")))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}
