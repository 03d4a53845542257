use std::time::SystemTime;

use ecp_meta::cluster::ClusterName;
use http::Method;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::*;
use crate::request;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn jane() -> Identity {
    Identity::user("jane")
}

/// Status of a request by someone, as far as authorization decides it.
fn admitted(identity: &Identity, method: Method, path: &str) -> u16 {
    let target = request::route(path).unwrap();
    let cluster = ClusterName::root();
    match admit(
        &MastersOnly,
        &attributes(identity, &cluster, &method, path, "", &target),
    ) {
        Ok(()) => 200,
        Err(response) => response.status().as_u16(),
    }
}

#[test]
fn a_known_token_is_its_user_and_an_unknown_one_nobody() {
    let known = Authenticator::new()
        .with_token("secret", jane())
        .with_token("other", anonymous());
    let ask = |value: &str| known.authenticate(&headers(&[("authorization", value)]), None);
    assert_eq!(ask("Bearer secret"), Ok(jane()));
    assert_eq!(ask("bearer  secret "), Ok(jane()));
    for bad in [
        "Bearer secre",
        "Bearer secrett",
        "Basic c2VjcmV0",
        "secret",
        "Bearer x y",
    ] {
        assert_eq!(ask(bad), Err(Unauthorized), "{bad}");
    }
    let twice = headers(&[
        ("authorization", "Bearer secret"),
        ("authorization", "Bearer secret"),
    ]);
    assert_eq!(known.authenticate(&twice, None), Err(Unauthorized));
}

#[test]
fn a_bad_token_is_refused_even_beside_a_good_certificate() {
    let known = Authenticator::new().with_token("secret", Identity::admin());
    let bad = headers(&[("authorization", "Bearer nope")]);
    assert_eq!(known.authenticate(&bad, Some(&jane())), Err(Unauthorized));
    assert_eq!(
        known.authenticate(&HeaderMap::new(), Some(&jane())),
        Ok(jane())
    );
}

#[test]
fn no_credentials_are_anonymous_unless_everything_is_open() {
    let nobody = HeaderMap::new();
    assert!(is_anonymous(
        &Authenticator::new().authenticate(&nobody, None).unwrap()
    ));
    let open = Authenticator::new().insecure_dev();
    assert_eq!(open.authenticate(&nobody, None), Ok(Identity::admin()));
}

#[test]
fn identity_headers_of_clients_have_no_effect() {
    let forged = headers(&[
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scopes", "all"),
    ]);
    let identity = Authenticator::new()
        .authenticate(&forged, Some(&jane()))
        .unwrap();
    assert_eq!(identity, jane());
}

#[test]
fn debug_output_shows_no_token() {
    let known = Authenticator::new().with_token("planted-secret", jane());
    assert!(!format!("{known:?}").contains("planted"));
}

#[test]
fn a_certificate_is_its_common_name_with_organizations_as_groups() {
    let pki = crate::pki::Pki::ephemeral(&[], SystemTime::now()).unwrap();
    let pem = &pki.admin().certificate_pem;
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let identity = certificate_identity(&der).unwrap();
    assert_eq!(identity.user, "kubernetes-admin");
    assert_eq!(identity.groups, ["system:masters", "system:authenticated"]);
    assert_eq!(certificate_identity(b"garbage"), None);
}

#[test]
fn masters_may_do_everything_and_others_look_around() {
    let secret = "/api/v1/namespaces/a/secrets/s";
    assert_eq!(admitted(&Identity::admin(), Method::DELETE, secret), 200);
    assert_eq!(admitted(&jane(), Method::GET, secret), 403);
    assert_eq!(admitted(&anonymous(), Method::GET, secret), 401);
    assert_eq!(admitted(&jane(), Method::GET, "/apis"), 200);
    assert_eq!(admitted(&anonymous(), Method::GET, "/apis"), 401);
    assert_eq!(admitted(&anonymous(), Method::GET, "/healthz"), 200);
    assert_eq!(admitted(&anonymous(), Method::GET, "/version"), 200);
    assert_eq!(admitted(&jane(), Method::GET, "/metrics"), 403);
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(admitted(&jane(), Method::POST, review), 200);
    assert_eq!(admitted(&anonymous(), Method::POST, review), 401);
    let about_others = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(admitted(&jane(), Method::POST, about_others), 403);
}

#[test]
fn a_refusal_says_who_may_not_do_what() {
    let identity = jane();
    let attributes = Attributes {
        identity: &identity,
        cluster: None,
        verb: "list",
        scope: Scoped::Resource {
            group: "g.io",
            resource: "foos",
            subresource: "",
            namespace: Some("a"),
            name: None,
        },
    };
    let status = check(&MastersOnly, &attributes).unwrap_err();
    assert_eq!(
        status.message(),
        "foos.g.io is forbidden: User \"jane\" cannot list resource \"foos\" in API group \
         \"g.io\" in the namespace \"a\""
    );
}

#[test]
fn only_masters_may_impersonate_and_then_are_that_user_alone() {
    let as_bob = headers(&[("impersonate-user", "bob"), ("impersonate-group", "team")]);
    let bob = impersonated(&MastersOnly, &as_bob, Arc::new(Identity::admin())).unwrap();
    assert_eq!(bob.user, "bob");
    assert_eq!(bob.groups, ["team", "system:authenticated"]);
    let refused = impersonated(&MastersOnly, &as_bob, Arc::new(jane())).unwrap_err();
    assert_eq!(refused.http_status(), 403);
    let only_group = headers(&[("impersonate-group", "system:masters")]);
    let refused = impersonated(&MastersOnly, &only_group, Arc::new(jane())).unwrap_err();
    assert_eq!(refused.http_status(), 400);
}
