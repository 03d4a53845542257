//! Where packages come from.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use ecp_oci::{Client, Platform, Source};
use ecp_package::xpkg::Package;
use parking_lot::Mutex;

use crate::names::is_file;

/// When a package is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// Once per source.
    IfNotPresent,
    /// Whenever it is looked at.
    Always,
    /// Never: it must be there.
    Never,
}

/// A package that was read.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Digest of the image, as `sha256:<hex>`.
    pub digest: String,
    /// The image that the source stands for.
    pub resolved: String,
    /// What it holds.
    pub package: Package,
}

/// Reads packages.
#[async_trait]
pub trait Packages: Send + Sync + std::fmt::Debug + 'static {
    /// Reads and checks what a source stands for.
    ///
    /// # Errors
    /// It cannot be reached, or is no package: in words.
    async fn get(&self, source: &str, policy: PullPolicy) -> Result<Arc<Contents>, String>;

    /// The tags of an image.
    ///
    /// # Errors
    /// The registry cannot be reached, in words.
    async fn tags(&self, repository: &str) -> Result<Vec<String>, String>;
}

/// Packages in registries and, where it is allowed, in files and directories.
///
/// What was read is kept in memory, by source.
#[derive(Debug)]
pub struct Images {
    client: Client,
    files: bool,
    known: Mutex<HashMap<String, Arc<Contents>>>,
}

impl Images {
    /// Reads with a client. `files` says whether a source may be a file or directory: only where
    /// this process runs beside those who name them.
    pub fn new(client: Client, files: bool) -> Self {
        Self {
            client,
            files,
            known: Mutex::default(),
        }
    }
}

#[async_trait]
impl Packages for Images {
    async fn get(&self, source: &str, policy: PullPolicy) -> Result<Arc<Contents>, String> {
        let known = self.known.lock().get(source).cloned();
        match (known, policy) {
            (Some(known), PullPolicy::IfNotPresent | PullPolicy::Never) => return Ok(known),
            (None, PullPolicy::Never) => {
                return Err(format!(
                    "{source} was not pulled yet, and packagePullPolicy is Never"
                ));
            }
            _ => {}
        }
        if is_file(source) && !self.files {
            return Err(format!(
                "{source}: files can only be installed on the control plane of `ecp up`, which runs \
                 beside them; push the package to a registry"
            ));
        }
        let parsed = Source::parse(source).map_err(|e| chain(&e))?;
        let platform = Platform::package_manager();
        let fetched = self.client.fetch(&parsed, &platform, &()).await;
        let fetched = fetched.map_err(|e| chain(&e))?;
        fetched.package.lint().map_err(|e| chain(&e))?;
        let contents = Arc::new(Contents {
            digest: fetched.digest.to_string(),
            resolved: source.to_owned(),
            package: fetched.package,
        });
        self.known
            .lock()
            .insert(source.to_owned(), Arc::clone(&contents));
        Ok(contents)
    }

    async fn tags(&self, repository: &str) -> Result<Vec<String>, String> {
        let reference = ecp_oci::reference(repository).map_err(|e| chain(&e))?;
        self.client.tags(&reference).await.map_err(|e| chain(&e))
    }
}

/// An error and its causes, each said once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_read_only_where_they_may_be() {
        let dir = tempfile::tempdir().expect("a directory");
        let meta = r#"{"apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
            "metadata": {"name": "disks"}}"#;
        std::fs::write(dir.path().join("crossplane.yaml"), meta).expect("written");
        let source = format!("file://{}", dir.path().display());
        let images = |files| Images::new(Client::new(ecp_oci::Options::default()), files);
        let read = images(true).get(&source, PullPolicy::IfNotPresent).await;
        let read = read.expect("a package");
        assert_eq!(read.package.meta.name, "disks");
        assert!(read.digest.starts_with("sha256:"), "{}", read.digest);
        let refused = images(false).get(&source, PullPolicy::Always).await;
        assert!(refused.expect_err("refused").contains("ecp up"));
        let never = images(true).get(&source, PullPolicy::Never).await;
        assert!(never.expect_err("not there").contains("was not pulled yet"));
        std::fs::remove_file(dir.path().join("crossplane.yaml")).expect("removed");
        let none = images(true).get(&source, PullPolicy::Always).await;
        assert!(none.expect_err("no package").contains("crossplane.yaml"));
    }
}
