//! `ecp xpkg install`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ecp_oci::Source;
use ecp_package::xpkg::{PackageKind, to_dns_label};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use crate::facade::client;
use crate::output::{self, Hint};

/// Options of `ecp xpkg install`; those that `crossplane xpkg install` has mean the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What it is.
    #[arg(value_enum)]
    kind: Kind,
    /// Registry, repository and tag or digest; or, for `ecp up` on this machine, a file or a folder.
    #[arg(value_name = "PACKAGE")]
    package: String,
    /// Name of the package in the cluster; without it, that of its repository.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// How long to wait until it is healthy, in seconds; 0 does not wait.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    /// Leave the first revision inactive.
    #[arg(short, long)]
    manual_activation: bool,
    /// Secrets with credentials for the registry, in Crossplane's namespace.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    package_pull_secrets: Vec<String>,
    /// How many inactive revisions are kept.
    #[arg(short, long, value_name = "COUNT", default_value_t = 1)]
    revision_history_limit: u32,
    /// How it is run: a DeploymentRuntimeConfig.
    #[arg(long, value_name = "NAME")]
    runtime_config: Option<String>,
    /// How to reach the Kubernetes API; without it `KUBECONFIG`, or the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    Provider,
    Configuration,
    Function,
}

impl Kind {
    fn of(self) -> PackageKind {
        match self {
            Self::Provider => PackageKind::Provider,
            Self::Configuration => PackageKind::Configuration,
            Self::Function => PackageKind::Function,
        }
    }
}

/// Makes the package's object, and waits until it is healthy if asked to.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let object = object(options)?;
    let kind = options.kind.of().as_str();
    let plural = format!("{}s", kind.to_lowercase());
    let gvk = GroupVersionKind::gvk("pkg.crossplane.io", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
    let api: Api<DynamicObject> =
        Api::all_with(client(options.kubeconfig.as_deref()).await?, &resource);
    let object: DynamicObject = serde_json::from_value(object)?;
    let name = object.metadata.name.clone().unwrap_or_default();
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {
            return Err(
                anyhow::anyhow!("the cluster has no {plural}.pkg.crossplane.io").context(Hint(
                    "install Crossplane, or start `ecp up`, which has packages".into(),
                )),
            );
        }
        Err(error) => return Err(error).with_context(|| format!("creating {kind} {name}")),
    }
    output::data(&format!("{}/{name} created", kind.to_lowercase()))?;
    match options.wait {
        0 => Ok(()),
        seconds => wait(&api, &name, Duration::from_secs(seconds)).await,
    }
}

fn object(options: &Options) -> anyhow::Result<Value> {
    let (package, name) = match Source::parse(&options.package)? {
        Source::Registry(reference) => (
            options.package.clone(),
            to_dns_label(reference.repository()),
        ),
        Source::File(path) | Source::Directory(path) => {
            let whole = path
                .canonicalize()
                .with_context(|| format!("reading {}", path.display()))?;
            let stem = whole
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .to_lowercase();
            (format!("file://{}", whole.display()), to_dns_label(&stem))
        }
    };
    let name = options.name.clone().unwrap_or(name);
    let secrets: Vec<_> = options
        .package_pull_secrets
        .iter()
        .map(|of| json!({"name": of}))
        .collect();
    let activation = if options.manual_activation {
        "Manual"
    } else {
        "Automatic"
    };
    let mut object = json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": options.kind.of().as_str(),
        "metadata": {"name": name},
        "spec": {
            "package": package,
            "revisionActivationPolicy": activation,
            "revisionHistoryLimit": options.revision_history_limit,
        },
    });
    if !secrets.is_empty() {
        object["spec"]["packagePullSecrets"] = secrets.into();
    }
    if let Some(config) = &options.runtime_config {
        if matches!(options.kind, Kind::Configuration) {
            bail!("--runtime-config: a configuration runs nothing");
        }
        object["spec"]["runtimeConfigRef"] = json!({"name": config});
    }
    Ok(object)
}

/// Waits until `Healthy` is true, and says what is missing whenever that changes.
async fn wait(api: &Api<DynamicObject>, name: &str, at_most: Duration) -> anyhow::Result<()> {
    use futures::StreamExt as _;
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut states = std::pin::pin!(watcher(api.clone(), config).applied_objects());
    let mut last = "its conditions are not set yet".to_owned();
    let waiting = async {
        while let Some(state) = states.next().await {
            // The watch tries again by itself.
            let Ok(state) = state else { continue };
            let Some(missing) = missing(&state.data) else {
                return;
            };
            if missing != last {
                output::note(&format!("waiting: {missing}"));
                last = missing;
            }
        }
    };
    match tokio::time::timeout(at_most, waiting).await {
        Ok(()) => Ok(()),
        Err(_) => bail!(
            "{name} is not healthy after {} s: {last}",
            at_most.as_secs()
        ),
    }
}

/// What is not true yet, in the words of the conditions; nothing when it is healthy.
fn missing(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array();
    for kind in ["Installed", "Healthy"] {
        let condition = conditions
            .into_iter()
            .flatten()
            .find(|of| of["type"] == kind);
        let Some(condition) = condition else {
            return Some(format!("it has no condition {kind} yet"));
        };
        if condition["status"] != "True" {
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            return Some(format!(
                "{kind} is not true: {} {}",
                text("reason"),
                text("message")
            ));
        }
    }
    None
}
