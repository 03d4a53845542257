//! Compositions and their revisions.

use std::collections::BTreeMap;

use ecp_meta::{condition, keys, object};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::function::{Match, ResourceSelector};
use crate::limits::{HASH_LABEL_LEN, HASH_NAME_LEN, PIPELINE_STEPS_MAX};
use crate::xrd::GROUP;

/// What a Composition or a revision says.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    /// `metadata.name`.
    pub name: String,
    /// `apiVersion` of the XRs it is for.
    pub composite_api_version: String,
    /// Kind of the XRs it is for.
    pub composite_kind: String,
    /// Steps, in order.
    pub pipeline: Vec<Step>,
    /// Where legacy XRs write their connection secret.
    pub write_connection_secrets_to_namespace: Option<String>,
}

/// One step of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Name of the step.
    pub name: String,
    /// The Function's name.
    pub function: String,
    /// Input.
    pub input: Option<Value>,
    /// Credentials from Secrets.
    pub credentials: Vec<Credential>,
    /// Resources the function has from its first call on, by requirement name.
    pub resources: BTreeMap<String, ResourceSelector>,
    /// Schemas the function has from its first call on: `apiVersion` and kind.
    pub schemas: BTreeMap<String, (String, String)>,
}

/// A credential from a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Name the function knows it by.
    pub name: String,
    /// The Secret.
    pub secret: SecretRef,
}

