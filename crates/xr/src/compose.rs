//! From desired state to objects: names, metadata, checks, references, and what is to be deleted
//! (upstream `Compose` steps 5 to 9).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::{keys, names, object};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::composition::hex;
use crate::event::{Event, TargetedEvent, reason};
use crate::function::{Ready, Resource, State};
use crate::machinery::ResourceRef;

/// Field manager of what the engine applies to an XR: references and status.
pub const COMPOSITE_MANAGER: &str = "apiextensions.crossplane.io/composite";

/// The field manager of what an XR applies to its composed resources. It depends on the XR's name
/// and kind, not on its namespace, as upstream.
pub fn composed_manager(xr: &Value) -> String {
    let mut digest = Sha256::new();
    digest.update(object::name(xr));
    digest.update(object::gvk(xr).group_kind());
    format!(
        "apiextensions.crossplane.io/composed/{}",
        hex(&digest.finalize())
    )
}

/// Observed composed resources by their name in the composition.
pub type Observed = BTreeMap<String, Resource>;

/// Takes one object that an XR refers to into account: `None` when another owner controls it.
///
/// # Errors
/// The object has no composition resource name.
pub fn observe(xr: &Value, referred: &Value) -> Result<Option<String>, ComposeError> {
    if controller_uid(referred).is_some_and(|uid| uid != object::uid(xr)) {
        return Ok(None);
    }
    match object::annotation(referred, keys::COMPOSITION_RESOURCE_NAME) {
        Some(name) if !name.is_empty() => Ok(Some(name.to_owned())),
        Some(_) | None => Err(ComposeError::Anonymous),
    }
}

/// The observed state functions see.
pub fn observed_state(xr: &Value, connection: BTreeMap<String, Vec<u8>>, of: &Observed) -> State {
    let composite = Resource {
        object: Arc::new(xr.clone()),
        connection,
        ready: Ready::Unspecified,
    };
    State {
        composite: Some(composite),
        resources: of.clone(),
    }
}

/// Why desired state cannot be applied.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ComposeError {
    /// A composed resource does not say which it is.
    #[error(
        "cannot get existing composed resources: encountered composed resource without required \
         \"crossplane.io/composition-resource-name\" annotation"
    )]
    Anonymous,
    /// A desired resource is no object.
    #[error(
        "cannot unmarshal desired composed resource {name:?} from RunFunctionResponse: {reason}"
    )]
    Malformed {
        /// Its name in the composition.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Whether a kind is namespaced is not known.
    #[error(
        "cannot check if composed resource {name:?} is namespaced (a {kind} named {object}): {reason}"
    )]
    UnknownKind {
        /// Its name in the composition.
        name: String,
        /// Kind.
        kind: String,
        /// Name of the object.
        object: String,
        /// Why.
        reason: String,
    },
    /// A namespaced XR may not compose cluster-scoped resources.
    #[error(
        "cannot apply cluster scoped composed resource {name:?} (a {kind} named {object}) for a \
         namespaced composite resource."
    )]
    ClusterScoped {
        /// Its name in the composition.
        name: String,
        /// Kind.
        kind: String,
        /// Name of the object.
        object: String,
    },
    /// The metadata of a desired resource cannot be made.
    #[error("cannot render metadata for composed resource {name:?}: {reason}")]
    Metadata {
        /// Its name in the composition.
        name: String,
        /// Why.
        reason: String,
    },
    /// A name is no RFC 1123 subdomain.
    #[error(
        "cannot apply composed resource {name:?} because it has an invalid name {object:?}. Must \
         be a valid RFC 1123 subdomain name."
    )]
    InvalidName {
        /// Its name in the composition.
        name: String,
        /// Name of the object.
        object: String,
    },
    /// Somebody else controls a resource that is no longer desired.
    #[error(
        "cannot garbage collect composed resources that are no longer desired: refusing to delete \
         composed resource {name:?} that is controlled by {kind} {owner:?}"
    )]
    NotOurs {
        /// Its name in the composition.
        name: String,
        /// Kind of its controller.
        kind: String,
        /// Name of its controller.
        owner: String,
    },
}

/// A composed resource to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    /// The object, with name, namespace and metadata.
    pub object: Value,
    /// Whether a function said that it is ready.
    pub ready: bool,
}

/// Desired state as objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// Composed resources by their name in the composition.
    pub composed: BTreeMap<String, Composed>,
    /// Events about them.
    pub events: Vec<TargetedEvent>,
}

/// Whether kinds are namespaced, or why that is not known.
pub type Scopes = BTreeMap<GroupVersionKind, Result<bool, String>>;

/// The kinds whose scope [`render`] needs to know: those of resources without a namespace, for a
/// namespaced XR.
pub fn kinds_to_check(
    xr: &Value,
    desired: &State,
    observed: &Observed,
) -> BTreeSet<GroupVersionKind> {
    if object::namespace(xr).is_none() {
        return BTreeSet::new();
    }
    desired
        .resources
        .iter()
        .filter(|(name, resource)| {
            let placed = observed.get(*name).unwrap_or(resource);
            object::namespace(&placed.object).is_none()
        })
        .map(|(_, resource)| object::gvk(&resource.object))
        .collect()
}

