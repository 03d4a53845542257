//! Builds the servers once for each version of their sources.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

/// The Go module.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/servers");
const FILES: [&str; 3] = ["go.mod", "go.sum", "main.go"];

/// Directory that outlives a clone: `ECP_TEST_CACHE`, or one in the user's cache directory.
fn cache() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("ECP_TEST_CACHE") {
        return Ok(dir.into());
    }
    let user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let user = user.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    Ok(user
        .context("no directory for caches: set ECP_TEST_CACHE or HOME")?
        .join("ecp-upstream"))
}

/// The binary of the servers; `None` on a machine without Go, which is told.
///
/// The first call builds it, which takes minutes; others wait.
///
/// # Errors
/// The build fails, or the cache directory cannot be written.
pub fn servers() -> anyhow::Result<Option<PathBuf>> {
    let mut hash = Sha256::new();
    for file in FILES {
        let path = Path::new(SOURCES).join(file);
        hash.update(std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    let name = hex::encode(hash.finalize());
    let dir = cache()?.join(name.get(..16).unwrap_or(&name));
    let binary = dir.join("servers");
    if binary.exists() {
        return Ok(Some(binary));
    }
    if Command::new("go")
        .arg("version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        eprintln!("skipped: no go in PATH, so nothing was run against a real Kubernetes API");
        return Ok(None);
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let lock = std::fs::File::create(dir.join("lock")).context("opening the lock of the build")?;
    lock.lock().context("waiting for another build")?;
    if !binary.exists() {
        let built = dir.join("servers.new");
        let status = Command::new("go")
            .args(["build", "-mod=readonly", "-o"])
            .arg(&built)
            .arg(".")
            .current_dir(SOURCES)
            .status()
            .context("running go build")?;
        ensure!(status.success(), "go build in {SOURCES}: {status}");
        std::fs::rename(&built, &binary).context("keeping what was built")?;
    }
    Ok(Some(binary))
}
