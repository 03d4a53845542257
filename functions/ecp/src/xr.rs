//! The XR a request is about.

use ecp_meta::{names, object};
use ecp_xrds::{KindInfo, Scope};
use serde_json::Value;

/// Namespace of managed resources that belong to no tenant.
pub(crate) const SYSTEM_NAMESPACE: &str = "secapi-system";

/// An XR of either flavour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Xr<'a> {
    pub(crate) info: &'static KindInfo,
    pub(crate) object: &'a Value,
    /// Namespace of the XR or its claim; `None` for cluster-scoped kinds.
    pub(crate) namespace: Option<&'a str>,
    /// `metadata.name` as the user wrote it: that of the claim, if there is one.
    pub(crate) object_name: &'a str,
    /// SECA name.
    pub(crate) name: &'a str,
    /// Network that it is in; `None` for kinds that are in none.
    pub(crate) network: Option<&'a str>,
}

impl<'a> Xr<'a> {
    /// Reads an XR; the error is for the person who wired the Composition.
    pub(crate) fn of(object: &'a Value) -> Result<Self, String> {
        let gvk = object::gvk(object);
        let info = ecp_xrds::by_xr_kind(&gvk.group, &gvk.kind)
            .ok_or_else(|| format!("{gvk} is no SECA kind"))?;
        let claim = |field| {
            object
                .get("spec")?
                .get("claimRef")?
                .get(field)
                .and_then(Value::as_str)
        };
        let object_name = claim("name").unwrap_or_else(|| object::name(object));
        let name = object
            .get("spec")
            .and_then(|s| s.get("name"))
            .and_then(Value::as_str)
            .unwrap_or(object_name);
        let namespace = object::namespace(object).or_else(|| claim("namespace"));
        if info.scope != Scope::Cluster && namespace.is_none() {
            return Err(format!("{} {name:?} is in no namespace", info.kind));
        }
        let network = object.get("spec").and_then(|s| s.get("network"));
        Ok(Self {
            info,
            object,
            namespace: namespace.filter(|_| info.scope != Scope::Cluster),
            object_name,
            name,
            network: network
                .and_then(Value::as_str)
                .filter(|_| info.scope == Scope::Network),
        })
    }

    /// What is wrong with its name, if anything. Of one SECA name there is one object, since the
    /// name of that follows from it; so nobody can claim the name of another's resource.
    pub(crate) fn misnamed(&self) -> Option<String> {
        let name = self.spec("name")?.as_str()?;
        let object_name = match self.network {
            Some(network) => names::network_object_name(network, name),
            None => ecp_xrds::object_name(self.info, name),
        };
        (self.object_name != object_name).then(|| {
            format!(
                "spec.name is {name:?}, so metadata.name must be {object_name:?}, not {:?}",
                self.object_name
            )
        })
    }

    /// A field of `spec`.
    pub(crate) fn spec(&self, field: &str) -> Option<&'a Value> {
        self.object.get("spec")?.get(field)
    }

    /// A field of `spec` that is a text and not empty.
    pub(crate) fn spec_str(&self, field: &str) -> Option<&'a str> {
        self.spec(field)?.as_str().filter(|s| !s.is_empty())
    }

    /// Where its managed resources are.
    pub(crate) fn managed_namespace(&self) -> &'a str {
        self.namespace.unwrap_or(SYSTEM_NAMESPACE)
    }

    /// Whether it is the XR of a claim.
    pub(crate) fn is_claimed(&self) -> bool {
        self.spec("claimRef").is_some()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        object::is_deleting(self.object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_flavours_say_where_they_are() {
        let namespaced = json!({
            "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "BlockStorage",
            "metadata": {"name": "data", "namespace": "ns"}, "spec": {},
        });
        let claimed = json!({
            "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "XBlockStorage",
            "metadata": {"name": "data-x7k2p"},
            "spec": {"claimRef": {"namespace": "ns", "name": "data"}},
        });
        for object in [namespaced, claimed] {
            let xr = Xr::of(&object).unwrap();
            assert_eq!(
                (xr.info.kind, xr.namespace, xr.name),
                ("BlockStorage", Some("ns"), "data")
            );
        }
    }

    #[test]
    fn what_is_no_xr_of_ours_is_refused() {
        let odd = json!({"apiVersion": "example.org/v1", "kind": "Thing"});
        assert_eq!(
            Xr::of(&odd).unwrap_err(),
            "example.org/v1, Kind=Thing is no SECA kind"
        );
        let nowhere = json!({
            "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "BlockStorage",
            "metadata": {"name": "data"},
        });
        assert_eq!(
            Xr::of(&nowhere).unwrap_err(),
            "BlockStorage \"data\" is in no namespace"
        );
    }

    #[test]
    fn the_seca_name_comes_from_the_spec_first() {
        let object = json!({
            "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "StorageSKU",
            "metadata": {"name": "rd500"}, "spec": {"name": "RD500"},
        });
        let xr = Xr::of(&object).unwrap();
        assert_eq!(
            (xr.name, xr.managed_namespace()),
            ("RD500", SYSTEM_NAMESPACE)
        );
    }
}
