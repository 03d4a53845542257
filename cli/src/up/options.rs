//! Options of `ecp up`.

use std::path::PathBuf;

use ecp_facade::{Profile, ReferencePolicies, ReferencePolicy, Served};
use ecp_xrds::Flavour;

use super::data_dir::Endpoints;
use crate::facade::RestOptions;

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
    /// Name of a region, made on the dummy cloud when it does not exist. May be repeated: the first
    /// is the default one.
    #[arg(long = "region", value_name = "NAME", default_value = "region-1", value_parser = region)]
    pub(crate) regions: Vec<String>,
    /// Ask for no token, over REST and the Kubernetes API. Never for anything but a laptop.
    #[arg(long)]
    pub(crate) insecure_dev: bool,
    /// Apply examples/first-volume after the start.
    #[arg(long)]
    pub(crate) demo: bool,
    /// What people apply: namespaced XRs (v2), or claims of cluster-scoped XRs.
    #[arg(long, value_enum, default_value_t = FlavourOption::V2)]
    pub(crate) flavour: FlavourOption,
    /// Log a line for each request of the REST API, at level info.
    #[arg(long)]
    pub(crate) access_log: bool,
    #[command(flatten)]
    pub(crate) rest: RestOptions,
}

impl Options {
    /// What the REST API serves.
    pub(crate) fn served(&self, endpoints: Endpoints) -> Served {
        self.rest.served(&self.regions, &endpoints.rest_url())
    }
}

/// The policy of each reference field; of two for the same fields the last one.
pub(crate) fn policies(options: &[ReferencesOption]) -> ReferencePolicies {
    let mut policies = ReferencePolicies::default();
    for option in options {
        match option {
            ReferencesOption::All(policy) => policies.default = *policy,
            ReferencesOption::Field(kind, field, policy) => {
                let field = (kind.clone(), field.clone(), *policy);
                policies.fields.insert(0, field);
            }
        }
    }
    policies
}

/// One `--references`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReferencesOption {
    /// Of all fields that no other one names.
    All(ReferencePolicy),
    /// Of a top-level spec field of a kind.
    Field(String, String, ReferencePolicy),
}

pub(crate) fn references(text: &str) -> Result<ReferencesOption, String> {
    let policy = |text: &str| match text {
        "reject" => Ok(ReferencePolicy::Reject),
        "defer" => Ok(ReferencePolicy::Defer),
        _ => Err("the policy is 'reject' or 'defer'".to_owned()),
    };
    let Some((name, value)) = text.split_once('=') else {
        return policy(text).map(ReferencesOption::All);
    };
    let policy = policy(value)?;
    let (kind, field) = name
        .split_once('.')
        .ok_or("a field is named as in 'NIC.publicIpRefs'")?;
    if !ReferencePolicies::FIELDS.contains(&(kind, field)) {
        let all = ReferencePolicies::FIELDS.map(|(kind, field)| format!("{kind}.{field}"));
        return Err(format!("only these have a policy: {}", all.join(", ")));
    }
    Ok(ReferencesOption::Field(kind.into(), field.into(), policy))
}

/// A name that both a Region and its location in the dummy cloud can have.
pub(crate) fn region(name: &str) -> Result<String, String> {
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

/// A profile, as a command-line value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProfileOption {
    /// 412 wherever the conformance suite wants it.
    Conformance,
    /// 404, 409 and 422 as the specification says.
    Spec,
}

impl From<ProfileOption> for Profile {
    fn from(option: ProfileOption) -> Self {
        match option {
            ProfileOption::Conformance => Self::Conformance,
            ProfileOption::Spec => Self::Spec,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn policies(args: &[&str]) -> Result<ReferencePolicies, clap::Error> {
        let line = std::iter::once("ecp").chain(args.iter().copied());
        Line::try_parse_from(line).map(|l| super::policies(&l.options.rest.references))
    }

    #[test]
    fn references_have_one_policy_or_one_per_field() {
        use ReferencePolicy::{Defer, Reject};
        let of = |args: &[&str]| {
            let policies = policies(args).expect("options");
            [("Image", "blockStorageRef"), ("NIC", "publicIpRefs")]
                .map(|(kind, field)| policies.of(kind, field))
        };
        let field = "Image.blockStorageRef=defer";
        assert_eq!(of(&[]), [Reject, Reject]);
        assert_eq!(of(&["--references", "defer"]), [Defer, Defer]);
        assert_eq!(of(&["--references", field]), [Defer, Reject]);
        let back = "Image.blockStorageRef=reject";
        let last = [
            "--references",
            field,
            "--references=defer",
            "--references",
            back,
        ];
        assert_eq!(of(&last), [Reject, Defer]);
    }

    #[test]
    fn a_policy_that_means_nothing_is_refused() {
        for wrong in [
            "",
            "never",
            "Image=defer",
            "Imag.blockStorageRef=defer",
            "Image.frob=defer",
            "BlockStorage.skuRef=defer",
        ] {
            assert!(policies(&["--references", wrong]).is_err(), "{wrong}");
        }
    }
}
