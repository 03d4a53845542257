//! `kube::Client` over the API server in this process.

use std::sync::Arc;

use ecp_apiserver::{ApiServer, Identity};

/// A client that reaches the server without a socket, as a member of `system:masters`.
///
/// `component` becomes the user agent, which is what field managers and logs show.
pub(crate) fn in_process(server: &Arc<ApiServer>, component: &str) -> kube::Client {
    let identity = Identity {
        user: format!("system:ecp:{component}"),
        groups: vec!["system:masters".into(), "system:authenticated".into()],
    };
    kube::Client::new(server.service(identity), "default")
}
