//! Compositions of both flavours.

use ecp_xrds::Flavour;
use serde_json::Value;

/// A file of `compositions/`: folder, SECA kind and text.
macro_rules! file {
    ($folder:literal, $kind:literal) => {
        (
            $folder,
            $kind,
            include_str!(concat!("../../compositions/", $folder, "/", $kind, ".yaml")),
        )
    };
}

/// The files of `compositions/`.
const FILES: [(&str, &str, &str); 36] = [
    file!("default", "region"),
    file!("default", "role"),
    file!("default", "role-assignment"),
    file!("default", "workspace"),
    file!("default", "storage-sku"),
    file!("default", "block-storage"),
    file!("default", "image"),
    file!("default", "instance-sku"),
    file!("default", "instance"),
    file!("default", "network-sku"),
    file!("default", "network"),
    file!("default", "subnet"),
    file!("default", "routing-table"),
    file!("default", "internet-gateway"),
    file!("default", "nic"),
    file!("default", "public-ip"),
    file!("default", "security-group"),
    file!("default", "security-group-rule"),
    file!("dummy", "region"),
    file!("dummy", "role"),
    file!("dummy", "role-assignment"),
    file!("dummy", "workspace"),
    file!("dummy", "storage-sku"),
    file!("dummy", "block-storage"),
    file!("dummy", "image"),
    file!("dummy", "instance-sku"),
    file!("dummy", "instance"),
    file!("dummy", "network-sku"),
    file!("dummy", "network"),
    file!("dummy", "subnet"),
    file!("dummy", "routing-table"),
    file!("dummy", "internet-gateway"),
    file!("dummy", "nic"),
    file!("dummy", "public-ip"),
    file!("dummy", "security-group"),
    file!("dummy", "security-group-rule"),
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
                    assert_eq!(
                        step["functionRef"]["name"],
                        "eu-sovereign-cloud-function-ecp"
                    );
                    let csp = &composition["metadata"]["labels"][keys::CSP];
                    assert_eq!(*csp, step["input"]["cloud"]);
                }
            }
        }
    }
}
