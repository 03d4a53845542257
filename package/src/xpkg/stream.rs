//! `package.yaml`: a YAML stream of one meta document and objects (crossplane-runtime
//! `pkg/xpkg/parser`).

use std::collections::BTreeSet;

use ecp_meta::object;
use serde_json::Value;

use super::{Error, Meta, kinds, meta};
use crate::limits::{DOCUMENTS_MAX, PACKAGE_YAML_BYTES_MAX};

/// What a package holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// What it says of itself.
    pub meta: Meta,
    /// Its objects, in its order.
    pub objects: Vec<Value>,
}

impl Package {
    /// Reads a `package.yaml`.
    ///
    /// # Errors
    /// It is no YAML stream with exactly one meta document and otherwise kinds that packages hold.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let too_large = |max, unit| Error::TooLarge {
            what: "package.yaml",
            max,
            unit,
        };
        if bytes.len() as u64 > PACKAGE_YAML_BYTES_MAX {
            return Err(too_large(PACKAGE_YAML_BYTES_MAX, "bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| Error::Text {
            at: error.valid_up_to(),
        })?;
        let mut metas = Vec::new();
        let mut objects = Vec::new();
        for (number, document) in (1..).zip(documents(text)) {
            if number > DOCUMENTS_MAX {
                return Err(too_large(DOCUMENTS_MAX as u64, "documents"));
            }
            let object = read(number, document)?;
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            let kind = object["kind"].as_str().unwrap_or_default();
            if api_version.split('/').next() == Some(meta::GROUP) {
                metas.push(Meta::read(number, object)?);
            } else if kinds::is_known(api_version, kind) {
                objects.push(object);
            } else {
                return Err(Error::UnknownKind {
                    document: number,
                    api_version: api_version.into(),
                    kind: kind.into(),
                    expected: kinds::EXPECTED,
                });
            }
        }
        let name = |meta: &Meta| format!("{} {:?}", meta.kind.as_str(), meta.name);
        let names: Vec<_> = metas.iter().map(name).collect();
        match (names.len(), metas.pop()) {
            (1, Some(meta)) => Ok(Self { meta, objects }),
            (found, _) => Err(Error::Metas {
                found,
                names: names.join(" and "),
            }),
        }
    }

    /// Checks what upstream's linter checks: ranges of versions, and that the objects fit the kind
    /// of package; and that no object is there twice, which an installation would stumble over.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn lint(&self) -> Result<(), Error> {
        self.meta.lint()?;
        let mut seen = BTreeSet::new();
        for of in &self.objects {
            let api_version = of["apiVersion"].as_str().unwrap_or_default();
            let kind = of["kind"].as_str().unwrap_or_default();
            let name = object::name(of);
            if !self.meta.kind.may_hold(kind) {
                return Err(Error::WrongKind {
                    kind: self.meta.kind.as_str(),
                    object_kind: kind.into(),
                    api_version: api_version.into(),
                    object: name.into(),
                    expected: self.meta.kind.expected(),
                });
            }
            if !seen.insert((kind, name)) {
                return Err(Error::Twice {
                    object_kind: kind.into(),
                    object: name.into(),
                });
            }
        }
        Ok(())
    }

    /// The stream as it is shipped: the meta document first, then the objects, keys sorted.
    ///
    /// # Errors
    /// Something cannot be written as YAML.
    pub fn to_yaml(&self) -> Result<String, Error> {
        let mut text = String::new();
        for document in std::iter::once(&self.meta.document).chain(&self.objects) {
            text.push_str("---\n");
            text.push_str(
                &serde_saphyr::to_string(document).map_err(|e| Error::Write(e.to_string()))?,
            );
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        Ok(text)
    }
}

fn read(number: usize, document: &str) -> Result<Value, Error> {
    let wrong = |why: String| Error::Document {
        document: number,
        why,
    };
    let value: Value =
        serde_saphyr::from_str(document).map_err(|error| wrong(error.to_string()))?;
    for field in ["apiVersion", "kind"] {
        if value[field].as_str().is_none_or(str::is_empty) {
            return Err(wrong(format!("{field}: expected text")));
        }
    }
    Ok(value)
}

/// The documents that are not empty. A line that begins with three dashes separates them.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let end = separator(all);
        rest = end.map(|at| &all[at + SEPARATOR.len()..]);
        Some(&all[..end.unwrap_or(all.len())])
    })
    .filter(|document| {
        let mut lines = document.lines().map(str::trim);
        lines.any(|line| !line.is_empty() && line != "..." && !line.starts_with('#'))
    })
}

const SEPARATOR: &str = "---";

/// Where the next separator begins.
fn separator(text: &str) -> Option<usize> {
    text.match_indices(SEPARATOR).map(|(at, _)| at).find(|at| {
        let begins_line = *at == 0 || text.as_bytes()[at - 1] == b'\n';
        let after = text.as_bytes().get(at + SEPARATOR.len());
        begins_line && after.is_none_or(u8::is_ascii_whitespace)
    })
}
