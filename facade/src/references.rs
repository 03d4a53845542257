//! Whether what a spec refers to exists (SECA section 3.7).
//!
//! One table says which fields refer to which kinds. References are never changed: they are
//! echoed exactly as they were sent.

use ecp_xrds::reference::{Place as Home, ReferenceError, resolve};
use ecp_xrds::{KindInfo, Reference};
use serde_json::Value;

use crate::config::ReferencePolicy;
use crate::error::{ApiError, ErrorKind};
use crate::facade::Facade;
use crate::path::Target;

/// A field that refers to another resource.
struct Field {
    kind: &'static str,
    name: &'static str,
    to: &'static str,
}

/// The reference fields of all kinds, by Kubernetes kind.
const FIELDS: [Field; 3] = [
    Field {
        kind: "BlockStorage",
        name: "skuRef",
        to: "StorageSKU",
    },
    Field {
        kind: "BlockStorage",
        name: "sourceImageRef",
        to: "Image",
    },
    Field {
        kind: "Image",
        name: "blockStorageRef",
        to: "BlockStorage",
    },
];

impl Facade {
    /// Refuses a spec that refers to something missing.
    ///
    /// The policy of a field can defer that of a resource that may still come; a missing catalogue
    /// entry or workspace is refused always. Resources need not be active (section 3.6).
    pub(crate) async fn check_references(
        &self,
        target: &Target,
        spec: &Value,
    ) -> Result<(), ApiError> {
        for field in FIELDS.iter().filter(|f| f.kind == target.info.kind) {
            let Some(to) = ecp_xrds::by_kind(field.to) else {
                continue;
            };
            let Some(value) = spec.get(field.name) else {
                continue;
            };
            self.check_reference(target, field, to, value).await?;
        }
        Ok(())
    }

    async fn check_reference(
        &self,
        target: &Target,
        field: &Field,
        to: &'static KindInfo,
        value: &Value,
    ) -> Result<(), ApiError> {
        let name = field.name;
        let refuse = |detail: String| {
            ApiError::new(ErrorKind::ReferenceMissing, detail)
                .at_pointer(format!("/spec/{name}/resource"))
        };
        let Ok(reference) = serde_json::from_value::<Reference>(value.clone()) else {
            return Err(ApiError::new(
                ErrorKind::Invalid,
                format!("spec.{name} must be a reference"),
            )
            .at_pointer(format!("/spec/{name}")));
        };
        let home = Home {
            tenant: target.tenant.clone(),
            workspace: Some(target.workspace.clone()).filter(|w| !w.is_empty()),
            network: Some(target.network.clone()).filter(|n| !n.is_empty()),
        };
        let resolved = resolve(&reference, to, &home).map_err(|error| match error {
            ReferenceError::Empty
            | ReferenceError::NotAResource(_)
            | ReferenceError::WrongKind { .. }
            | ReferenceError::NoWorkspace(_)
            | ReferenceError::NoNetwork(_) => refuse(format!("spec.{name}: {error}")),
        })?;
        let missing = || refuse(format!("spec.{name}: {resolved} does not exist"));
        if !to.catalogue && resolved.tenant != target.tenant {
            // Another tenant's resources are nobody's business, their existence included.
            return Err(missing());
        }
        let named = Target {
            info: to,
            tenant: resolved.tenant.clone(),
            workspace: resolved.workspace.clone().unwrap_or_default(),
            network: resolved.network.clone().unwrap_or_default(),
            name: Some(resolved.name.clone()),
        };
        let place_exists = self.parents_exist(&named);
        if !to.catalogue && !place_exists {
            return Err(missing());
        }
        let exists = match self.namespace_of(&named).await? {
            Some(namespace) => {
                let found = self.find(&named, &namespace, &resolved.name).await?;
                found.is_some_and(|entry| !entry.deleting())
            }
            None => false,
        };
        let defer = self.config().references.of(field.kind, name) == ReferencePolicy::Defer;
        if exists || (defer && !to.catalogue) {
            Ok(())
        } else {
            Err(missing())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_table_is_one_of_its_kind() {
        for field in &FIELDS {
            let info = ecp_xrds::by_kind(field.kind).expect("kind");
            assert!(ecp_xrds::by_kind(field.to).is_some(), "{}", field.to);
            let schema = ecp_xrds::version_schema(info);
            let declared = &schema["properties"]["spec"]["properties"][field.name];
            assert!(declared.is_object(), "{}.{}", field.kind, field.name);
        }
    }
}
