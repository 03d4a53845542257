//! The Lock: which packages are installed, and whether what they depend on is (upstream
//! `internal/dag` and `internal/controller/pkg/revision/dependency.go`).
//!
//! One difference: a package that cannot be resolved concerns itself and those that depend on it,
//! and nobody else (crossplane#3423). Upstream then resolves nothing any more.

use std::collections::BTreeSet;

use ecp_package::xpkg::{Constraint, Dependency, is_digest, release, version};
use serde_json::{Value, json};

use crate::limits::MISSING_NAMED;
use crate::names::{dependency_name, is_file};

/// An active revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockPackage {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Name of the revision.
    pub(crate) name: String,
    /// Its image, without tag and digest; or its `file://` URL.
    pub(crate) source: String,
    /// Tag or digest.
    pub(crate) version: String,
    pub(crate) dependencies: Vec<Dependency>,
}

fn text(object: &Value, field: &str) -> String {
    let text = object.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Kind and version of a package; old entries only have its `type`.
fn kind_of(object: &Value) -> (String, String) {
    match object.get("kind").and_then(Value::as_str) {
        Some(kind) => (text(object, "apiVersion"), kind.to_owned()),
        None => ("pkg.crossplane.io/v1".to_owned(), text(object, "type")),
    }
}

/// The packages of a Lock.
pub(crate) fn packages(lock: &Value) -> Vec<LockPackage> {
    let items = |of: &Value, field: &str| {
        let items = of.get(field).and_then(Value::as_array);
        items.cloned().unwrap_or_default()
    };
    let dependency = |d: &Value| {
        let (api_version, kind) = kind_of(d);
        Dependency {
            api_version,
            kind,
            package: text(d, "package"),
            constraints: text(d, "constraints"),
        }
    };
    let package = |p: &Value| {
        let (api_version, kind) = kind_of(p);
        LockPackage {
            api_version,
            kind,
            name: text(p, "name"),
            source: text(p, "source"),
            version: text(p, "version"),
            dependencies: items(p, "dependencies").iter().map(dependency).collect(),
        }
    };
    items(lock, "packages").iter().map(package).collect()
}

/// The packages as a Lock has them.
pub(crate) fn to_json(packages: &[LockPackage]) -> Value {
    let dependency = |d: &Dependency| {
        json!({"apiVersion": d.api_version, "kind": d.kind, "package": d.package,
            "constraints": d.constraints})
    };
    let package = |p: &LockPackage| {
        let dependencies: Vec<Value> = p.dependencies.iter().map(dependency).collect();
        json!({"apiVersion": p.api_version, "kind": p.kind, "name": p.name, "source": p.source,
            "version": p.version, "dependencies": dependencies})
    };
    packages.iter().map(package).collect()
}

impl LockPackage {
    /// Whether this is what a dependency asks for.
    ///
    /// A file has no repository: it stands for what would have its name if it were pulled.
    fn is(&self, dependency: &Dependency) -> bool {
        if is_file(&self.source) {
            let wanted = dependency_name(&dependency.package);
            return self.kind == dependency.kind
                && self.name.rsplit_once('-').is_some_and(|(package, _)| {
                    package == wanted.chars().take(50).collect::<String>()
                });
        }
        self.source == dependency.package
    }

    /// Why this is not the version that a dependency asks for.
    fn mismatch(&self, dependency: &Dependency) -> Option<String> {
        if is_file(&self.source) {
            return None;
        }
        let constraints = dependency.constraints.trim();
        let existing = format!("existing package {}@{}", self.source, self.version);
        if is_digest(constraints) {
            return (self.version != constraints)
                .then(|| format!("{existing} is incompatible with constraint {constraints}"));
        }
        let range = match Constraint::parse(constraints) {
            Ok(range) => range,
            Err(why) => return Some(format!("{}: {why}", dependency.package)),
        };
        match version(&self.version) {
            Ok(version) if range.has(&version) => None,
            Ok(_) if constraints.is_empty() => Some(existing),
            Ok(_) => Some(format!(
                "{existing} is incompatible with constraint {constraints}"
            )),
            Err(why) => Some(format!(
                "{existing} cannot be compared with constraint {constraints}: {why}"
            )),
        }
    }
}

/// What came of resolving one package's dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// Dependencies, direct and transitive.
    pub(crate) found: usize,
    /// Those of them that are installed.
    pub(crate) installed: usize,
    /// Direct ones whose version is not the one asked for.
    pub(crate) invalid: usize,
    /// What is wrong.
    pub(crate) error: Option<String>,
}

