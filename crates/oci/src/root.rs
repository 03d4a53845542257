//! Package roots: folders of YAML files that `xpkg build` makes a package of.

use std::path::{Path, PathBuf};

use ecp_package::xpkg::Package;

use crate::Error;
use crate::limits::ROOT_FILE_BYTES_MAX;

/// Reads a package root: every YAML file but those that are ignored and those of the examples, in
/// the order of their paths (crossplane-runtime `pkg/xpkg/build.go`). The package is linted.
///
/// `ignore` are patterns relative to the root, as Go's `filepath.Match` takes them, with `*` and `?`.
///
/// # Errors
/// A file cannot be read, or together they are no package.
pub fn read(root: &Path, ignore: &[String], examples: Option<&Path>) -> Result<Package, Error> {
    let files = files(root, ignore, examples)?;
    let not_package = |why: String| Error::NotImage {
        path: root.into(),
        why,
    };
    if files.is_empty() {
        let why = "it has no YAML file: expected a crossplane.yaml, or the oci-layout of an image";
        return Err(not_package(why.into()));
    }
    let package = Package::parse(stream(&files)?.as_bytes())
        .map_err(|error| not_package(format!("{error}{}", places(&files))))?;
    package.lint()?;
    Ok(package)
}

/// Where documents are, for a message that counts them.
fn places(files: &[PathBuf]) -> String {
    let names: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    format!(" (documents counted through {})", names.join(", "))
}

/// The examples as one YAML stream, if there are any.
///
/// # Errors
/// A file cannot be read.
pub fn examples(folder: &Path, ignore: &[String]) -> Result<Option<String>, Error> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let files = files(folder, ignore, None)?;
    Ok(match files.is_empty() {
        true => None,
        false => Some(stream(&files)?),
    })
}

fn stream(files: &[PathBuf]) -> Result<String, Error> {
    let mut stream = String::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(Error::file(file))?;
        stream.push_str("---\n");
        stream.push_str(&text);
        if !text.ends_with('\n') {
            stream.push('\n');
        }
    }
    Ok(stream)
}

/// The YAML files that are not empty, sorted by path.
fn files(root: &Path, ignore: &[String], except: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let path = entry.map_err(Error::file(&folder))?.path();
            let metadata = path.symlink_metadata().map_err(Error::file(&path))?;
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            let ignored = ignore
                .iter()
                .any(|p| matches(p.as_bytes(), relative.as_bytes()));
            if metadata.is_dir() {
                if except != Some(&path) {
                    folders.push(path);
                }
            } else if !ignored && is_yaml(&path) && metadata.len() > 0 {
                if metadata.len() > ROOT_FILE_BYTES_MAX {
                    return Err(Error::TooLarge {
                        what: path.display().to_string(),
                        size: metadata.len(),
                        max: ROOT_FILE_BYTES_MAX,
                    });
                }
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ext| ext == "yaml" || ext == "yml")
}

/// Whether a path fits a pattern; `*` and `?` do not stand for a slash.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            let end = path.iter().position(|b| *b == b'/').unwrap_or(path.len());
            (0..=end).any(|at| matches(rest, &path[at..]))
        }
        (Some((b'?', rest)), Some((c, path))) => *c != b'/' && matches(rest, path),
        (Some((p, rest)), Some((c, path))) => p == c && matches(rest, path),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str =
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c}\n";
    const XRD: &str = "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\nmetadata: {name: NAME}\n";

    #[test]
    fn a_root_is_read_in_order_without_examples_and_what_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("crossplane.yaml", META);
        put("xrds/b.yaml", &XRD.replace("NAME", "b"));
        put("xrds/a.yml", &XRD.replace("NAME", "a"));
        put("examples/x.yaml", "kind: X");
        put("README.md", "no YAML");
        put("empty.yaml", "");
        put("dev/skipped.yaml", "kind: ConfigMap");
        let examples = dir.path().join("examples");
        let ignore = ["dev/*.yaml".to_owned()];
        let package = read(dir.path(), &ignore, Some(&examples)).unwrap();
        let names: Vec<_> = package
            .objects
            .iter()
            .map(|o| o["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            super::examples(&examples, &[]).unwrap().unwrap(),
            "---\nkind: X\n"
        );
        assert!(
            super::examples(&dir.path().join("none"), &[])
                .unwrap()
                .is_none()
        );
        let error = read(dir.path(), &[], Some(&examples))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("document 2") && error.contains("skipped.yaml"),
            "{error}"
        );
        let empty = tempfile::tempdir().unwrap();
        let error = read(empty.path(), &[], None).unwrap_err().to_string();
        assert!(error.contains("expected a crossplane.yaml"), "{error}");
    }

    #[test]
    fn patterns_are_those_of_go() {
        for (pattern, path, fits) in [
            ("a.yaml", "a.yaml", true),
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "b/a.yaml", false),
            ("b/*", "b/a.yaml", true),
            ("?.yaml", "a.yaml", true),
            ("?.yaml", "ab.yaml", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), path.as_bytes()),
                fits,
                "{pattern} {path}"
            );
        }
    }
}
