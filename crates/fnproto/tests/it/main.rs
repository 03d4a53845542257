//! Functions over real sockets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ecp_fnproto::{
    FunctionRunner as _, GrpcConfig, GrpcRunner, InProcess, RunError, Transport, from_plain,
    to_plain,
};
use ecp_xr::function::{Match, Request, Requirements, Resource, ResourceSelector, Response, State};
use function_sdk_rust::proto::v1 as pb;
use pb::function_runner_service_server::{FunctionRunnerService, FunctionRunnerServiceServer};
use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, KeyPair};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

/// Echoes the XR's kind as desired resource, as large as the tag says, and asks for one resource.
#[derive(Debug)]
struct Echo;

#[tonic::async_trait]
impl FunctionRunnerService for Echo {
    async fn run_function(
        &self,
        request: tonic::Request<pb::RunFunctionRequest>,
    ) -> Result<tonic::Response<pb::RunFunctionResponse>, tonic::Status> {
        let request = request.into_inner();
        if request.extra_resources.contains_key("legacy") {
            return Err(tonic::Status::invalid_argument("legacy seen"));
        }
        let request = to_plain(request);
        let size = request.tag.parse().unwrap_or(1);
        let object = json!({"kind": "Echo", "spec": {"text": "x".repeat(size), "n": 3}});
        let response = from_plain(Response {
            tag: request.tag,
            desired: State {
                composite: None,
                resources: BTreeMap::from([("echo".to_owned(), Resource::of(object))]),
            },
            requirements: Requirements {
                resources: BTreeMap::from([(
                    "modern".to_owned(),
                    ResourceSelector {
                        api_version: "v1".into(),
                        kind: "Secret".into(),
                        namespace: None,
                        matching: Match::Name("s".into()),
                    },
                )]),
                schemas: BTreeMap::new(),
            },
            ..Response::default()
        });
        Ok(tonic::Response::new(response))
    }
}

async fn serve(tls: Option<ServerTlsConfig>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("address").port();
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).expect("TLS");
    }
    let router = server.add_service(FunctionRunnerServiceServer::new(Echo));
    tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
    port
}

fn request(tag: &str) -> Request {
    Request {
        tag: tag.into(),
        ..Request::default()
    }
}

fn plaintext(port: u16) -> GrpcRunner {
    let mut config = GrpcConfig::new(Transport::Plaintext);
    config.connect_wait = Duration::from_millis(200);
    let runner = GrpcRunner::new(config);
    runner.set_endpoint("echo", &format!("dns:///127.0.0.1:{port}"));
    runner
}

#[tokio::test]
async fn a_plaintext_function_answers() {
    let runner = plaintext(serve(None).await);
    let response = runner.run("echo", request("2")).await.expect("response");
    let object = &response.desired.resources["echo"].object;
    assert_eq!(object["spec"].to_string(), r#"{"n":3,"text":"xx"}"#);
    assert!(response.requirements.resources.contains_key("modern"));
}

#[tokio::test]
async fn functions_in_process_go_before_those_elsewhere() {
    let local = Arc::new(|request: Request| Response {
        tag: format!("local {}", request.tag),
        ..Response::default()
    });
    let elsewhere = plaintext(serve(None).await);
    let runner = InProcess::default()
        .with("local", local)
        .or(Arc::new(elsewhere));
    let response = runner.run("local", request("1")).await.expect("response");
    assert_eq!(response.tag, "local 1");
    let response = runner.run("echo", request("1")).await.expect("response");
    assert_eq!(response.tag, "1");
    assert!(runner.run("none", request("1")).await.is_err());
}

#[tokio::test]
async fn an_unknown_function_is_not_found() {
    let runner = plaintext(1);
    let error = runner.run("other", request("")).await;
    assert!(matches!(error, Err(RunError::NotFound(name)) if name == "other"));
    runner.remove_endpoint("echo");
    let error = runner.run("echo", request("")).await;
    assert!(matches!(error, Err(RunError::NotFound(_))));
}

#[tokio::test]
async fn an_unreachable_function_is_an_error_with_its_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("address").port();
    drop(listener);
    let error = plaintext(port).run("echo", request("")).await;
    let text = error.expect_err("nobody listens").to_string();
    assert!(text.contains("refused"), "{text}");
}

#[tokio::test]
async fn a_function_that_starts_late_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("address").port();
    drop(listener);
    let mut config = GrpcConfig::new(Transport::Plaintext);
    config.connect_wait = Duration::from_secs(10);
    let runner = GrpcRunner::new(config);
    runner.set_endpoint("echo", &format!("127.0.0.1:{port}"));
    let call = tokio::spawn(async move { runner.run("echo", request("1")).await });
    tokio::task::yield_now().await;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("bind");
    let router = Server::builder().add_service(FunctionRunnerServiceServer::new(Echo));
    tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
    assert!(call.await.expect("no panic").is_ok());
}

#[tokio::test]
async fn a_response_over_four_mebibytes_is_refused() {
    let runner = plaintext(serve(None).await);
    let error = runner.run("echo", request("5000000")).await;
    let text = error.expect_err("too large").to_string();
    assert!(text.contains("OutOfRange"), "{text}");
    assert!(runner.run("echo", request("4000000")).await.is_ok());
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("key");
        Self(CertifiedIssuer::self_signed(params, key).expect("certificate"))
    }

    fn issue(&self) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("key");
        let cert = params.signed_by(&key, &self.0).expect("certificate");
        (cert.pem(), key.serialize_pem())
    }

    fn write(&self, dir: &Path) {
        let (cert, key) = self.issue();
        for (file, text) in [
            ("tls.crt", cert),
            ("tls.key", key),
            ("ca.crt", self.0.pem()),
        ] {
            std::fs::write(dir.join(file), text).expect("write");
        }
    }
}

#[tokio::test]
async fn mutual_tls_accepts_our_authority_and_no_other() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let ours = Authority::new();
    let (cert, key) = ours.issue();
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(cert, key))
        .client_ca_root(Certificate::from_pem(ours.0.pem()))
        .client_auth_optional(false);
    let port = serve(Some(tls)).await;
    for (authority, accepted) in [(&ours, true), (&Authority::new(), false)] {
        let dir = tempfile::tempdir().expect("directory");
        authority.write(dir.path());
        let mut config = GrpcConfig::new(Transport::MutualTls(dir.path().to_owned()));
        config.connect_wait = Duration::from_millis(100);
        let runner = GrpcRunner::new(config);
        runner.set_endpoint("echo", &format!("https://localhost:{port}"));
        let answer = runner.run("echo", request("1")).await;
        assert_eq!(answer.is_ok(), accepted, "{answer:?}");
    }
}
