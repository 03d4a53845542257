//! The plain types of [`ecp_xr::function`] to protobuf and back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ecp_xr::function::{
    Capability, FunctionCondition, FunctionResult, Match, Ready, Request, Requirements, Resource,
    ResourceSelector, Response, Severity, State, Target,
};
use function_sdk_rust::proto::v1 as pb;
use serde_json::Value;

use crate::json::{map_to_struct, struct_to_map, value_to_struct};

/// A request off the wire. Resources fetched for `extra_resources` (the deprecated field, the only
/// one before Crossplane 2.0) and for `required_resources` are one map here.
pub fn to_plain(request: pb::RunFunctionRequest) -> Request {
    let meta = request.meta.unwrap_or_default();
    let mut required = resource_lists(request.extra_resources);
    required.extend(resource_lists(request.required_resources));
    Request {
        tag: meta.tag.clone(),
        capabilities: meta.capabilities().filter_map(capability).collect(),
        observed: state_from_pb(request.observed),
        desired: state_from_pb(request.desired),
        input: request.input.map(|s| Value::Object(struct_to_map(s))),
        context: request.context.map(struct_to_map).unwrap_or_default(),
        required,
        schemas: request
            .required_schemas
            .into_iter()
            .map(|(name, schema)| {
                let schema = schema.openapi_v3.map(|s| Value::Object(struct_to_map(s)));
                (name, schema)
            })
            .collect(),
        credentials: request
            .credentials
            .into_iter()
            .map(|(name, credentials)| (name, credentials_from_pb(credentials)))
            .collect(),
    }
}

/// A response for the wire, for callers that know `required_resources` (Crossplane 2.0 and later).
pub fn from_plain(response: Response) -> pb::RunFunctionResponse {
    let requirements = response.requirements;
    pb::RunFunctionResponse {
        meta: Some(pb::ResponseMeta {
            tag: response.tag,
            ttl: response.ttl.map(pb_duration),
        }),
        desired: Some(state_to_pb(response.desired)),
        results: response.results.into_iter().map(result_to_pb).collect(),
        context: response.context.map(map_to_struct),
        requirements: (!requirements.is_empty()).then(|| requirements_to_pb(requirements)),
        conditions: response
            .conditions
            .into_iter()
            .map(condition_to_pb)
            .collect(),
        output: None,
    }
}

/// A response for the wire, for a caller with these capabilities.
///
/// A caller that does not state its capabilities may be as old as Crossplane 1.20, which reads only
/// the deprecated `extra_resources`; it is asked through both fields.
pub fn from_plain_for(response: Response, capabilities: &[Capability]) -> pb::RunFunctionResponse {
    let mut response = from_plain(response);
    if !capabilities.contains(&Capability::Capabilities)
        && let Some(requirements) = &mut response.requirements
    {
        requirements.extra_resources = requirements.resources.clone();
    }
    response
}

/// A request for the wire. The required resources named in `legacy` were asked for through the
/// deprecated field and are answered there, as upstream does; those in `modern` in the new one. A
/// name in neither set goes to the new one.
pub(crate) fn request_to_pb(
    request: Request,
    legacy: &BTreeSet<String>,
    modern: &BTreeSet<String>,
) -> pb::RunFunctionRequest {
    let mut extra_resources = HashMap::new();
    let mut required_resources = HashMap::new();
    for (name, items) in request.required {
        let list = pb::Resources {
            items: items.into_iter().map(resource_to_pb).collect(),
        };
        match (legacy.contains(&name), modern.contains(&name)) {
            (true, true) => {
                extra_resources.insert(name.clone(), list.clone());
                required_resources.insert(name, list);
            }
            (true, false) => {
                extra_resources.insert(name, list);
            }
            (false, _) => {
                required_resources.insert(name, list);
            }
        }
    }
    pb::RunFunctionRequest {
        meta: Some(pb::RequestMeta {
            tag: request.tag,
            capabilities: request
                .capabilities
                .into_iter()
                .map(|c| capability_to_pb(c).into())
                .collect(),
        }),
        observed: Some(state_to_pb(request.observed)),
        desired: Some(state_to_pb(request.desired)),
        input: request.input.map(value_to_struct),
        context: Some(map_to_struct(request.context)),
        extra_resources,
        credentials: request
            .credentials
            .into_iter()
            .map(|(name, data)| (name, credentials_to_pb(data)))
            .collect(),
        required_resources,
        required_schemas: request
            .schemas
            .into_iter()
            .map(|(name, schema)| {
                let openapi_v3 = schema.map(value_to_struct);
                (name, pb::Schema { openapi_v3 })
            })
            .collect(),
    }
}

