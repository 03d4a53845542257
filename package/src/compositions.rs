//! Compositions of both flavours.

use ecp_xrds::Flavour;
use serde_json::Value;

/// The files of `compositions/`, by folder and SECA kind.
const FILES: [(&str, &str, &str); 10] = [
    (
        "default",
        "region",
        include_str!("../../compositions/default/region.yaml"),
    ),
    (
        "default",
        "workspace",
        include_str!("../../compositions/default/workspace.yaml"),
    ),
    (
        "default",
        "storage-sku",
        include_str!("../../compositions/default/storage-sku.yaml"),
    ),
    (
        "default",
        "block-storage",
        include_str!("../../compositions/default/block-storage.yaml"),
    ),
    (
        "default",
        "image",
        include_str!("../../compositions/default/image.yaml"),
    ),
    (
        "dummy",
        "region",
        include_str!("../../compositions/dummy/region.yaml"),
    ),
    (
        "dummy",
        "workspace",
        include_str!("../../compositions/dummy/workspace.yaml"),
    ),
    (
        "dummy",
        "storage-sku",
        include_str!("../../compositions/dummy/storage-sku.yaml"),
    ),
    (
        "dummy",
        "block-storage",
        include_str!("../../compositions/dummy/block-storage.yaml"),
    ),
    (
        "dummy",
        "image",
        include_str!("../../compositions/dummy/image.yaml"),
    ),
];

/// Every Composition in a flavour: the default of each kind, which finds the cloud by the
/// resource's region, and for each cloud one that is labelled `secapi.cloud/csp`.
pub fn compositions(flavour: Flavour) -> Vec<Value> {
    FILES
        .iter()
        .filter_map(|(_, _, text)| serde_saphyr::from_str(text).ok())
        .map(|composition| for_flavour(composition, flavour))
        .collect()
}

/// A Composition is for the XR kind of its flavour; nothing else differs.
fn for_flavour(mut composition: Value, flavour: Flavour) -> Value {
    let kind = composition
        .pointer("/spec/compositeTypeRef/kind")
        .and_then(Value::as_str)
        .and_then(ecp_xrds::by_kind);
    if let Some(info) = kind
        && let Some(kind) = composition.pointer_mut("/spec/compositeTypeRef/kind")
    {
        *kind = info.xr_kind(flavour).into();
    }
    composition
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use ecp_meta::keys;

    use super::*;

    #[test]
    fn every_file_is_embedded_and_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compositions");
        let mut found = BTreeSet::new();
        for folder in std::fs::read_dir(root).unwrap() {
            let folder = folder.unwrap();
            for file in std::fs::read_dir(folder.path()).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                let kind = name.strip_suffix(".yaml").unwrap().to_owned();
                found.insert((folder.file_name().into_string().unwrap(), kind));
            }
        }
        let embedded = FILES.map(|(folder, kind, _)| (folder.to_owned(), kind.to_owned()));
        assert_eq!(found, BTreeSet::from(embedded));
        assert_eq!(compositions(Flavour::V2).len(), FILES.len());
    }

    /// Crossplane would choose among several Compositions at random, and pre-2 defaults to another
    /// mode, so each XRD names its default and each Composition its mode.
    #[test]
    fn every_xrd_has_its_default_composition() {
        for flavour in Flavour::ALL {
            let all = compositions(flavour);
            for (xrd, info) in ecp_xrds::xrds(flavour).iter().zip(ecp_xrds::kinds()) {
                let mine: Vec<_> = all
                    .iter()
                    .filter(|c| {
                        let of = &c["spec"]["compositeTypeRef"];
                        of["kind"] == xrd["spec"]["names"]["kind"]
                            && of["apiVersion"] == info.api_version()
                    })
                    .collect();
                assert_eq!(mine.len(), 2, "{} {flavour}", info.kind);
                let default = &xrd["spec"]["defaultCompositionRef"]["name"];
                assert!(mine.iter().any(|c| c["metadata"]["name"] == *default));
                for composition in mine {
                    assert_eq!(composition["spec"]["mode"], "Pipeline");
                    let step = &composition["spec"]["pipeline"][0];
                    assert_eq!(step["functionRef"]["name"], "function-ecp");
                    let csp = &composition["metadata"]["labels"][keys::CSP];
                    assert_eq!(*csp, step["input"]["cloud"]);
                }
            }
        }
    }
}
