//! Authentication, methods, sizes, load, and what is not there.

use std::sync::Arc;

use axum::body::Body;
use ecp_facade::{Access, ApiError, Authenticator, Identity, Profile};
use http::{Method, Request};
use serde_json::json;

use crate::player::Mood;
use crate::world::{DISKS, SKUS, WORKSPACE, World, disk};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_in_without_a_valid_token() {
    let world = World::with_workspace().await;
    for header in [
        None,
        Some("Bearer wrong"),
        Some("Basic admin-token"),
        Some("Bearer "),
    ] {
        for (method, path) in [
            (Method::GET, SKUS),
            (Method::PUT, WORKSPACE),
            (Method::DELETE, WORKSPACE),
            (Method::GET, "/providers/none"),
        ] {
            let mut request = Request::builder().method(method).uri(path);
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            let answer = world
                .request(request.body(Body::empty()).expect("request"))
                .await;
            answer.problem(401);
            assert!(
                answer.headers["www-authenticate"]
                    .to_str()
                    .expect("text")
                    .starts_with("Bearer")
            );
        }
    }
    // A valid token without a role is denied.
    let request = Request::get(SKUS).header("authorization", "Bearer plain");
    world
        .request(request.body(Body::empty()).expect("request"))
        .await
        .problem(403);
    world.get(WORKSPACE).await.ok(200);
    for open in [
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
        "/.wellknown/secapi",
    ] {
        let request = Request::get(open).body(Body::empty()).expect("request");
        assert_eq!(world.request(request).await.status, 200, "{open}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_names_every_api() {
    let world = World::new().await;
    let known = world
        .get("/providers/seca.region/.wellknown/secapi")
        .await
        .ok(200);
    let names = [
        "authorization",
        "compute",
        "network",
        "region",
        "storage",
        "workspace",
    ];
    let endpoints = names.map(|name| {
        json!({
            "provider": format!("seca.{name}/v1"),
            "url": format!("http://facade.test/providers/seca.{name}"),
        })
    });
    assert_eq!(known, json!({"version": "v1", "endpoints": endpoints}));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_methods_and_media_types_are_refused() {
    let world = World::with_workspace().await;
    for path in [
        "/",
        "/providers",
        "/providers/seca.storage/v1",
        "/providers/seca.x/v1/y",
    ] {
        world.get(path).await.problem(404);
    }
    for (method, path, allow) in [
        (Method::POST, WORKSPACE, "GET, HEAD, PUT, DELETE, OPTIONS"),
        (Method::PATCH, WORKSPACE, "GET, HEAD, PUT, DELETE, OPTIONS"),
        (Method::PUT, DISKS, "GET, HEAD, OPTIONS"),
        (Method::DELETE, DISKS, "GET, HEAD, OPTIONS"),
        (Method::POST, "/healthz", "GET, HEAD"),
        (Method::POST, "/.wellknown/secapi", "GET, HEAD"),
    ] {
        let answer = world.call(method, path, &[], "").await;
        answer.problem(405);
        assert_eq!(answer.headers["allow"], allow, "{path}");
    }
    for (path, allow) in [
        (WORKSPACE, "GET, HEAD, PUT, DELETE, OPTIONS"),
        (DISKS, "GET, HEAD, OPTIONS"),
    ] {
        let answer = world.call(Method::OPTIONS, path, &[], "").await;
        answer.ok(204);
        assert_eq!(answer.headers["allow"], allow, "{path}");
    }
    let text = [("content-type", "text/plain")];
    world
        .put_with(WORKSPACE, &text, json!({}))
        .await
        .problem(415);
    let html = [("accept", "text/html")];
    world
        .put_with(WORKSPACE, &html, json!({}))
        .await
        .problem(406);
}

#[tokio::test(flavor = "multi_thread")]
async fn head_answers_like_get_without_a_body() {
    let world = World::with_workspace().await;
    let got = world.get(WORKSPACE).await;
    let head = world.call(Method::HEAD, WORKSPACE, &[], "").await;
    assert_eq!(head.status, 200);
    assert!(head.bytes.is_empty());
    assert_eq!(head.headers["content-length"], got.bytes.len().to_string());
    assert_eq!(
        world.call(Method::HEAD, "/nowhere", &[], "").await.status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_a_limit_that_lets_a_mebibyte_through() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    let padded = |len: usize| {
        let mut body = disk(1);
        let empty = json!({"extensions": {"pad": ""}, "spec": body["spec"]})
            .to_string()
            .len();
        body["extensions"] = json!({"pad": "x".repeat(len - empty)});
        body
    };
    let mebibyte = padded(1 << 20);
    assert_eq!(mebibyte.to_string().len(), 1 << 20);
    let fits = world.put(&path, mebibyte).await;
    assert_ne!(fits.status, 413, "{:?}", fits.headers);
    world.put(&path, padded((1 << 20) + 1)).await.problem(413);
    world.put(&path, padded(2 << 20)).await.problem(413);
    let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(64 << 10)));
    let endless = world
        .call(Method::PUT, &path, &[], Body::from_stream(endless))
        .await;
    endless.problem(413);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_are_kept_or_made() {
    let world = World::new().await;
    for path in ["/healthz", "/livez", "/readyz", "/metrics", "/openapi.json"] {
        for (method, status) in [(Method::GET, 200), (Method::HEAD, 200), (Method::POST, 405)] {
            let answer = world
                .call(method, path, &[("x-request-id", "abc-1")], "")
                .await;
            assert_eq!(answer.status, status, "{path}");
            assert_eq!(answer.headers["x-request-id"], "abc-1", "{path}");
        }
        assert_eq!(world.get(path).await.headers["x-request-id"].len(), 36);
    }
    let named = world
        .call(Method::GET, SKUS, &[("x-request-id", "abc")], "")
        .await;
    assert_eq!(named.headers["x-request-id"], "abc");
    assert_eq!(world.get(SKUS).await.headers["x-request-id"].len(), 36);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spec_profile_answers_as_the_specification_says() {
    let world = World::with(|config| config.profile = Profile::Spec).await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.problem(404);
    world.put(WORKSPACE, json!({})).await.ok(201);
    let answer = world.put(&path, disk(0)).await;
    answer.problem(422);
    assert_eq!(
        answer.json()["type"],
        "http://secapi.cloud/errors/validation-error"
    );
    world.put(&path, disk(1)).await.ok(201);
    world
        .patch(
            "BlockStorage",
            "d",
            json!({"metadata": {"finalizers": ["test/hold"]}}),
        )
        .await;
    world
        .call(Method::DELETE, &path, &[("prefer", "respond-async")], "")
        .await
        .ok(202);
    world.put(&path, disk(1)).await.problem(409);
    let stale = [("if-unmodified-since", "7")];
    world
        .put_with(WORKSPACE, &stale, json!({}))
        .await
        .problem(412);
}

/// An authenticator that lets requests through one by one.
#[derive(Debug)]
struct Gate(tokio::sync::Semaphore);

#[async_trait::async_trait]
impl Authenticator for Gate {
    async fn authenticate(&self, _: &str) -> Result<Option<Identity>, ApiError> {
        self.0.acquire().await.expect("open").forget();
        Ok(Some(Identity::admin("somebody")))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_at_once_are_told_to_come_back() {
    let gate = Arc::new(Gate(tokio::sync::Semaphore::new(0)));
    let access = Access::Tokens(gate.clone());
    let world = World::with(|config| {
        config.requests_in_flight_max = 1;
        config.access = access;
    })
    .await;
    let mut first = std::pin::pin!(world.get(SKUS));
    assert!(futures::poll!(&mut first).is_pending());
    let busy = world.get(SKUS).await;
    busy.problem(429);
    assert_eq!(busy.headers["retry-after"], "1");
    gate.0.add_permits(2);
    first.await.ok(200);
    world.get(SKUS).await.ok(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_for_a_slow_cloud_keeps_nobody_out() {
    let world = World::with(|config| config.requests_in_flight_max = 1).await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    world.mood(Mood::Idle);
    let path = format!("{DISKS}/d");
    let waiting = world.put(&path, disk(1));
    let reading = async {
        world.eventually(&path, |a| a.status == 200).await;
        world.mood(Mood::Willing);
    };
    let (answer, ()) = futures::join!(waiting, reading);
    answer.ok(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_given_up() {
    let world = World::with(|config| {
        config.body_read_timeout = std::time::Duration::from_millis(20);
    })
    .await;
    let stalled = futures::stream::pending::<Result<String, std::io::Error>>();
    let answer = world
        .call(Method::PUT, WORKSPACE, &[], Body::from_stream(stalled))
        .await;
    answer.problem(408);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_requests_by_route_and_code() {
    let world = World::with_workspace().await;
    world.get(&format!("{DISKS}/none")).await.problem(404);
    let text = world.get("/metrics").await;
    let text = String::from_utf8_lossy(&text.bytes);
    assert!(text.contains(
        "ecp_facade_requests_total{route=\"seca.storage/v1/block-storages/{name}\",method=\"GET\",code=\"404\"} 1"
    ), "{text}");
    assert!(
        text.contains("ecp_facade_cached_objects{kind=\"Workspace\"} 1"),
        "{text}"
    );
    assert!(
        text.contains("ecp_facade_request_duration_seconds_bucket"),
        "{text}"
    );
    assert!(!text.contains("none"), "names must not become series");
}

/// A part of the facade that fails in the worst way.
#[derive(Debug)]
struct Panicking;

#[async_trait::async_trait]
impl Authenticator for Panicking {
    async fn authenticate(&self, _: &str) -> Result<Option<Identity>, ApiError> {
        panic!("secret detail");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_one_request_and_tells_nothing() {
    let world = World::with(|config| config.access = Access::Tokens(Arc::new(Panicking))).await;
    let answer = world.get(SKUS).await;
    answer.problem(500);
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("secret detail"));
    assert_eq!(world.get("/healthz").await.status, 200);
}