/// A response off the wire.
pub(crate) fn response_from_pb(response: pb::RunFunctionResponse) -> Response {
    let meta = response.meta.unwrap_or_default();
    Response {
        tag: meta.tag,
        ttl: meta.ttl.and_then(duration_from_pb),
        desired: state_from_pb(response.desired),
        results: response.results.into_iter().map(result_from_pb).collect(),
        context: response.context.map(struct_to_map),
        requirements: requirements_from_pb(response.requirements.unwrap_or_default()),
        conditions: response
            .conditions
            .into_iter()
            .map(condition_from_pb)
            .collect(),
    }
}

fn pb_duration(duration: Duration) -> pbjson_types::Duration {
    pbjson_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
    }
}

/// Negative durations mean no TTL.
fn duration_from_pb(duration: pbjson_types::Duration) -> Option<Duration> {
    let seconds = u64::try_from(duration.seconds).ok()?;
    let nanos = u32::try_from(duration.nanos).ok()?.min(999_999_999);
    Some(Duration::new(seconds, nanos))
}

fn resource_lists(lists: HashMap<String, pb::Resources>) -> BTreeMap<String, Vec<Resource>> {
    lists
        .into_iter()
        .map(|(name, list)| {
            let items = list.items.into_iter().map(resource_from_pb).collect();
            (name, items)
        })
        .collect()
}

fn state_from_pb(state: Option<pb::State>) -> State {
    let state = state.unwrap_or_default();
    State {
        composite: state.composite.map(resource_from_pb),
        resources: state
            .resources
            .into_iter()
            .map(|(name, resource)| (name, resource_from_pb(resource)))
            .collect(),
    }
}

fn state_to_pb(state: State) -> pb::State {
    pb::State {
        composite: state.composite.map(resource_to_pb),
        resources: state
            .resources
            .into_iter()
            .map(|(name, resource)| (name, resource_to_pb(resource)))
            .collect(),
    }
}

fn resource_from_pb(resource: pb::Resource) -> Resource {
    let ready = match resource.ready() {
        pb::Ready::Unspecified => Ready::Unspecified,
        pb::Ready::True => Ready::True,
        pb::Ready::False => Ready::False,
    };
    Resource {
        object: Value::Object(resource.resource.map(struct_to_map).unwrap_or_default()).into(),
        connection: resource.connection_details.into_iter().collect(),
        ready,
    }
}

fn resource_to_pb(resource: Resource) -> pb::Resource {
    let ready = match resource.ready {
        Ready::Unspecified => pb::Ready::Unspecified,
        Ready::True => pb::Ready::True,
        Ready::False => pb::Ready::False,
    };
    pb::Resource {
        resource: Some(value_to_struct(Arc::unwrap_or_clone(resource.object))),
        connection_details: resource.connection.into_iter().collect(),
        ready: ready.into(),
    }
}

fn credentials_from_pb(credentials: pb::Credentials) -> BTreeMap<String, Vec<u8>> {
    match credentials.source {
        Some(pb::credentials::Source::CredentialData(data)) => data.data.into_iter().collect(),
        None => BTreeMap::new(),
    }
}

fn credentials_to_pb(data: BTreeMap<String, Vec<u8>>) -> pb::Credentials {
    let data = data.into_iter().collect();
    pb::Credentials {
        source: Some(pb::credentials::Source::CredentialData(
            pb::CredentialData { data },
        )),
    }
}

fn capability(capability: pb::Capability) -> Option<Capability> {
    match capability {
        pb::Capability::Unspecified => None,
        pb::Capability::Capabilities => Some(Capability::Capabilities),
        pb::Capability::RequiredResources => Some(Capability::RequiredResources),
        pb::Capability::Credentials => Some(Capability::Credentials),
        pb::Capability::Conditions => Some(Capability::Conditions),
        pb::Capability::RequiredSchemas => Some(Capability::RequiredSchemas),
    }
}

fn capability_to_pb(capability: Capability) -> pb::Capability {
    match capability {
        Capability::Capabilities => pb::Capability::Capabilities,
        Capability::RequiredResources => pb::Capability::RequiredResources,
        Capability::Credentials => pb::Capability::Credentials,
        Capability::Conditions => pb::Capability::Conditions,
        Capability::RequiredSchemas => pb::Capability::RequiredSchemas,
    }
}