/// The first package that a dependency asks for.
fn find<'a>(packages: &'a [LockPackage], dependency: &Dependency) -> Option<&'a LockPackage> {
    packages.iter().find(|p| p.is(dependency))
}

/// Resolves the dependencies of one of the packages.
pub(crate) fn resolve(packages: &[LockPackage], own: &LockPackage) -> Resolution {
    let mut resolution = Resolution::default();
    let same = |p: &&LockPackage| p.source == own.source && p.kind == own.kind;
    if let Some(first) = packages.iter().find(same)
        && first.name != own.name
    {
        resolution.error = Some(format!(
            "package {} is already installed, as revision {}",
            own.source, first.name
        ));
        return resolution;
    }
    let (found, missing) = tree(packages, own);
    resolution.found = found;
    resolution.installed = found - missing.len();
    if !missing.is_empty() {
        let named = missing.iter().map(|d| match d.constraints.as_str() {
            "" => format!("{:?}", d.package),
            constraints => format!("{:?} ({constraints})", d.package),
        });
        let named = some_and_more(named.collect(), MISSING_NAMED);
        resolution.error = Some(format!("missing dependencies: {named}"));
        return resolution;
    }
    if let Some(cycle) = cycle(packages, own) {
        resolution.error = Some(format!("detected cycle on: {}", cycle.join(" -> ")));
        return resolution;
    }
    let wrong: Vec<String> = own
        .dependencies
        .iter()
        .filter_map(|d| find(packages, d)?.mismatch(d))
        .collect();
    resolution.invalid = wrong.len();
    if !wrong.is_empty() {
        resolution.error = Some(format!("incompatible dependencies: {}", wrong.join("; ")));
    }
    resolution
}

/// How many packages one depends on, directly or not, and which of them are missing.
fn tree<'a>(packages: &'a [LockPackage], own: &'a LockPackage) -> (usize, Vec<&'a Dependency>) {
    let mut seen = BTreeSet::new();
    let mut missing = Vec::new();
    let mut rest: Vec<&Dependency> = own.dependencies.iter().collect();
    while let Some(dependency) = rest.pop() {
        if !seen.insert(dependency.package.as_str()) {
            continue;
        }
        match find(packages, dependency) {
            Some(package) => rest.extend(&package.dependencies),
            None => missing.push(dependency),
        }
    }
    (seen.len(), missing)
}

/// A way from a package back to itself, by sources.
fn cycle(packages: &[LockPackage], own: &LockPackage) -> Option<Vec<String>> {
    fn walk<'a>(
        packages: &'a [LockPackage],
        at: &'a LockPackage,
        end: &str,
        path: &mut Vec<String>,
        seen: &mut BTreeSet<&'a str>,
    ) -> bool {
        path.push(at.source.clone());
        for next in at.dependencies.iter().filter_map(|d| find(packages, d)) {
            if next.name == end {
                path.push(next.source.clone());
                return true;
            }
            if seen.insert(&next.name) && walk(packages, next, end, path, seen) {
                return true;
            }
        }
        path.pop();
        false
    }
    let mut path = Vec::new();
    walk(packages, own, &own.name, &mut path, &mut BTreeSet::new()).then_some(path)
}

/// Each dependency that no package is, once; with the constraints of all that ask for it. What
/// packages in a cycle ask for is left out: nothing more is installed for them.
pub(crate) fn missing(packages: &[LockPackage]) -> Vec<(&Dependency, Vec<&str>)> {
    let mut all: Vec<(&Dependency, Vec<&str>)> = Vec::new();
    for package in packages.iter().filter(|p| cycle(packages, p).is_none()) {
        for dependency in &package.dependencies {
            if find(packages, dependency).is_some() {
                continue;
            }
            match all
                .iter_mut()
                .find(|(d, _)| d.package == dependency.package)
            {
                Some((_, constraints)) => constraints.push(&dependency.constraints),
                None => all.push((dependency, vec![&dependency.constraints])),
            }
        }
    }
    all
}

