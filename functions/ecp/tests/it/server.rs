//! The function over gRPC, as Crossplane calls it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use function_sdk_rust::Args;
use function_sdk_rust::proto::v1 as pb;
use pb::function_runner_service_client::FunctionRunnerServiceClient;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

const DEADLINE: Duration = Duration::from_secs(20);

/// A port that was free a moment ago; the SDK's server cannot say which one it chose.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn args(port: u16, certs: Option<&Path>) -> Args {
    Args {
        debug: false,
        address: format!("127.0.0.1:{port}"),
        tls_certs_dir: certs.map(Into::into),
        insecure: certs.is_none(),
        max_recv_message_size: None,
        metrics_address: String::new(),
    }
}

fn serve(args: Args) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { function_ecp::server::serve(&args).await.unwrap() })
}

/// Connects as soon as the server listens.
async fn connect(endpoint: &Endpoint) -> Channel {
    let begun = Instant::now();
    loop {
        match endpoint.connect().await {
            Ok(channel) => return channel,
            Err(e) => assert!(begun.elapsed() < DEADLINE, "{e}"),
        }
        tokio::task::yield_now().await;
    }
}

fn question() -> pb::RunFunctionRequest {
    let xr = json!({
        "apiVersion": "v1.secapi.cloud/v1", "kind": "Region",
        "metadata": {"name": "region-1", "uid": "u-1", "generation": 1},
        "spec": {
            "availableZones": ["a"], "providers": [],
            "cloud": {"name": "dummy", "location": "nowhere-1"},
        },
    });
    pb::RunFunctionRequest {
        meta: Some(pb::RequestMeta {
            tag: "tag-1".into(),
            capabilities: Vec::new(),
        }),
        observed: Some(pb::State {
            composite: Some(pb::Resource {
                resource: Some(ecp_fnproto::value_to_struct(xr)),
                ..pb::Resource::default()
            }),
            ..pb::State::default()
        }),
        ..pb::RunFunctionRequest::default()
    }
}

async fn ask(channel: Channel) -> pb::RunFunctionResponse {
    FunctionRunnerServiceClient::new(channel)
        .run_function(question())
        .await
        .unwrap()
        .into_inner()
}

fn check(response: pb::RunFunctionResponse) {
    assert_eq!(response.meta.unwrap().tag, "tag-1");
    let desired = response.desired.unwrap();
    let location = desired.resources["location"].resource.clone().unwrap();
    let location = Value::Object(ecp_fnproto::struct_to_map(location));
    assert_eq!(location["kind"], "Location");
    assert_eq!(
        location["spec"]["forProvider"],
        json!({"location": "nowhere-1"})
    );
}

#[tokio::test]
async fn it_answers_in_plain_text_when_told_to() {
    let port = free_port();
    let server = serve(args(port, None));
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    let channel = connect(&endpoint).await;
    check(ask(channel).await);
    server.abort();
}

/// Certificates as Crossplane lays them out for a function: one authority for both sides.
struct Certs {
    ca: String,
    server: (String, String),
    client: (String, String),
}

fn certs() -> Certs {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, ca_key);
    let leaf = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &issuer).unwrap();
        (cert.pem(), key.serialize_pem())
    };
    Certs {
        server: leaf("localhost"),
        client: leaf("crossplane"),
        ca: ca_pem,
    }
}

fn write(directory: &Path, certs: &Certs) {
    fs::write(directory.join("tls.crt"), &certs.server.0).unwrap();
    fs::write(directory.join("tls.key"), &certs.server.1).unwrap();
    fs::write(directory.join("ca.crt"), &certs.ca).unwrap();
}

fn tls_endpoint(port: u16, certs: &Certs, identity: Option<&(String, String)>) -> Endpoint {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(&certs.ca))
        .domain_name("localhost");
    if let Some((cert, key)) = identity {
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    Endpoint::from_shared(format!("https://127.0.0.1:{port}"))
        .unwrap()
        .tls_config(tls)
        .unwrap()
}

#[tokio::test]
async fn it_answers_only_clients_of_its_authority() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (ours, theirs) = (certs(), certs());
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &ours);
    let port = free_port();
    let server = serve(args(port, Some(directory.path())));

    let channel = connect(&tls_endpoint(port, &ours, Some(&ours.client))).await;
    check(ask(channel).await);

    for identity in [None, Some(&theirs.client)] {
        let refused = match tls_endpoint(port, &ours, identity).connect().await {
            Err(_) => true,
            // With TLS 1.3 the client learns of the refusal with its first call.
            Ok(channel) => FunctionRunnerServiceClient::new(channel)
                .run_function(question())
                .await
                .is_err(),
        };
        assert!(refused, "{identity:?}");
    }
    server.abort();
}

#[tokio::test]
async fn it_does_not_start_without_certificates() {
    let mut without = args(free_port(), None);
    without.insecure = false;
    let error = function_ecp::server::serve(&without).await.unwrap_err();
    assert!(error.to_string().contains("no credentials"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = function_ecp::server::serve(&args(free_port(), Some(empty.path())))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("tls.crt"), "{error}");
}
