//! The reference cloud: no credentials; tunable delay, failure and drift.
//!
//! [`cloud`] is the simulated cloud with an API of its own; [`external`] says what the managed
//! resources of [`kinds`] mean in it. A `ProviderConfig` says how it behaves.
//!
//! Invariant: knows no other provider and not the engine.
//!
//! Entry points: [`run`], [`run_with`] (with a cloud to look into), [`crds`].

mod cli;
pub mod cloud;
pub mod config;
pub mod external;
pub mod kinds;
pub mod limits;
mod mapping;

use std::path::PathBuf;

use anyhow::Context as _;
use ecp_provider::{Metrics, Runtime, config_crds, managed_crd};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use cloud::Cloud;
use config::ConfigSpec;
use external::DummyExternal;
use kinds::PROVIDER;

pub use cli::main;

/// How the provider runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the cloud keeps what it knows; in memory when absent.
    pub data_dir: Option<PathBuf>,
    /// Intervals and bounds.
    pub runtime: ecp_provider::Options,
    /// Metrics to record into.
    pub metrics: Metrics,
}

/// The CRDs of the provider: its kinds and its configurations.
pub fn crds() -> Vec<Value> {
    let mut crds = Vec::new();
    macro_rules! add {
        ($kind:ident) => {
            crds.push(managed_crd::<kinds::$kind>());
        };
    }
    kinds::for_each_kind!(add);
    crds.extend(config_crds::<ConfigSpec>(&PROVIDER));
    crds
}

/// Runs the provider and its cloud until `shutdown`.
///
/// # Errors
/// The cloud's directory cannot be used.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let now = Cloud::wall_clock();
    let cloud = match &options.data_dir {
        None => Cloud::in_memory(now),
        Some(dir) => Cloud::open(dir, now).context("opening the dummy cloud")?,
    };
    run_with(client, cloud, options, shutdown).await;
    Ok(())
}

/// Runs the provider on a cloud that the caller can look into.
pub async fn run_with(client: Client, cloud: Cloud, options: Options, shutdown: CancellationToken) {
    let mut runtime = Runtime::new(client, PROVIDER, options.runtime).metrics(options.metrics);
    macro_rules! add {
        ($kind:ident) => {
            runtime = runtime.with(DummyExternal::<kinds::$kind>::new(cloud.clone()));
        };
    }
    kinds::for_each_kind!(add);
    tokio::select! {
        () = cloud.run() => {}
        () = runtime.run(shutdown) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crds_have_structural_schemas_and_the_agreed_names() {
        let mut names = Vec::new();
        for crd in crds() {
            let version = &crd["spec"]["versions"][0];
            let schema = &version["schema"]["openAPIV3Schema"];
            let compiled = ecp_schema::Structural::compile(schema);
            assert!(
                compiled.is_ok(),
                "{}: {:?}",
                crd["metadata"]["name"],
                compiled.err()
            );
            assert_eq!(version["name"], "v1alpha1");
            names.push(crd["metadata"]["name"].as_str().expect("a name").to_owned());
        }
        let group = "dummy.m.secapi.cloud";
        let plurals = [
            "locations",
            "projects",
            "volumetypes",
            "machinetypes",
            "networktypes",
            "volumes",
            "volumeimages",
            "virtualnetworks",
            "virtualsubnets",
            "routingtables",
            "gateways",
            "networkinterfaces",
            "publicaddresses",
            "firewalls",
            "securityrules",
            "machines",
            "providerconfigs",
            "clusterproviderconfigs",
            "providerconfigusages",
        ];
        assert_eq!(names, plurals.map(|plural| format!("{plural}.{group}")));
    }

    #[test]
    fn a_managed_crd_has_the_shape_that_crossplane_knows() {
        let crd = managed_crd::<kinds::Volume>();
        let spec = &crd["spec"];
        assert_eq!(spec["scope"], "Namespaced");
        assert_eq!(
            spec["names"]["categories"],
            serde_json::json!(["crossplane", "managed", "dummy"])
        );
        let version = &spec["versions"][0];
        let columns: Vec<&str> = version["additionalPrinterColumns"]
            .as_array()
            .expect("columns")
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        assert_eq!(columns, ["SYNCED", "READY", "EXTERNAL-NAME", "AGE"]);
        let fields = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        assert_eq!(
            fields["managementPolicies"]["default"],
            serde_json::json!(["*"])
        );
        assert_eq!(
            fields["providerConfigRef"]["default"],
            serde_json::json!({"kind": "ClusterProviderConfig", "name": "default"})
        );
        assert!(fields.get("deletionPolicy").is_none());
    }
}
