//! Functions over gRPC.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use ecp_xr::function::{Request, Response};
use function_sdk_rust::proto::v1 as pb;
use parking_lot::RwLock;
use pb::function_runner_service_client::FunctionRunnerServiceClient;
use tokio::sync::Mutex;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

use crate::convert::{request_to_pb, response_from_pb};
use crate::limits::{
    CALL_TIMEOUT, CERT_CHECK_INTERVAL, CONNECT_RETRY, CONNECT_WAIT, LEGACY_NAMES_MAX,
    RESPONSE_BYTES_MAX,
};
use crate::{FunctionRunner, RunError};

const CERT_FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// How functions are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Without encryption; for functions on the same machine.
    Plaintext,
    /// Mutual TLS with `tls.crt`, `tls.key` and `ca.crt` of this directory, read again when they
    /// change.
    MutualTls(PathBuf),
}

/// Options of a [`GrpcRunner`].
#[derive(Clone, Debug)]
pub struct GrpcConfig {
    /// Encryption.
    pub transport: Transport,
    /// Longest one call may take.
    pub call_timeout: Duration,
    /// Longest a call waits for a function that cannot be reached yet.
    pub connect_wait: Duration,
}

impl GrpcConfig {
    /// Options with the default limits.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            call_timeout: CALL_TIMEOUT,
            connect_wait: CONNECT_WAIT,
        }
    }
}

/// Runs functions over gRPC, one lazily made connection for each.
///
/// # Guarantees
/// A response of more than 4 MiB is an error, as upstream. A function that is not reachable yet is
/// waited for, for a bounded time. Changed certificates are used from the next call on, at most
/// [`CERT_CHECK_INTERVAL`] late.
#[derive(Clone, Debug)]
pub struct GrpcRunner {
    config: GrpcConfig,
    functions: Arc<RwLock<BTreeMap<String, Arc<Function>>>>,
}

/// One function and the connection to it.
#[derive(Debug)]
struct Function {
    name: String,
    endpoint: String,
    connection: Mutex<Option<Connection>>,
    asked: Mutex<Asked>,
}

/// Through which field the function asked for required resources, by requirement name.
#[derive(Debug, Default)]
struct Asked {
    legacy: BTreeSet<String>,
    modern: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Connection {
    client: FunctionRunnerServiceClient<Channel>,
    certs: Option<CertStamp>,
    checked: Instant,
}

/// When each certificate file was last written.
type CertStamp = [Option<SystemTime>; CERT_FILES.len()];

impl GrpcRunner {
    /// A runner that knows no function yet.
    pub fn new(config: GrpcConfig) -> Self {
        Self {
            config,
            functions: Arc::default(),
        }
    }

    /// Says where a function is: `host:port`, also as `dns:///host:port`, `http://` or `https://`.
    /// A function whose endpoint does not change keeps its connection.
    pub fn set_endpoint(&self, name: &str, endpoint: &str) {
        let mut functions = self.functions.write();
        if functions.get(name).is_some_and(|f| f.endpoint == endpoint) {
            return;
        }
        let function = Function {
            name: name.to_owned(),
            endpoint: endpoint.to_owned(),
            connection: Mutex::default(),
            asked: Mutex::default(),
        };
        functions.insert(name.to_owned(), Arc::new(function));
    }

    /// Forgets a function.
    pub fn remove_endpoint(&self, name: &str) {
        self.functions.write().remove(name);
    }

    /// Makes the known functions exactly these.
    pub fn set_endpoints(&self, endpoints: &BTreeMap<String, String>) {
        self.functions
            .write()
            .retain(|name, _| endpoints.contains_key(name));
        for (name, endpoint) in endpoints {
            self.set_endpoint(name, endpoint);
        }
    }

    async fn client(
        &self,
        function: &Function,
    ) -> Result<FunctionRunnerServiceClient<Channel>, RunError> {
        let mut slot = function.connection.lock().await;
        if let Some(connection) = slot.as_mut() {
            if connection.checked.elapsed() < CERT_CHECK_INTERVAL {
                return Ok(connection.client.clone());
            }
            connection.checked = Instant::now();
            if connection.certs == self.cert_stamp().await {
                return Ok(connection.client.clone());
            }
            tracing::info!(function = function.name, "certificates changed");
        }
        let certs = self.cert_stamp().await;
        let channel = self
            .channel(function)
            .await
            .map_err(|reason| transport_error(&function.name, reason))?;
        let client = FunctionRunnerServiceClient::new(channel)
            .max_decoding_message_size(RESPONSE_BYTES_MAX)
            .max_encoding_message_size(usize::MAX);
        *slot = Some(Connection {
            client: client.clone(),
            certs,
            checked: Instant::now(),
        });
        Ok(client)
    }

