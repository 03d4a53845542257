//! Examples that demos apply.

/// The manifests of `examples/first-volume`, by file name, in the order to apply them.
pub const FIRST_VOLUME: [(&str, &str); 4] = [
    (
        "1-tenant.yaml",
        include_str!("../../examples/first-volume/1-tenant.yaml"),
    ),
    (
        "2-workspace.yaml",
        include_str!("../../examples/first-volume/2-workspace.yaml"),
    ),
    (
        "3-block-storage.yaml",
        include_str!("../../examples/first-volume/3-block-storage.yaml"),
    ),
    (
        "4-image.yaml",
        include_str!("../../examples/first-volume/4-image.yaml"),
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use ecp_meta::{keys, names, object};
    use ecp_xrds::Scope;
    use serde_json::Value;

    use super::*;

    fn examples() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
    }

    /// Objects of every manifest of every example, with the file they are in.
    fn objects() -> Vec<(String, Value)> {
        let mut all = Vec::new();
        for folder in std::fs::read_dir(examples()).unwrap() {
            for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|e| e == "yaml") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
                    assert!(!objects.is_empty(), "{}", path.display());
                    all.extend(objects.into_iter().map(|o| (path.display().to_string(), o)));
                }
            }
        }
        all
    }

    #[test]
    fn every_manifest_of_the_first_volume_is_embedded() {
        let found: BTreeSet<String> = std::fs::read_dir(examples().join("first-volume"))
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".yaml"))
            .collect();
        assert_eq!(
            found,
            BTreeSet::from(FIRST_VOLUME.map(|(name, _)| name.to_owned()))
        );
    }

    #[test]
    fn examples_are_valid_and_in_the_right_namespace() {
        let objects = objects();
        let scope_of = |namespace: &str| {
            let (_, found) = objects
                .iter()
                .find(|(_, o)| o["kind"] == "Namespace" && object::name(o) == namespace)?;
            let tenant = object::label(found, keys::TENANT)?;
            let (name, scope) = match object::label(found, keys::WORKSPACE) {
                Some(workspace) => (
                    names::workspace_namespace(tenant, workspace),
                    Scope::Workspace,
                ),
                None => (names::tenant_namespace(tenant), Scope::Tenant),
            };
            assert_eq!(name, namespace, "as REST names it");
            Some(scope)
        };
        for (file, object) in &objects {
            let gvk = object::gvk(object);
            let Some(info) = ecp_xrds::by_kind(&gvk.kind).filter(|i| i.group == gvk.group) else {
                let others = ["Namespace", "ClusterProviderConfig"];
                assert!(others.contains(&gvk.kind.as_str()), "{file}: {}", gvk.kind);
                continue;
            };
            assert_eq!(object["apiVersion"], info.api_version(), "{file}");
            assert_eq!(ecp_xrds::validate(info, &object["spec"]), [], "{file}");
            // What is in a network is in the namespace of the workspace that the network is in.
            let scope = match info.scope {
                Scope::Network => Scope::Workspace,
                scope => scope,
            };
            let found = scope_of(object::namespace(object).unwrap());
            assert_eq!(found, Some(scope), "{file}");
        }
    }
}