fn requirements_to_pb(requirements: Requirements) -> pb::Requirements {
    pb::Requirements {
        extra_resources: HashMap::new(),
        resources: requirements
            .resources
            .into_iter()
            .map(|(name, selector)| (name, selector_to_pb(selector)))
            .collect(),
        schemas: requirements
            .schemas
            .into_iter()
            .map(|(name, (api_version, kind))| (name, pb::SchemaSelector { api_version, kind }))
            .collect(),
    }
}

fn requirements_from_pb(requirements: pb::Requirements) -> Requirements {
    Requirements {
        resources: requirements
            .extra_resources
            .into_iter()
            .chain(requirements.resources)
            .map(|(name, selector)| (name, selector_from_pb(selector)))
            .collect(),
        schemas: requirements
            .schemas
            .into_iter()
            .map(|(name, selector)| (name, (selector.api_version, selector.kind)))
            .collect(),
    }
}

fn selector_to_pb(selector: ResourceSelector) -> pb::ResourceSelector {
    use pb::resource_selector::Match as PbMatch;
    let matching = match selector.matching {
        Match::Name(name) => PbMatch::MatchName(name),
        Match::Labels(labels) => PbMatch::MatchLabels(pb::MatchLabels {
            labels: labels.into_iter().collect(),
        }),
    };
    pb::ResourceSelector {
        api_version: selector.api_version,
        kind: selector.kind,
        namespace: selector.namespace,
        r#match: Some(matching),
    }
}

/// A selector without a match selects all objects of the kind (Crossplane 2.x).
fn selector_from_pb(selector: pb::ResourceSelector) -> ResourceSelector {
    use pb::resource_selector::Match as PbMatch;
    let matching = match selector.r#match {
        Some(PbMatch::MatchName(name)) => Match::Name(name),
        Some(PbMatch::MatchLabels(labels)) => Match::Labels(labels.labels.into_iter().collect()),
        None => Match::Labels(BTreeMap::new()),
    };
    ResourceSelector {
        api_version: selector.api_version,
        kind: selector.kind,
        namespace: selector.namespace.filter(|ns| !ns.is_empty()),
        matching,
    }
}

fn target_from_pb(target: pb::Target) -> Target {
    match target {
        pb::Target::Unspecified | pb::Target::Composite => Target::Composite,
        pb::Target::CompositeAndClaim => Target::CompositeAndClaim,
    }
}

fn target_to_pb(target: Target) -> i32 {
    match target {
        Target::Composite => pb::Target::Composite,
        Target::CompositeAndClaim => pb::Target::CompositeAndClaim,
    }
    .into()
}

fn result_from_pb(result: pb::Result) -> FunctionResult {
    let severity = match result.severity() {
        pb::Severity::Unspecified => Severity::Unspecified,
        pb::Severity::Fatal => Severity::Fatal,
        pb::Severity::Warning => Severity::Warning,
        pb::Severity::Normal => Severity::Normal,
    };
    FunctionResult {
        severity,
        target: target_from_pb(result.target()),
        message: result.message,
        reason: result.reason.filter(|reason| !reason.is_empty()),
    }
}

fn result_to_pb(result: FunctionResult) -> pb::Result {
    let severity = match result.severity {
        Severity::Unspecified => pb::Severity::Unspecified,
        Severity::Fatal => pb::Severity::Fatal,
        Severity::Warning => pb::Severity::Warning,
        Severity::Normal => pb::Severity::Normal,
    };
    pb::Result {
        severity: severity.into(),
        message: result.message,
        reason: result.reason,
        target: Some(target_to_pb(result.target)),
    }
}

fn condition_from_pb(condition: pb::Condition) -> FunctionCondition {
    let status = match condition.status() {
        pb::Status::ConditionTrue => "True",
        pb::Status::ConditionFalse => "False",
        pb::Status::ConditionUnknown | pb::Status::ConditionUnspecified => "Unknown",
    };
    FunctionCondition {
        status: status.into(),
        target: target_from_pb(condition.target()),
        kind: condition.r#type,
        reason: condition.reason,
        message: condition.message.unwrap_or_default(),
    }
}

fn condition_to_pb(condition: FunctionCondition) -> pb::Condition {
    let status = match condition.status.as_str() {
        "True" => pb::Status::ConditionTrue,
        "False" => pb::Status::ConditionFalse,
        _ => pb::Status::ConditionUnknown,
    };
    pb::Condition {
        r#type: condition.kind,
        status: status.into(),
        reason: condition.reason,
        message: (!condition.message.is_empty()).then_some(condition.message),
        target: Some(target_to_pb(condition.target)),
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