    async fn channel(&self, function: &Function) -> Result<Channel, String> {
        let authority = authority(&function.endpoint);
        let uri = match self.config.transport {
            Transport::Plaintext => format!("http://{authority}"),
            Transport::MutualTls(_) => format!("https://{authority}"),
        };
        let mut endpoint = Endpoint::from_shared(uri)
            .map_err(|e| format!("invalid endpoint {:?}: {e}", function.endpoint))?
            .connect_timeout(self.config.connect_wait)
            .tcp_nodelay(true);
        if let Transport::MutualTls(dir) = &self.config.transport {
            endpoint = endpoint.tls_config(tls_config(dir).await?).map_err(|e| {
                format!(
                    "invalid certificates in {}: {}",
                    dir.display(),
                    chain(e.to_string(), &e)
                )
            })?;
        }
        Ok(endpoint.connect_lazy())
    }

    async fn cert_stamp(&self) -> Option<CertStamp> {
        let Transport::MutualTls(dir) = &self.config.transport else {
            return None;
        };
        let mut stamp = CertStamp::default();
        for (slot, file) in stamp.iter_mut().zip(CERT_FILES) {
            let metadata = tokio::fs::metadata(dir.join(file)).await;
            *slot = metadata.and_then(|m| m.modified()).ok();
        }
        Some(stamp)
    }

    async fn call(
        &self,
        function: &Function,
        request: pb::RunFunctionRequest,
    ) -> Result<pb::RunFunctionResponse, RunError> {
        let started = Instant::now();
        let mut pause = CONNECT_RETRY.0;
        loop {
            let mut client = self.client(function).await?;
            let status = match client.run_function(request.clone()).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            // Only a function that could not be reached is tried again (gRPC's WaitForReady); a
            // function that answers with an error has answered.
            if !never_arrived(&status) || started.elapsed() + pause > self.config.connect_wait {
                let reason = format!(
                    "{:?}: {}",
                    status.code(),
                    chain(status.message().to_owned(), &status)
                );
                return Err(transport_error(&function.name, reason));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(CONNECT_RETRY.1);
        }
    }
}

#[async_trait]
impl FunctionRunner for GrpcRunner {
    async fn run(&self, name: &str, request: Request) -> Result<Response, RunError> {
        let function = self
            .functions
            .read()
            .get(name)
            .cloned()
            .ok_or_else(|| RunError::NotFound(name.to_owned()))?;
        let request = {
            let asked = function.asked.lock().await;
            request_to_pb(request, &asked.legacy, &asked.modern)
        };
        let call = self.call(&function, request);
        let response = tokio::time::timeout(self.config.call_timeout, call)
            .await
            .map_err(|_| {
                let reason = format!("no answer within {:?}", self.config.call_timeout);
                transport_error(name, reason)
            })??;
        if let Some(requirements) = &response.requirements
            && !(requirements.extra_resources.is_empty() && requirements.resources.is_empty())
        {
            function.asked.lock().await.remember(requirements);
        }
        Ok(response_from_pb(response))
    }
}

impl Asked {
    fn remember(&mut self, requirements: &pb::Requirements) {
        if self.legacy.len() > LEGACY_NAMES_MAX {
            self.legacy.clear();
        }
        if self.modern.len() > LEGACY_NAMES_MAX {
            self.modern.clear();
        }
        self.legacy
            .extend(requirements.extra_resources.keys().cloned());
        self.modern.extend(requirements.resources.keys().cloned());
    }
}

fn transport_error(name: &str, reason: String) -> RunError {
    RunError::Transport {
        name: name.to_owned(),
        reason,
    }
}

/// Whether the request never got to the function: no connection, rather than a function that says
/// that it is unavailable.
fn never_arrived(status: &Status) -> bool {
    status.code() == Code::Unavailable && std::error::Error::source(status).is_some()
}

/// An error and its causes, each said once.
fn chain(message: String, error: &dyn std::error::Error) -> String {
    let mut text = message;
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// `host:port` of an endpoint as FunctionRevisions state it.
fn authority(endpoint: &str) -> &str {
    ["dns:///", "https://", "http://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme))
        .unwrap_or(endpoint)
        .trim_end_matches('/')
}

async fn tls_config(dir: &Path) -> Result<ClientTlsConfig, String> {
    let mut files = Vec::with_capacity(CERT_FILES.len());
    for file in CERT_FILES {
        let path = dir.join(file);
        let bytes = tokio::fs::read(&path)
            .await
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        files.push(bytes);
    }
    let [cert, key, ca] =
        <[Vec<u8>; 3]>::try_from(files).map_err(|_| "certificate files are missing".to_owned())?;
    Ok(ClientTlsConfig::new()
        .identity(Identity::from_pem(cert, key))
        .ca_certificate(Certificate::from_pem(ca)))
}