/// Makes objects of desired resources.
///
/// # Errors
/// See [`ComposeError`]: one bad resource stops all of them, as upstream.
pub fn render(
    xr: &Value,
    desired: &State,
    observed: &Observed,
    scopes: &Scopes,
) -> Result<Rendered, ComposeError> {
    let mut rendered = Rendered::default();
    for (name, resource) in &desired.resources {
        let object = Rendering {
            xr,
            name,
            observed: observed.get(name).map(|r| &*r.object),
        }
        .render(&resource.object, scopes, &mut rendered.events)?;
        let ready = resource.ready == Ready::True;
        rendered
            .composed
            .insert(name.clone(), Composed { object, ready });
    }
    Ok(rendered)
}

struct Rendering<'a> {
    xr: &'a Value,
    name: &'a str,
    observed: Option<&'a Value>,
}

impl Rendering<'_> {
    fn render(
        &self,
        desired: &Value,
        scopes: &Scopes,
        events: &mut Vec<TargetedEvent>,
    ) -> Result<Value, ComposeError> {
        let mut cd = desired.clone();
        self.check_shape(&cd)?;
        if let Some(observed) = self.observed {
            for field in ["namespace", "name", "generateName"] {
                set_meta(&mut cd, field, object::meta_str(observed, field));
            }
        }
        if let Some(xr_namespace) = object::namespace(self.xr) {
            self.check_scope(&cd, scopes)?;
            if let Some(namespace) = object::namespace(&cd).filter(|ns| *ns != xr_namespace) {
                let message = format!(
                    "cannot create composed resource {:?} in namespace {namespace:?}, using XR \
                     namespace {xr_namespace:?} instead",
                    self.name
                );
                events.push(TargetedEvent::composite(Event::warning(
                    reason::NAMESPACE_OVERRIDDEN,
                    message,
                )));
            }
            set_meta(&mut cd, "namespace", Some(xr_namespace));
        }
        self.add_metadata(&mut cd)?;
        if object::name(&cd).is_empty() {
            let prefix = object::meta_str(&cd, "generateName").unwrap_or_default();
            let child = names::child_name(prefix, object::uid(self.xr), self.name);
            set_meta(&mut cd, "name", Some(&child));
        }
        if is_valid_name(&cd) {
            Ok(cd)
        } else {
            Err(ComposeError::InvalidName {
                name: self.name.into(),
                object: object::name(&cd).into(),
            })
        }
    }

    fn check_shape(&self, cd: &Value) -> Result<(), ComposeError> {
        let text = |field: &str| cd.get(field).and_then(Value::as_str).unwrap_or_default();
        let reason = if text("kind").is_empty() {
            "Object 'Kind' is missing"
        } else if text("apiVersion").is_empty() {
            "Object 'apiVersion' is missing"
        } else if cd.get("metadata").is_some_and(|m| !m.is_object()) {
            "metadata is not an object"
        } else {
            return Ok(());
        };
        Err(ComposeError::Malformed {
            name: self.name.into(),
            reason: reason.into(),
        })
    }

    fn check_scope(&self, cd: &Value, scopes: &Scopes) -> Result<(), ComposeError> {
        if object::namespace(cd).is_some() {
            return Ok(());
        }
        let gvk = object::gvk(cd);
        let (name, kind, object) = (
            self.name.to_owned(),
            gvk.kind.clone(),
            object::name(cd).to_owned(),
        );
        match scopes.get(&gvk) {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => Err(ComposeError::ClusterScoped { name, kind, object }),
            Some(Err(reason)) => Err(ComposeError::UnknownKind {
                name,
                kind,
                object,
                reason: reason.clone(),
            }),
            None => Err(ComposeError::UnknownKind {
                name,
                kind,
                object,
                reason: "the scope of its kind was not looked up".into(),
            }),
        }
    }

    /// Upstream `RenderComposedResourceMetadata`.
    fn add_metadata(&self, cd: &mut Value) -> Result<(), ComposeError> {
        let error = |reason: String| ComposeError::Metadata {
            name: self.name.into(),
            reason,
        };
        let prefix = object::label(self.xr, keys::COMPOSITE)
            .filter(|p| !p.is_empty())
            .ok_or_else(|| {
                error(format!(
                    "cannot find top-level composite resource name label {:?} in composite \
                     resource metadata",
                    keys::COMPOSITE
                ))
            })?;
        let generate = object::meta_str(cd, "generateName").unwrap_or_default();
        if object::name(cd).is_empty() && generate.is_empty() {
            set_meta(cd, "generateName", Some(&format!("{prefix}-")));
        }
        object::set_annotation(cd, keys::COMPOSITION_RESOURCE_NAME, self.name);
        object::set_label(cd, keys::COMPOSITE, prefix);
        let claim = |key| object::label(self.xr, key).filter(|v| !v.is_empty());
        if let (Some(name), Some(namespace)) =
            (claim(keys::CLAIM_NAME), claim(keys::CLAIM_NAMESPACE))
        {
            object::set_label(cd, keys::CLAIM_NAME, name);
            object::set_label(cd, keys::CLAIM_NAMESPACE, namespace);
        }
        self.add_controller(cd)
            .map_err(|reason| error(format!("cannot set controller reference: {reason}")))
    }

    fn add_controller(&self, cd: &mut Value) -> Result<(), String> {
        let uid = object::uid(self.xr);
        if let Some(other) = object::controller_ref(cd)
            && other.get("uid").and_then(Value::as_str) != Some(uid)
        {
            let text = |field| other.get(field).and_then(Value::as_str).unwrap_or_default();
            return Err(format!(
                "{} is already controlled by {} {} (UID {})",
                object::name(cd),
                text("kind"),
                text("name"),
                text("uid"),
            ));
        }
        let mut owners: Vec<Value> = object::owner_refs(cd)
            .filter(|r| r.get("uid").and_then(Value::as_str) != Some(uid))
            .cloned()
            .collect();
        owners.push(object::controller_ref_to(self.xr));
        object::metadata_mut(cd).insert("ownerReferences".into(), owners.into());
        Ok(())
    }
}