/// The packages that depend on themselves, each way once.
pub(crate) fn cycles(packages: &[LockPackage]) -> Vec<String> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut all = Vec::new();
    for package in packages {
        if seen.contains(&package.source) {
            continue;
        }
        if let Some(path) = cycle(packages, package) {
            all.push(path.join(" -> "));
            seen.extend(path);
        }
    }
    all
}

/// The newest of these tags that is in every range.
///
/// # Errors
/// The constraints contradict each other or mean nothing, or no tag will do.
pub(crate) fn choose(
    package: &str,
    constraints: &[&str],
    tags: &[String],
) -> Result<String, String> {
    let mut ranges = Vec::new();
    for text in constraints {
        let range = Constraint::parse(text);
        ranges.push(
            range.map_err(|why| format!("version constraint on dependency is invalid: {why}"))?,
        );
    }
    let newest = tags
        .iter()
        .filter_map(|tag| Some((release(tag)?, tag)))
        .filter(|(version, _)| ranges.iter().all(|range| range.has(version)))
        .max_by(|(a, _), (b, _)| a.cmp_precedence(b));
    newest.map(|(_, tag)| tag.clone()).ok_or_else(|| {
        format!(
            "dependency ({package}) does not have a valid version that satisfies all constraints: \
             {}; of {} tags",
            constraints.join(", "),
            tags.len()
        )
    })
}

/// The digest that all constraints name, if they name one.
///
/// # Errors
/// They name several, or a digest and a range.
pub(crate) fn digest<'a>(constraints: &[&'a str]) -> Result<Option<&'a str>, String> {
    let digests: BTreeSet<&str> = constraints
        .iter()
        .map(|text| text.trim())
        .filter(|text| is_digest(text))
        .collect();
    let all = || constraints.join(", ");
    match digests.len() {
        0 => Ok(None),
        1 if constraints.iter().all(|c| is_digest(c)) => Ok(digests.first().copied()),
        1 => Err(format!(
            "a dependency package has different types of parent constraints ({})",
            all()
        )),
        _ => Err(format!(
            "a dependency package has different digests in parent constraints ({})",
            all()
        )),
    }
}

