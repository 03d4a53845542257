//! Goldens: CRDs from XRDs. `UPDATE=1` rewrites the wanted files.

use std::path::{Path, PathBuf};

use ecp_xr::crd::{CrdError, claim_crd, composite_crd};
use ecp_xr::xrd::Xrd;
use serde_json::Value;

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/crds");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root)
        .expect("cases")
        .map(|entry| entry.expect("entry").path())
        .collect();
    cases.sort();
    cases
}

fn input(case: &Path) -> Xrd {
    let text = std::fs::read_to_string(case.join("input.yaml")).expect("input");
    let value: Value = serde_saphyr::from_str(&text).expect("YAML");
    Xrd::parse(&value).expect("valid XRD")
}

fn check(file: &Path, got: &Value) {
    let text = serde_saphyr::to_string(got).expect("YAML");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &text).expect("write");
    }
    let want = std::fs::read_to_string(file).unwrap_or_default();
    assert!(text == want, "{} differs, got:\n{text}", file.display());
    let back: Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(back, *got, "{} does not survive YAML", file.display());
}

#[test]
fn xrds_become_the_wanted_crds() {
    let cases = cases();
    assert!(cases.len() >= 3);
    for case in cases {
        let xrd = input(&case);
        check(
            &case.join("composite.yaml"),
            &composite_crd(&xrd).expect("CRD"),
        );
        match claim_crd(&xrd) {
            Ok(crd) => check(&case.join("claim.yaml"), &crd),
            Err(error) => assert_eq!(error, CrdError::ClaimNames("missing names".into())),
        }
    }
}

#[test]
fn a_version_without_schema_gives_no_crd() {
    for case in cases() {
        let mut xrd = input(&case);
        for version in &mut xrd.spec.versions {
            version.schema = None;
        }
        let error = composite_crd(&xrd).expect_err("no schema").to_string();
        assert!(error.contains("cannot be nil"), "{error}");
    }
}