/// RFC 1123 subdomains; RBAC kinds may have colons, too.
fn is_valid_name(cd: &Value) -> bool {
    let gvk = object::gvk(cd);
    let rbac = gvk.group == "rbac.authorization.k8s.io"
        && matches!(
            gvk.kind.as_str(),
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding"
        );
    let name = object::name(cd);
    if rbac {
        names::is_dns1123_subdomain(&name.replace(':', ""))
    } else {
        names::is_dns1123_subdomain(name)
    }
}

/// Sets or removes a string field of `metadata`.
fn set_meta(object: &mut Value, field: &str, value: Option<&str>) {
    let metadata = object::metadata_mut(object);
    match value.filter(|v| !v.is_empty()) {
        Some(value) => {
            metadata.insert(field.into(), value.into());
        }
        None => {
            metadata.remove(field);
        }
    }
}

fn controller_uid(object: &Value) -> Option<&str> {
    object::controller_ref(object)?.get("uid")?.as_str()
}

/// The observed resources that are no longer desired, by their name in the composition. One that
/// nobody controls is left alone.
///
/// # Errors
/// One of them is controlled by somebody else; nothing may be deleted then.
pub fn garbage<'a>(
    xr: &Value,
    observed: &'a Observed,
    rendered: &Rendered,
) -> Result<BTreeMap<&'a str, &'a Value>, ComposeError> {
    let mut garbage = BTreeMap::new();
    for (name, resource) in observed {
        if rendered.composed.contains_key(name) {
            continue;
        }
        let Some(controller) = object::controller_ref(&resource.object) else {
            continue;
        };
        let text = |field| controller.get(field).and_then(Value::as_str);
        if text("uid") != Some(object::uid(xr)) {
            return Err(ComposeError::NotOurs {
                name: name.clone(),
                kind: text("kind").unwrap_or_default().into(),
                owner: text("name").unwrap_or_default().into(),
            });
        }
        garbage.insert(name.as_str(), &*resource.object);
    }
    Ok(garbage)
}

/// A resource about to be deleted, without the labels that tie it to its XR; `None` if it has none.
pub fn without_ties(resource: &Value) -> Option<Value> {
    let mut changed = resource.clone();
    let labels = object::metadata_mut(&mut changed).get_mut("labels")?;
    let labels = labels.as_object_mut()?;
    for key in [keys::COMPOSITE, keys::CLAIM_NAME, keys::CLAIM_NAMESPACE] {
        labels.remove(key);
    }
    (changed != *resource).then_some(changed)
}

/// References to the rendered resources, sorted as upstream sorts them.
pub fn resource_refs(xr: &Value, rendered: &Rendered) -> Vec<ResourceRef> {
    let namespaced = object::namespace(xr).is_some();
    let mut refs: Vec<ResourceRef> = rendered
        .composed
        .values()
        .map(|composed| {
            let gvk = object::gvk(&composed.object);
            ResourceRef {
                api_version: gvk.api_version(),
                kind: gvk.kind,
                name: object::name(&composed.object).to_owned(),
                namespace: object::namespace(&composed.object)
                    .filter(|_| !namespaced)
                    .map(str::to_owned),
            }
        })
        .collect();
    refs.sort_by_cached_key(ResourceRef::sort_key);
    refs
}

/// The part of an XR that is applied for its references and status: its identity alone.
pub fn identity(xr: &Value) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), object::name(xr).into());
    if let Some(namespace) = object::namespace(xr) {
        metadata.insert("namespace".into(), namespace.into());
    }
    json!({
        "apiVersion": xr.get("apiVersion").cloned().unwrap_or_default(),
        "kind": xr.get("kind").cloned().unwrap_or_default(),
        "metadata": metadata,
    })
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
