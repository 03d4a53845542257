//! Questions a client may ask about identities and permissions: virtual resources that are posted
//! and never stored.

use ecp_meta::cluster::ClusterName;
use ecp_meta::gvk::GroupVersionKind;
use http::{Method, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use super::{Attributes, Authorizer, Decision, Scoped};
use crate::body::ApiBody;
use crate::handlers;
use crate::request::ResourcePath;
use crate::server::{Identity, Scope};
use crate::status::Status;

/// A kind of review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Review {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    subject: Subject,
}

/// Whom a review is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// Who am I?
    Self_,
    /// May I?
    SelfAccess,
    /// What may I?
    SelfRules,
    /// May they?
    Access,
}

/// All reviews; their version is `v1`.
pub(crate) const REVIEWS: &[Review] = &[
    Review {
        group: "authentication.k8s.io",
        kind: "SelfSubjectReview",
        plural: "selfsubjectreviews",
        namespaced: false,
        subject: Subject::Self_,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "LocalSubjectAccessReview",
        plural: "localsubjectaccessreviews",
        namespaced: true,
        subject: Subject::Access,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
        namespaced: false,
        subject: Subject::SelfAccess,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
        namespaced: false,
        subject: Subject::SelfRules,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SubjectAccessReview",
        plural: "subjectaccessreviews",
        namespaced: false,
        subject: Subject::Access,
    },
];

/// Version of all reviews.
pub(crate) const VERSION: &str = "v1";

impl Review {
    pub(crate) fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.group, VERSION, self.kind)
    }
}

/// The review that a path leads to.
pub(crate) fn find(path: &ResourcePath<'_>) -> Option<&'static Review> {
    if path.version != VERSION || path.name.is_some() {
        return None;
    }
    REVIEWS.iter().find(|review| {
        review.group == path.group
            && review.plural == path.resource
            && review.namespaced == path.namespace.is_some()
    })
}

/// Whether a review tells a client only about itself.
pub(super) fn is_about_oneself(group: &str, resource: &str) -> bool {
    REVIEWS.iter().any(|review| {
        review.group == group && review.plural == resource && review.subject != Subject::Access
    })
}

/// Answers a request for a review.
pub(crate) async fn handle<B>(
    scope: &Scope<'_>,
    method: &Method,
    identity: &Identity,
    path: &ResourcePath<'_>,
    body: B,
) -> Response<ApiBody>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Some(review) = find(path) else {
        return Status::no_such_resource().into_response();
    };
    if method != Method::POST {
        let what = format!("{method} on {}.{}", review.plural, review.group);
        return Status::method_not_allowed(&what).into_response();
    }
    let answer = async {
        let body = handlers::read_object(scope.headers, body).await?;
        answer(
            review,
            &*scope.server.authorizer,
            scope.cluster,
            identity,
            body,
        )
    };
    // The body may never come.
    tokio::time::timeout(scope.server.config.request_timeout, answer)
        .await
        .unwrap_or_else(|_| Err(Status::timeout("request did not complete in time")))
        .unwrap_or_else(Status::into_response)
}

/// Answers a review: the posted object with its `status`.
///
/// # Errors
/// 400: the body is another kind, or asks nothing.
fn answer(
    review: &Review,
    authorizer: &dyn Authorizer,
    cluster: &ClusterName,
    identity: &Identity,
    body: Value,
) -> Result<Response<ApiBody>, Status> {
    let mut object = match body {
        Value::Object(object) => object,
        // A review without a body asks nothing; kubectl sends one with empty metadata.
        _ => return Err(Status::bad_request("the body is not an object")),
    };
    let gvk = review.gvk();
    let says = |field: &str, want: &str| {
        object
            .get(field)
            .and_then(Value::as_str)
            .is_none_or(|have| have.is_empty() || have == want)
    };
    if !says("apiVersion", &gvk.api_version()) || !says("kind", &gvk.kind) {
        return Err(Status::bad_request(format!(
            "the body must be a {}",
            gvk.kind
        )));
    }
    object.insert("apiVersion".into(), gvk.api_version().into());
    object.insert("kind".into(), gvk.kind.as_str().into());
    object.entry("metadata").or_insert_with(|| json!({}));
    let spec = object.get("spec").cloned().unwrap_or_default();
    let status = match review.subject {
        Subject::Self_ => json!({"userInfo": user_info(identity)}),
        Subject::SelfAccess => access(authorizer, cluster, identity, &spec)?,
        Subject::SelfRules => rules(authorizer, cluster, identity),
        Subject::Access => access(authorizer, cluster, &subject(&spec)?, &spec)?,
    };
    object.insert("status".into(), status);
    Ok(created(object))
}