fn some_and_more(mut names: Vec<String>, max: usize) -> String {
    names.sort();
    let more = names.len().saturating_sub(max);
    names.truncate(max);
    let named = names.join(", ");
    match more {
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, dependencies: &[(&str, &str)]) -> LockPackage {
        let dependency = |(package, constraints): &(&str, &str)| Dependency {
            api_version: "pkg.crossplane.io/v1".into(),
            kind: "Function".into(),
            package: format!("r.io/o/{package}"),
            constraints: (*constraints).to_owned(),
        };
        LockPackage {
            api_version: "pkg.crossplane.io/v1".into(),
            kind: "Function".into(),
            name: format!("o-{name}-0123"),
            source: format!("r.io/o/{name}"),
            version: version.into(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    fn error(packages: &[LockPackage], own: usize) -> String {
        resolve(packages, &packages[own]).error.unwrap_or_default()
    }

    #[test]
    fn a_lock_is_read_as_it_is_written() {
        let lock = [
            package("a", "v1.0.0", &[("b", ">=v1")]),
            package("b", "v1.0.0", &[]),
        ];
        assert_eq!(packages(&json!({"packages": to_json(&lock)})), lock);
        let old = json!({"packages": [{"type": "Provider", "name": "p", "source": "r.io/p",
            "version": "v1", "dependencies": []}]});
        assert_eq!(packages(&old)[0].kind, "Provider");
    }

    #[test]
    fn dependencies_are_found_counted_and_compared() {
        let all = [
            package("a", "v1.0.0", &[("b", ">=v1.0.0"), ("c", "^2.0.0")]),
            package("b", "v1.2.0", &[("d", ">=v1.0.0")]),
            package("c", "v3.0.0", &[]),
        ];
        let a = resolve(&all, &all[0]);
        assert_eq!((a.found, a.installed), (3, 2));
        assert_eq!(
            a.error.as_deref(),
            Some(r#"missing dependencies: "r.io/o/d" (>=v1.0.0)"#)
        );
        let mut all = all.to_vec();
        all.push(package("d", "v1.0.0", &[]));
        let a = resolve(&all, &all[0]);
        assert_eq!((a.found, a.installed, a.invalid), (3, 3, 1));
        assert_eq!(
            a.error.as_deref(),
            Some(
                "incompatible dependencies: existing package r.io/o/c@v3.0.0 is incompatible with \
                 constraint ^2.0.0"
            )
        );
        assert_eq!(error(&all, 1), "");
    }

    #[test]
    fn a_digest_is_compared_as_it_is() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let other = format!("sha256:{}", "b".repeat(64));
        let all = [
            package("a", "v1", &[("b", &digest)]),
            package("b", &digest, &[]),
        ];
        assert_eq!(error(&all, 0), "");
        let all = [
            package("a", "v1", &[("b", &other)]),
            package("b", &digest, &[]),
        ];
        assert!(error(&all, 0).contains("incompatible with constraint sha256:bbb"));
        let all = [
            package("a", "v1", &[("b", ">=v1")]),
            package("b", &digest, &[]),
        ];
        assert!(error(&all, 0).contains("is not a semantic version"));
    }

    #[test]
    fn one_that_cannot_be_resolved_does_not_hold_up_others() {
        let all = [
            package("a", "v1.0.0", &[("b", "")]),
            package("b", "v1.0.0", &[("a", "")]),
            package("c", "v1.0.0", &[("d", "latest"), ("e", ">=v1.0.0")]),
            package("f", "v1.0.0", &[("e", "<v2.0.0")]),
            LockPackage {
                name: "again-0123".into(),
                ..package("f", "v1.0.0", &[])
            },
        ];
        assert_eq!(
            error(&all, 0),
            "detected cycle on: r.io/o/a -> r.io/o/b -> r.io/o/a"
        );
        assert_eq!(cycles(&all), ["r.io/o/a -> r.io/o/b -> r.io/o/a"]);
        assert_eq!(
            error(&all, 4),
            "package r.io/o/f is already installed, as revision o-f-0123"
        );
        let missing = missing(&all);
        let names: Vec<_> = missing
            .iter()
            .map(|(d, c)| (&*d.package, c.clone()))
            .collect();
        assert_eq!(
            names,
            [
                ("r.io/o/d", vec!["latest"]),
                ("r.io/o/e", vec![">=v1.0.0", "<v2.0.0"])
            ]
        );
    }

    #[test]
    fn the_newest_tag_that_all_accept_is_chosen() {
        let tags = [
            "v1.0.0",
            "v1.9.0",
            "v2.0.0",
            "v1",
            "latest",
            "v1.10.0-rc.1",
            "v1.10.0",
        ];
        let tags = tags.map(str::to_owned);
        assert_eq!(
            choose("p", &[">=v1.0.0", "<v2.0.0"], &tags),
            Ok("v1.10.0".into())
        );
        assert_eq!(choose("p", &[""], &tags), Ok("v2.0.0".into()));
        let why = choose("p", &[">=v3", "<v2"], &tags).expect_err("none");
        assert!(why.contains(">=v3, <v2"), "{why}");
        assert!(
            choose("p", &["latest"], &tags)
                .expect_err("no range")
                .contains("invalid")
        );
    }

    #[test]
    fn digests_that_differ_are_told() {
        let [a, b] = ["a", "b"].map(|c| format!("sha256:{}", c.repeat(64)));
        assert_eq!(digest(&[&a, &a]), Ok(Some(&*a)));
        assert_eq!(digest(&[">=v1"]), Ok(None));
        assert!(
            digest(&[&a, &b])
                .expect_err("two")
                .contains("different digests")
        );
        assert!(
            digest(&[&a, ">=v1"])
                .expect_err("both")
                .contains("different types")
        );
    }

    #[test]
    fn a_file_stands_for_what_would_have_its_name() {
        let file = LockPackage {
            source: "file:///tmp/b.xpkg".into(),
            version: String::new(),
            ..package("b", "", &[])
        };
        let all = [package("a", "v1.0.0", &[("b", ">=v9")]), file];
        assert_eq!(error(&all, 0), "");
    }
}
