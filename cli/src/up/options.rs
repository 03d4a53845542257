//! Options of `ecp up`.

use std::path::PathBuf;

use ecp_xrds::Flavour;

/// Options of `ecp up`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Directory of the store, the certificates, `kubeconfig`, `token` and `endpoints.json`.
    #[arg(long, value_name = "DIR", default_value = "./.ecp")]
    pub(crate) data_dir: PathBuf,
    /// Port of the Kubernetes API on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) api_port: u16,
    /// Port of the SECA REST API on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(crate) rest_port: u16,
    /// Keep everything in memory; only certificates, `kubeconfig` and `token` touch the disk.
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// Name of the region, made on the dummy cloud when it does not exist.
    #[arg(long, value_name = "NAME", default_value = "region-1", value_parser = region)]
    pub(crate) region: String,
    /// Ask for no token, over REST and the Kubernetes API. Never for anything but a laptop.
    #[arg(long)]
    pub(crate) insecure_dev: bool,
    /// Apply examples/first-volume after the start.
    #[arg(long)]
    pub(crate) demo: bool,
    /// What people apply: namespaced XRs (v2), or claims of cluster-scoped XRs.
    #[arg(long, value_enum, default_value_t = FlavourOption::V2)]
    pub(crate) flavour: FlavourOption,
}

/// A name that both a Region and its location in the dummy cloud can have.
fn region(name: &str) -> Result<String, String> {
    if ecp_meta::names::is_dns1123_label(name) {
        return Ok(name.to_owned());
    }
    Err(
        "must be 1 to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
            .into(),
    )
}

/// A flavour, as a command-line value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FlavourOption {
    /// Namespaced composite resources (Crossplane 2).
    V2,
    /// Claims of cluster-scoped composite resources (Crossplane 1.20 and 2).
    Claims,
}

impl From<FlavourOption> for Flavour {
    fn from(option: FlavourOption) -> Self {
        match option {
            FlavourOption::V2 => Self::V2,
            FlavourOption::Claims => Self::Claims,
        }
    }
}
