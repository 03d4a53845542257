//! The function over gRPC, on Crossplane's function SDK.

use std::sync::Arc;

use ecp_fnproto::PlainFunction;
use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerService;
use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};
use function_sdk_rust::{Args, Server};

/// Serves the function until SIGTERM or SIGINT, then finishes the calls that are running.
///
/// # Errors
/// The address cannot be listened on, or certificates cannot be read.
pub async fn serve(args: &Args) -> Result<(), function_sdk_rust::Error> {
    let runner = Runner {
        function: crate::plain(),
    };
    Server::new(runner, args).serve().await
}

struct Runner {
    function: PlainFunction,
}

#[async_trait::async_trait]
impl FunctionRunnerService for Runner {
    async fn run_function(
        &self,
        request: tonic::Request<RunFunctionRequest>,
    ) -> Result<tonic::Response<RunFunctionResponse>, tonic::Status> {
        let request = ecp_fnproto::to_plain(request.into_inner());
        let capabilities = request.capabilities.clone();
        let function = Arc::clone(&self.function);
        let response = function(request);
        Ok(tonic::Response::new(ecp_fnproto::from_plain_for(
            response,
            &capabilities,
        )))
    }
}
