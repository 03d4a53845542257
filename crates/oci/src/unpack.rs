//! Unpacks the runtime of a package, to be run as a process on this machine.

use std::path::{Component, Path, PathBuf};

use ecp_package::xpkg::decompress;
use serde_json::Value;
use tar::{Archive, EntryType};

use crate::limits::{LAYER_BLOB_BYTES_MAX, LINKS_MAX, RUNTIME_BYTES_MAX, RUNTIME_ENTRIES_MAX};
use crate::{Error, Image, Platform};

/// What to run of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// The program, on this machine.
    pub entrypoint: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, as far as the image sets it.
    pub env: Vec<(String, String)>,
    /// Where it starts, on this machine.
    pub workdir: PathBuf,
}

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

fn refused(why: impl Into<String>) -> Error {
    Error::Runtime(why.into())
}

impl Image {
    /// Unpacks the image for this machine's platform into a folder, which is made if it is not
    /// there, and says what to run.
    ///
    /// Nothing is written outside of the folder, whatever the layers say. Devices and sockets are
    /// left out, owners and set-id bits too.
    ///
    /// # Errors
    /// There is no image for this platform, a layer cannot be read or wants to leave the folder, or
    /// the image runs nothing.
    pub async fn unpack_runtime(&self, folder: &Path) -> Result<Runtime, Error> {
        let image = self.for_platform(&Platform::host()).await?;
        let (host, own) = (Platform::host(), image.platform());
        if own != host {
            return Err(refused(format!(
                "it is for {own}, and this machine is {host}"
            )));
        }
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let mut budget = Budget {
            bytes: RUNTIME_BYTES_MAX,
            entries: RUNTIME_ENTRIES_MAX,
        };
        for layer in &image.manifest.layers {
            if Self::role(layer).is_some() {
                continue;
            }
            let blob = image.layer(layer, LAYER_BLOB_BYTES_MAX, &()).await?;
            unpack(decompress(blob)?, folder, &mut budget)?;
        }
        runtime(&image.config["config"], folder)
    }
}

struct Budget {
    bytes: u64,
    entries: usize,
}

fn unpack(layer: impl std::io::Read, folder: &Path, budget: &mut Budget) -> Result<(), Error> {
    let mut archive = Archive::new(layer);
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    for entry in archive.entries().map_err(Error::file(folder))? {
        let mut entry = entry.map_err(Error::file(folder))?;
        let path = entry.path().map_err(Error::file(folder))?.into_owned();
        let leaves = |part| !matches!(part, Component::Normal(_) | Component::CurDir);
        if path.components().any(leaves) {
            return Err(refused(format!(
                "a layer has {path:?}, which leaves the layer"
            )));
        }
        budget.bytes = budget
            .bytes
            .checked_sub(entry.size())
            .ok_or_else(|| refused(format!("it unpacks to more than {RUNTIME_BYTES_MAX} bytes")))?;
        budget.entries = budget
            .entries
            .checked_sub(1)
            .ok_or_else(|| refused(format!("it has more than {RUNTIME_ENTRIES_MAX} files")))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            let parent = resolve(folder, path.parent().unwrap_or(Path::new("")))?;
            match name == OPAQUE {
                true => clear(&parent)?,
                false => remove(&parent.join(hidden))?,
            }
            continue;
        }
        match entry.header().entry_type() {
            EntryType::Regular
            | EntryType::Continuous
            | EntryType::GNUSparse
            | EntryType::Directory
            | EntryType::Symlink
            | EntryType::Link => {
                // It refuses to follow links out of the folder.
                entry
                    .unpack_in(folder)
                    .map_err(Error::file(folder.join(&path)))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn clear(folder: &Path) -> Result<(), Error> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).map_err(Error::file(folder))? {
        remove(&entry.map_err(Error::file(folder))?.path())?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Error> {
    let Ok(metadata) = path.symlink_metadata() else {
        return Ok(());
    };
    let removed = match metadata.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    removed.map_err(Error::file(path))
}

/// Where a path of the image is on this machine: links are followed inside of the folder.
fn resolve(folder: &Path, path: &Path) -> Result<PathBuf, Error> {
    let mut left: Vec<_> = parts(path);
    let mut found = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop() {
        match part.as_str() {
            ".." => {
                found.pop();
            }
            part => found.push(part),
        }
        let here = folder.join(&found);
        if here.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(refused(format!("{path:?} leads through too many links")));
            }
            let target = std::fs::read_link(&here).map_err(Error::file(&here))?;
            found.pop();
            if target.is_absolute() {
                found.clear();
            }
            left.extend(parts(&target));
        }
    }
    Ok(folder.join(found))
}

/// The parts of a path, last first.
fn parts(path: &Path) -> Vec<String> {
    let part = |part| match part {
        Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        Component::ParentDir => Some("..".to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}

/// What the configuration says is to be run.
fn runtime(config: &Value, folder: &Path) -> Result<Runtime, Error> {
    let texts = |field: &str| -> Vec<String> {
        let all = config[field].as_array().into_iter().flatten();
        all.filter_map(|text| text.as_str().map(str::to_owned))
            .collect()
    };
    let mut command = texts("Entrypoint").into_iter().chain(texts("Cmd"));
    let program = command
        .next()
        .ok_or_else(|| refused("the image has no entrypoint, so it runs nothing"))?;
    let env: Vec<(String, String)> = texts("Env")
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let workdir = resolve(
        folder,
        Path::new(config["WorkingDir"].as_str().unwrap_or("/")),
    )?;
    std::fs::create_dir_all(&workdir).map_err(Error::file(&workdir))?;
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("/usr/local/bin:/usr/bin:/bin", |(_, value)| value);
    let candidates: Vec<PathBuf> = match program.contains('/') {
        true if program.starts_with('/') => vec![program.clone().into()],
        true => vec![Path::new(config["WorkingDir"].as_str().unwrap_or("/")).join(&program)],
        false => path
            .split(':')
            .map(|dir| Path::new(dir).join(&program))
            .collect(),
    };
    for candidate in candidates {
        let entrypoint = resolve(folder, &candidate)?;
        if entrypoint.is_file() {
            return Ok(Runtime {
                entrypoint,
                args: command.collect(),
                env,
                workdir,
            });
        }
    }
    Err(refused(format!(
        "its entrypoint {program:?} is not in the image"
    )))
}