fn created(object: Map<String, Value>) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::from(Value::Object(object).to_string()));
    *response.status_mut() = StatusCode::CREATED;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn user_info(identity: &Identity) -> Value {
    json!({"username": identity.user, "groups": identity.groups})
}

fn subject(spec: &Value) -> Result<Identity, Status> {
    let user = spec.get("user").and_then(Value::as_str).unwrap_or_default();
    let groups: Vec<String> = spec
        .get("groups")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|group| group.as_str().map(str::to_owned))
        .collect();
    if user.is_empty() && groups.is_empty() {
        return Err(Status::bad_request(
            "spec: at least one of user or group must be specified",
        ));
    }
    Ok(Identity {
        user: user.to_owned(),
        groups,
    })
}

fn access(
    authorizer: &dyn Authorizer,
    cluster: &ClusterName,
    identity: &Identity,
    spec: &Value,
) -> Result<Value, Status> {
    let resource = spec.get("resourceAttributes").filter(|v| v.is_object());
    let path = spec.get("nonResourceAttributes").filter(|v| v.is_object());
    let text = |of: Option<&'_ Value>, field: &str| -> String {
        of.and_then(|v| v.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let field = |name: &str| text(resource, name);
    let (group, plural, sub) = (field("group"), field("resource"), field("subresource"));
    let (namespace, name) = (field("namespace"), field("name"));
    let url = text(path, "path");
    let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (namespace, name) = (some(&namespace), some(&name));
    let scope = match (resource, path) {
        (Some(_), None) => Scoped::Resource {
            group: &group,
            resource: &plural,
            subresource: &sub,
            namespace: namespace.as_deref(),
            name: name.as_deref(),
        },
        (None, Some(_)) => Scoped::Path(&url),
        _ => {
            return Err(Status::bad_request(
                "spec: exactly one of nonResourceAttributes or resourceAttributes must be \
                 specified",
            ));
        }
    };
    let verb = text(resource.or(path), "verb");
    let attributes = Attributes {
        identity,
        cluster: Some(cluster),
        verb: &verb,
        scope,
    };
    Ok(match authorizer.authorize(&attributes) {
        Decision::Allowed(reason) => json!({"allowed": true, "reason": reason}),
        Decision::NoOpinion => json!({"allowed": false}),
    })
}

/// What a client may do, as far as it can be listed: everything, or what everybody may.
fn rules(authorizer: &dyn Authorizer, cluster: &ClusterName, identity: &Identity) -> Value {
    let everything = Attributes {
        identity,
        cluster: Some(cluster),
        verb: "*",
        scope: Scoped::Resource {
            group: "*",
            resource: "*",
            subresource: "",
            namespace: None,
            name: None,
        },
    };
    let mut resource_rules = vec![
        json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]}),
        json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"]}),
    ];
    let mut path_rules = vec![json!({"verbs": ["get"], "nonResourceURLs":
        ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
         "/readyz", "/version"]})];
    if matches!(authorizer.authorize(&everything), Decision::Allowed(_)) {
        resource_rules.insert(
            0,
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        );
        path_rules.insert(0, json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    json!({"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": false})
}