/// A Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretRef {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Why a Composition cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid {kind} {name:?}: {reason}")]
pub struct CompositionError {
    /// `Composition` or `CompositionRevision`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    composite_type_ref: RawTypeRef,
    mode: Option<String>,
    #[serde(default)]
    pipeline: Vec<RawStep>,
    write_connection_secrets_to_namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTypeRef {
    api_version: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStep {
    step: String,
    function_ref: RawNamed,
    input: Option<Value>,
    #[serde(default)]
    credentials: Vec<RawCredential>,
    requirements: Option<RawRequirements>,
}

#[derive(Deserialize)]
struct RawNamed {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCredential {
    name: String,
    source: String,
    secret_ref: Option<RawSecretRef>,
}

#[derive(Deserialize)]
struct RawSecretRef {
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequirements {
    #[serde(default)]
    required_resources: Vec<RawResource>,
    #[serde(default)]
    required_schemas: Vec<RawSchema>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResource {
    requirement_name: String,
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSchema {
    requirement_name: String,
    api_version: String,
    kind: String,
}

impl Composition {
    /// Parses and checks a Composition or CompositionRevision.
    ///
    /// # Errors
    /// What is malformed or missing.
    pub fn parse(composition: &Value) -> Result<Self, CompositionError> {
        let gvk = object::gvk(composition);
        let error = |reason: String| CompositionError {
            kind: gvk.kind.clone(),
            name: object::name(composition).to_owned(),
            reason,
        };
        if gvk.group != GROUP {
            return Err(error(format!("not a Composition but {gvk}")));
        }
        let spec = composition.get("spec").cloned().unwrap_or_default();
        let spec: RawSpec =
            serde_json::from_value(spec).map_err(|e| error(format!("spec: {e}")))?;
        if let Some(mode) = spec.mode.filter(|mode| mode != "Pipeline") {
            return Err(error(format!(
                "spec.mode {mode:?} is not supported, only Pipeline is"
            )));
        }
        if spec.pipeline.is_empty() || spec.pipeline.len() > PIPELINE_STEPS_MAX {
            return Err(error(format!(
                "spec.pipeline must have 1 to {PIPELINE_STEPS_MAX} steps"
            )));
        }
        let mut steps: Vec<Step> = Vec::with_capacity(spec.pipeline.len());
        for raw in spec.pipeline {
            if steps.iter().any(|s| s.name == raw.step) {
                return Err(error(format!("step {:?} is given twice", raw.step)));
            }
            steps.push(raw.into());
        }
        Ok(Self {
            name: object::name(composition).to_owned(),
            composite_api_version: spec.composite_type_ref.api_version,
            composite_kind: spec.composite_type_ref.kind,
            pipeline: steps,
            write_connection_secrets_to_namespace: spec.write_connection_secrets_to_namespace,
        })
    }
}

impl From<RawStep> for Step {
    fn from(raw: RawStep) -> Self {
        let requirements = raw.requirements.unwrap_or(RawRequirements {
            required_resources: vec![],
            required_schemas: vec![],
        });
        Self {
            name: raw.step,
            function: raw.function_ref.name,
            input: raw.input,
            credentials: raw
                .credentials
                .into_iter()
                .filter(|c| c.source == "Secret")
                .filter_map(|c| {
                    let secret = c.secret_ref?;
                    Some(Credential {
                        name: c.name,
                        secret: SecretRef {
                            namespace: secret.namespace,
                            name: secret.name,
                        },
                    })
                })
                .collect(),
            resources: requirements
                .required_resources
                .into_iter()
                .map(|r| {
                    let selector = ResourceSelector {
                        api_version: r.api_version,
                        kind: r.kind,
                        namespace: r.namespace.filter(|ns| !ns.is_empty()),
                        matching: match r.name {
                            Some(name) => Match::Name(name),
                            None => Match::Labels(r.match_labels),
                        },
                    };
                    (r.requirement_name, selector)
                })
                .collect(),
            schemas: requirements
                .required_schemas
                .into_iter()
                .map(|s| (s.requirement_name, (s.api_version, s.kind)))
                .collect(),
        }
    }
}

/// The content hash of a Composition: over its labels, annotations and spec, as JSON with sorted
/// keys.
///
/// Upstream hashes the same three as Go's YAML library writes them, so the names of revisions
/// differ between the two engines; nothing but a reference with update policy `Manual` notices.
pub fn hash(composition: &Value) -> String {
    let meta = |field: &str| composition.get("metadata").and_then(|m| m.get(field));
    let mut digest = Sha256::new();
    for part in [meta("labels"), meta("annotations"), composition.get("spec")] {
        digest.update(part.unwrap_or(&Value::Null).to_string());
        digest.update("\n");
    }
    hex(&digest.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The revision object of a Composition (upstream `NewCompositionRevision`).
pub fn revision_of(composition: &Value, revision: i64) -> Value {
    let mut hash = hash(composition);
    hash.truncate(HASH_LABEL_LEN);
    let name = object::name(composition);
    let mut labels = Map::new();
    labels.insert(keys::COMPOSITION_NAME.into(), name.into());
    labels.insert(keys::COMPOSITION_HASH.into(), hash.as_str().into());
    labels.extend(object::labels(composition).map(|(k, v)| (k.to_owned(), v.into())));
    let mut metadata = json!({
        "name": format!("{name}-{}", hash.get(..HASH_NAME_LEN).unwrap_or_default()),
        "labels": labels,
        "ownerReferences": [object::controller_ref_to(composition)],
    });
    let annotations = composition.pointer("/metadata/annotations");
    if let Some(annotations) = annotations.filter(|a| a.as_object().is_some_and(|m| !m.is_empty()))
    {
        metadata["annotations"] = annotations.clone();
    }
    let mut spec = composition.get("spec").cloned().unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("revision".into(), revision.into());
    }
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "CompositionRevision",
        "metadata": metadata,
        "spec": spec,
    })
}

/// `spec.revision` of a revision.
pub fn revision_number(revision: &Value) -> i64 {
    revision
        .pointer("/spec/revision")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// Whether the object's controller is `owner`.
pub fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    object::controller_ref(object)
        .and_then(|r| r.get("uid"))
        .and_then(Value::as_str)
        .is_some_and(|uid| !uid.is_empty() && uid == object::uid(owner))
}

/// The newest of the revisions that the Composition controls.
pub fn latest_revision<'a>(
    composition: &Value,
    revisions: impl IntoIterator<Item = &'a Value>,
) -> Option<&'a Value> {
    revisions
        .into_iter()
        .filter(|r| is_controlled_by(r, composition))
        .max_by_key(|r| revision_number(r))
}

/// What has to be done so that a Composition has the revision of its content.
#[derive(Clone, Debug, PartialEq)]
pub enum RevisionChange {
    /// Make this the revision's controller or number.
    Update(Value),
    /// Create it.
    Create(Value),
}

/// The changes that bring a Composition's revisions up to date: ownership first, then the number
/// of an old revision whose content is current again, or a new revision.
pub fn revision_changes(composition: &Value, revisions: &[Value]) -> Vec<RevisionChange> {
    let mut hash = hash(composition);
    hash.truncate(HASH_LABEL_LEN);
    let latest = latest_revision(composition, revisions).map_or(0, revision_number);
    let mut changes = Vec::new();
    let mut exists = false;
    for revision in revisions {
        let mut changed = revision.clone();
        if !is_controlled_by(revision, composition) {
            let mut owners: Vec<Value> = object::owner_refs(revision).cloned().collect();
            owners.push(object::controller_ref_to(composition));
            object::metadata_mut(&mut changed).insert("ownerReferences".into(), owners.into());
        }
        if object::label(revision, keys::COMPOSITION_HASH) == Some(hash.as_str()) {
            exists = true;
            if revision_number(revision) != latest {
                changed["spec"]["revision"] = (latest + 1).into();
            }
        }
        if changed != *revision {
            changes.push(RevisionChange::Update(changed));
        }
    }
    if !exists {
        changes.push(RevisionChange::Create(revision_of(composition, latest + 1)));
    }
    changes
}

/// Why a revision's pipeline cannot be used, if so: its `ValidPipeline` condition is not True.
pub fn invalid_pipeline(revision: &Value) -> Option<String> {
    if condition::is_true(revision, "ValidPipeline") {
        return None;
    }
    let message = condition::find(revision, "ValidPipeline")
        .and_then(|c| c.get("message"))
        .and_then(Value::as_str)
        .filter(|m| !m.is_empty())
        .unwrap_or("pipeline status unknown");
    Some(format!(
        "selected CompositionRevision {} does not have a valid function pipeline: {message}",
        object::name(revision)
    ))
}

#[cfg(test)]
#[path = "composition_tests.rs"]
mod tests;
