//! The facade on a real socket: drain, loopback, an unreachable control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ecp_facade::{Access, Config, Facade, Profile, StartError, StaticTokens};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::contract;
use crate::player::Mood;
use crate::world::{DISKS, SKUS, TOKEN, WORKSPACE, World, disk, states};

type Http = Client<hyper_util::client::legacy::connect::HttpConnector, Empty<bytes::Bytes>>;

fn http() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
}

async fn get(http: &Http, url: String) -> (u16, String) {
    let request = http::Request::get(url)
        .header("authorization", format!("Bearer {TOKEN}"))
        .body(Empty::new())
        .expect("request");
    let path = request.uri().path().to_owned();
    let response = http.request(request).await.expect("answer");
    checked((http::Method::GET, path), response).await
}

/// Status and body of an answer that the OpenAPI document allows.
async fn checked<B>(
    (method, path): (http::Method, String),
    response: http::Response<B>,
) -> (u16, String)
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("body").to_bytes();
    contract::check(
        Profile::default(),
        (&method, &path),
        parts.status,
        &parts.headers,
        &bytes,
    );
    (
        parts.status.as_u16(),
        String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn open_requests_end_before_the_server_does() {
    let world = World::with_workspace().await;
    world.mood(Mood::Idle);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let address = listener.local_addr().expect("address");
    let facade = world.facade.clone();
    let server = tokio::spawn(async move { facade.serve(listener).await });
    let (status, _) = get(&http(), format!("http://{address}{SKUS}")).await;
    assert_eq!(status, 200);

    let slow = tokio::spawn(async move {
        let client: Client<_, String> = Client::builder(TokioExecutor::new()).build_http();
        let request = http::Request::put(format!("http://{address}{DISKS}/d"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(disk(1).to_string())
            .expect("request");
        client.request(request).await.expect("answer").status()
    });
    world
        .eventually(&format!("{DISKS}/d"), |a| a.status == 200)
        .await;
    world.shutdown.cancel();
    let ready = world.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(!slow.is_finished());
    // The player ended with the shutdown; the control plane still answers.
    let object = world
        .objects("BlockStorage")
        .get("d")
        .await
        .expect("object");
    let digest = ecp_xrds::intent_digest(&serde_json::to_value(&object).expect("JSON"));
    let status = json!({"status": {
        "state": "active",
        "history": [{"state": "active", "lastTransitionAt": "2030-01-01T00:00:00Z"}],
        "intent": {"digest": digest, "revision": 1, "lastModifiedAt": "2030-01-01T00:00:00Z"},
    }});
    world
        .objects("BlockStorage")
        .patch_status("d", &Default::default(), &kube::api::Patch::Merge(status))
        .await
        .expect("status");
    assert_eq!(slow.await.expect("task"), 201);
    tokio::time::timeout(Duration::from_secs(20), server)
        .await
        .expect("in time")
        .expect("task")
        .expect("served");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_only_loopback_is_served() {
    let world = World::with(|config| config.access = Access::InsecureDev).await;
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("listener");
    let error = world.facade.serve(listener).await.expect_err("refused");
    assert!(matches!(error, StartError::NotLoopback(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_control_plane_is_503_and_nothing_leaks() {
    // A port that nobody listens on.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let address = listener.local_addr().expect("address");
    drop(listener);
    let config = kube::Config::new(format!("http://{address}").parse().expect("URI"));
    let client = kube::Client::try_from(config).expect("client");
    let access = Access::Tokens(Arc::new(StaticTokens::admin(TOKEN)));
    let config = Config::new(client, "r", "http://facade.test", access);
    let shutdown = CancellationToken::new();
    let facade = Facade::start(config, shutdown.clone()).expect("facade");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let front = listener.local_addr().expect("address");
    tokio::spawn(async move { facade.serve(listener).await });
    let client = http();
    for path in [SKUS, DISKS] {
        let (status, body) = get(&client, format!("http://{front}{path}")).await;
        assert_eq!(status, 503, "{body}");
        assert!(!body.contains(&address.port().to_string()), "{body}");
    }
    assert_eq!(get(&client, format!("http://{front}/readyz")).await.0, 503);
    assert_eq!(get(&client, format!("http://{front}/healthz")).await.0, 200);
    shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_control_plane_stops_writes_at_once_and_reads_soon() {
    let world = World::with_workspace().await;
    let lost = Arc::new(AtomicBool::new(false));
    let through = world.client.clone();
    let service = {
        let lost = Arc::clone(&lost);
        tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (lost, through) = (lost.load(Ordering::SeqCst), through.clone());
            async move {
                if lost {
                    return Err("connection refused by 10.1.2.3".into());
                }
                through.send(request).await.map_err(tower::BoxError::from)
            }
        })
    };
    let access = Access::Tokens(Arc::new(StaticTokens::admin(TOKEN)));
    let client = kube::Client::new(service, "default");
    let config = Config::new(client, "region-1", "http://facade.test", access);
    let router = ecp_facade::router(config, world.shutdown.clone()).expect("router");
    let ask = async |method: http::Method, path: &str, body: String| {
        let request = http::Request::builder()
            .method(method.clone())
            .uri(path)
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(axum::body::Body::from(body))
            .expect("request");
        let response = router.clone().oneshot(request).await.expect("infallible");
        checked((method, path.to_owned()), response).await
    };
    let filled = async {
        while ask(http::Method::GET, "/readyz", String::new()).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), filled)
        .await
        .expect("ready");
    lost.store(true, Ordering::SeqCst);
    let (status, body) = ask(
        http::Method::PUT,
        &format!("{DISKS}/d"),
        disk(1).to_string(),
    )
    .await;
    assert_eq!(status, 503, "{body}");
    assert!(!body.contains("10.1.2.3"), "{body}");
    assert_eq!(
        ask(http::Method::GET, WORKSPACE, String::new()).await.0,
        200
    );
    let fresh = format!("{DISKS}/never-seen");
    assert_eq!(ask(http::Method::GET, &fresh, String::new()).await.0, 503);
    lost.store(false, Ordering::SeqCst);
    let (status, body) = ask(
        http::Method::PUT,
        &format!("{DISKS}/d"),
        disk(1).to_string(),
    )
    .await;
    assert_eq!(status, 201, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_to_be_read_is_refused_as_documented() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let address = listener.local_addr().expect("address");
    let facade = world.facade.clone();
    tokio::spawn(async move { facade.serve(listener).await });
    let headers: String = (0..200).map(|i| format!("x-{i}: 1\r\n")).collect();
    for path in [SKUS, "/.wellknown/secapi", "/healthz"] {
        // The client's own types hold no such URI.
        let long = format!("{path}?labels={}", "x".repeat(100_000));
        for (uri, headers, status) in [(long.as_str(), "", "414"), (path, &*headers, "431")] {
            let mut stream = tokio::net::TcpStream::connect(address)
                .await
                .expect("stream");
            let request = format!("GET {uri} HTTP/1.1\r\nhost: h\r\n{headers}\r\n");
            let mut answer = String::new();
            // The server may hang up before it has read everything.
            let _ = stream.write_all(request.as_bytes()).await;
            let read = stream.read_to_string(&mut answer).await;
            let line = answer.lines().next().expect("an answer");
            assert!(line.contains(status), "{line} {read:?}");
            assert!(answer.ends_with("\r\n\r\n"), "a body: {answer}");
            contract::check(
                Profile::default(),
                (&http::Method::GET, path),
                status.parse().expect("status"),
                &http::HeaderMap::new(),
                b"",
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_works_on_a_kept_connection() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let address = listener.local_addr().expect("address");
    let facade = world.facade.clone();
    tokio::spawn(async move { facade.serve(listener).await });
    let client = http();
    for _ in 0..3 {
        let request = http::Request::head(format!("http://{address}{SKUS}"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(Empty::new())
            .expect("request");
        let response = client.request(request).await.expect("answer");
        assert_eq!(response.status(), 200);
        let announced = response.headers()["content-length"]
            .to_str()
            .expect("text")
            .to_owned();
        assert!(
            response
                .into_body()
                .collect()
                .await
                .expect("body")
                .to_bytes()
                .is_empty()
        );
        let (_, body) = get(&client, format!("http://{address}{SKUS}")).await;
        assert_eq!(announced, body.len().to_string());
    }
}

/// A facade without patience whose control plane nobody serves, on a socket.
async fn alone() -> (std::net::SocketAddr, CancellationToken) {
    let lost = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, tower::BoxError>("nobody is there".into())
    });
    let client = kube::Client::new(lost, "default");
    let access = Access::Tokens(Arc::new(StaticTokens::admin(TOKEN)));
    let shutdown = CancellationToken::new();
    let mut config = Config::new(client, "r", "http://facade.test", access);
    config.header_read_timeout = Duration::from_millis(100);
    let facade = Facade::start(config, shutdown.clone()).expect("facade");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move { facade.serve(listener).await });
    (address, shutdown)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_asks_for_nothing_is_closed() {
    let (address, shutdown) = alone().await;
    for said in [&b""[..], b"PRI * HTTP", b"GET /healthz HT"] {
        let mut stream = tokio::net::TcpStream::connect(address)
            .await
            .expect("connection");
        stream.write_all(said).await.expect("written");
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        let closed = tokio::time::timeout(Duration::from_secs(20), reading);
        assert!(closed.await.is_ok(), "open after {said:?}");
    }
    shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_for_long_is_answered_when_the_server_stops() {
    let world = World::with_workspace().await;
    world.mood(Mood::Idle);
    let stop = world.shutdown.clone();
    let path = format!("{DISKS}/d");
    let waiting = world.put_with(&path, &[("prefer", "wait=60")], disk(1));
    let stopping = async {
        world.eventually(&path, |a| a.status == 200).await;
        stop.cancel();
    };
    let both = async { tokio::join!(waiting, stopping).0 };
    let answer = tokio::time::timeout(ecp_facade::limits::DRAIN_TIMEOUT, both)
        .await
        .expect("answered before connections are cut");
    assert_eq!(states(&answer.ok(201)), ["pending"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_fails_again_and_again_does_not_keep_the_cache_old() {
    let world = World::with(|config| {
        let through = config.client.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let through = through.clone();
            async move {
                let uri = request.uri();
                let watch = uri.query().is_some_and(|q| q.contains("watch=true"));
                if watch && uri.path().ends_with("/block-storages") {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                        "status": "Failure", "message": "cannot be decoded", "code": 500});
                    let event = format!("{}\n", json!({"type": "ERROR", "object": status}));
                    let body = kube::client::Body::from(event.into_bytes());
                    return Ok(http::Response::new(body));
                }
                let answer = through.send(request).await;
                answer.map_err(tower::BoxError::from)
            }
        });
        config.client = kube::Client::new(service, "default");
    })
    .await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    let object = json!({
        "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "BlockStorage",
        "metadata": {"name": "theirs"}, "spec": disk(1)["spec"],
    });
    let object = serde_json::from_value(object).expect("object");
    world
        .objects("BlockStorage")
        .create(&Default::default(), &object)
        .await
        .expect("created");
    let listed = |a: &crate::world::Answer| a.json()["items"][0].is_object();
    world.eventually(DISKS, listed).await;
}
