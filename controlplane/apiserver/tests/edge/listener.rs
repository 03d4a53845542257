//! The listener: TLS, protocols, credentials, drain.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use ecp_apiserver::Identity;
use ecp_apiserver::auth::Authenticator;
use ecp_apiserver::pki::Pki;
use ecp_apiserver::serve::{self, ServeError, Transport};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::{Api, DEADLINE, Front};

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

/// TLS settings of a client that trusts the server, with a certificate of its own or without.
fn client_config(pki: &Pki, certificate: bool, alpn: &str) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(pki.ca_pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = if certificate {
        let pem = &pki.admin().certificate_pem;
        let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(pki.admin().key_pem().as_bytes()).unwrap();
        builder.with_client_auth_cert(chain, key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    config
}

async fn connect(front: &Front, certificate: bool) -> Sender {
    let connector: tokio_rustls::TlsConnector =
        Arc::new(client_config(&front.pki, certificate, "h2")).into();
    let stream = TcpStream::connect(front.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn get(
    sender: &Sender,
    front: &Front,
    path: &str,
    headers: &[(&str, &str)],
) -> Response<Incoming> {
    let mut request = Request::get(format!("https://{}{path}", front.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    sender
        .clone()
        .send_request(request.body(Full::default()).unwrap())
        .await
        .unwrap()
}

async fn body(response: Response<Incoming>) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

#[tokio::test]
async fn a_client_without_credentials_sees_health_and_version_only() {
    let front = Front::start().await;
    let sender = connect(&front, false).await;
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(
            get(&sender, &front, path, &[]).await.status(),
            200,
            "{path}"
        );
    }
    for path in [
        "/api",
        "/apis",
        "/api/v1/secrets",
        "/openapi/v3",
        "/metrics",
        "/clusters/*/api/v1/secrets",
        "/clusters/root:a/api/v1/secrets",
        "/nothing",
    ] {
        let response = get(&sender, &front, path, &[]).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(
            response.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .starts_with("Bearer")
        );
        assert_eq!(body(response).await["reason"], "Unauthorized", "{path}");
    }
}

#[tokio::test]
async fn tokens_are_their_users() {
    let front = Front::start().await;
    let sender = connect(&front, false).await;
    let secrets = "/api/v1/secrets";
    let admin = format!("Bearer {}", front.pki.token());
    let ask = async |token: &str| {
        get(&sender, &front, secrets, &[("authorization", token)])
            .await
            .status()
            .as_u16()
    };
    assert_eq!(ask(&admin).await, 200);
    assert_eq!(ask("Bearer user-token").await, 403);
    assert_eq!(ask("Bearer nobody").await, 401);
    assert_eq!(ask("Basic dXNlcjpwdw==").await, 401);
}

#[tokio::test]
async fn identity_headers_from_outside_change_nothing() {
    let front = Front::start().await;
    let sender = connect(&front, false).await;
    let forged = [
        ("authorization", "Bearer user-token"),
        ("X-Remote-User", "kubernetes-admin"),
        ("x-remote-GROUP", "system:masters"),
        ("X-Remote-Group", "system:masters"),
        ("X-Remote-Extra-Scopes", "all"),
    ];
    assert_eq!(
        get(&sender, &front, "/api/v1/secrets", &forged)
            .await
            .status(),
        403
    );
}

#[tokio::test]
async fn a_client_certificate_is_its_user() {
    let front = Front::start().await;
    let sender = connect(&front, true).await;
    let response = get(&sender, &front, "/api/v1/secrets", &[]).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.version(), Version::HTTP_2);
}

#[tokio::test]
async fn certificates_of_another_authority_are_refused() {
    let front = Front::start().await;
    let stranger = Pki::ephemeral(&[], SystemTime::now()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(front.pki.ca_pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let pem = &stranger.admin().certificate_pem;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(stranger.admin().key_pem().as_bytes()).unwrap(),
        )
        .unwrap();
    let connector: tokio_rustls::TlsConnector = Arc::new(config).into();
    let stream = TcpStream::connect(front.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let refused = match connector.connect(name, stream).await {
        Err(_) => true,
        // With TLS 1.3 the client learns of it on its first read.
        Ok(mut stream) => {
            let mut buffer = [0; 1];
            tokio::io::AsyncReadExt::read(&mut stream, &mut buffer)
                .await
                .is_err()
        }
    };
    assert!(refused);
}

#[tokio::test]
async fn http_1_is_spoken_too() {
    let front = Front::start().await;
    let connector: tokio_rustls::TlsConnector =
        Arc::new(client_config(&front.pki, true, "http/1.1")).into();
    let stream = TcpStream::connect(front.address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/apis")
        .header("host", "x")
        .body(Full::<Bytes>::default());
    let response = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.version()),
        (200, Version::HTTP_11)
    );
}

#[tokio::test]
async fn three_hundred_watches_share_one_connection_and_end_cleanly_on_shutdown() {
    let front = Front::start().await;
    let sender = connect(&front, true).await;
    let path = "/api/v1/namespaces/default/configmaps?watch=true";
    let mut watches = Vec::new();
    for _ in 0..300 {
        let response = tokio::time::timeout(DEADLINE, get(&sender, &front, path, &[])).await;
        watches.push(response.expect("no stream is free").into_body());
    }
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    front
        .api
        .create("/api/v1/namespaces/default/configmaps", map)
        .await;
    for watch in &mut watches {
        let frame = tokio::time::timeout(DEADLINE, watch.frame()).await.unwrap();
        let data = frame.unwrap().unwrap().into_data().unwrap();
        assert!(data.starts_with(b"{\"type\":\"ADDED\""), "{data:?}");
    }
    front.shutdown.cancel();
    for mut watch in watches {
        // The stream ends, without an error.
        while let Some(frame) = tokio::time::timeout(DEADLINE, watch.frame()).await.unwrap() {
            frame.unwrap();
        }
    }
    tokio::time::timeout(DEADLINE, front.done)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn kube_client_works_over_the_socket() {
    use k8s_openapi::api::core::v1::ConfigMap;
    let front = Front::start().await;
    let text = front.kubeconfig(front.pki.token());
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&Default::default(), &map).await.unwrap();
    assert_eq!(maps.list(&Default::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn an_open_server_takes_everyone_for_the_administrator_and_only_on_loopback() {
    let pki = Pki::ephemeral(&[], SystemTime::now()).unwrap();
    let open = Authenticator::new().insecure_dev();
    let front = Front::with(pki, Transport::Plain, open).await;
    let stream = TokioIo::new(TcpStream::connect(front.address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/api/v1/secrets")
        .header("host", "x")
        .body(Full::<Bytes>::default());
    assert_eq!(
        sender
            .send_request(request.unwrap())
            .await
            .unwrap()
            .status(),
        200
    );

    for (transport, authenticator) in [
        (
            Transport::Plain,
            Authenticator::new().with_token("t", Identity::admin()),
        ),
        (
            front.pki.server_config().unwrap().into(),
            Authenticator::new().insecure_dev(),
        ),
    ] {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let refused = serve::serve(
            Arc::clone(&Api::start().await.server),
            listener,
            transport,
            Arc::new(authenticator),
            CancellationToken::new(),
        )
        .await;
        assert!(matches!(refused, Err(ServeError::NotLoopback(_))));
    }
}

#[tokio::test]
async fn a_refused_request_does_not_cost_the_connection() {
    let front = Front::start().await;
    let connector: tokio_rustls::TlsConnector =
        Arc::new(client_config(&front.pki, true, "http/1.1")).into();
    let stream = TcpStream::connect(front.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    // The body follows in packets of its own.
    let late = async |object: String| {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from(object)))
    };
    let late = |object| Box::pin(late(object));
    let maps = "/api/v1/namespaces/default/configmaps";
    for (path, code) in [
        (maps.to_owned(), 405),
        (format!("{maps}/a?dryRun=Odd"), 422),
        ("/apis/no.such/v1/things/a".to_owned(), 404),
        (format!("{maps}/a"), 404),
    ] {
        let object = json!({"metadata": {"name": "a"}}).to_string();
        let request = Request::put(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("content-length", object.len())
            .body(StreamBody::new(futures::stream::once(late(object))))
            .unwrap();
        sender.ready().await.unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), code);
        response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_is_closed() {
    let api = Api::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve::serve(
        api.server,
        listener,
        Transport::Plain,
        Arc::new(Authenticator::new().insecure_dev()),
        stop.clone(),
    ));
    for sent in ["", "PRI * HT", "GET /version HTTP/1.1\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, sent.as_bytes())
            .await
            .unwrap();
        // The clock jumps to the next thing that somebody waits for.
        tokio::time::pause();
        let mut answer = Vec::new();
        let closed = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer);
        let hour = std::time::Duration::from_secs(3600);
        assert!(
            tokio::time::timeout(hour, closed).await.is_ok(),
            "open after an hour: {sent:?}"
        );
        tokio::time::resume();
    }
    stop.cancel();
    serving.await.unwrap().unwrap();
}
