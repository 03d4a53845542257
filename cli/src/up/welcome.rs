//! What a person sees once everything runs.

use std::time::Duration;

use super::data_dir::{DataDir, Endpoints};
use super::options::Options;
use crate::output::note;

/// Shows the endpoints and three things to try.
pub(crate) fn show(options: &Options, data_dir: &DataDir, endpoints: &Endpoints, took: Duration) {
    let (rest, kubeconfig) = (endpoints.rest_url(), data_dir.kubeconfig());
    let (token, kubeconfig) = (data_dir.token(), kubeconfig.display());
    note(&format!("\nECP is ready after {} ms\n", took.as_millis()));
    note(&format!("  Kubernetes API  {}", endpoints.api_url()));
    note(&format!("  SECA REST API   {rest}/providers/seca.<name>"));
    note(&format!(
        "  region          {} (dummy cloud)",
        options.served(*endpoints).regions.join(", ")
    ));
    note(&format!("  kubeconfig      {kubeconfig}"));
    note(&format!("  token           {}", token.display()));
    if options.ephemeral {
        note("  data            in memory, gone when this process ends");
    }
    if options.insecure_dev {
        note("\nwarning: --insecure-dev: anybody on this machine may do anything, without a token");
    }
    let auth = if options.insecure_dev {
        String::new()
    } else {
        format!(" -H \"Authorization: Bearer $(cat {})\"", token.display())
    };
    note("\nThree things to try in another terminal:\n");
    note(&format!(
        "  curl{auth} -X PUT -H 'Content-Type: application/json' -d '{{\"spec\":{{}}}}' \\\n    \
         {rest}/providers/seca.workspace/v1/tenants/acme/workspaces/prod\n"
    ));
    note(&format!(
        "  curl{auth} {rest}/providers/seca.storage/v1/tenants/acme/skus\n"
    ));
    note(&format!(
        "  kubectl --kubeconfig {kubeconfig} get seca -A\n"
    ));
    note("Ctrl-C stops it.");
}
