//! `ecp xpkg inspect`.

use std::collections::BTreeMap;

use ecp_meta::object;
use ecp_oci::{Fetched, Image, Platform, Source};
use ecp_package::xpkg::needs_crossplane_2;
use serde_json::{Value, json};

use super::RegistryOptions;
use super::progress::Bars;
use crate::output;

/// Options of `ecp xpkg inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Registry, repository and tag or digest; or a file, an image layout or a package root.
    #[arg(value_name = "PACKAGE")]
    package: String,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// The image to take from an index.
    #[arg(long, value_name = "OS/ARCH", default_value_t = Platform::package_manager())]
    platform: Platform,
    #[command(flatten)]
    registry: RegistryOptions,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Explains a package.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let source = Source::parse(&options.package)?;
    let client = options.registry.client();
    let fetched = client
        .fetch(&source, &options.platform, &Bars::default())
        .await?;
    let report = report(&fetched);
    match options.output {
        Format::Json => output::data(&serde_json::to_string_pretty(&report)?),
        Format::Text => output::data(text(&report).trim_end()),
    }
}

/// Everything that is known, as JSON.
fn report(fetched: &Fetched) -> Value {
    let Fetched {
        digest,
        package,
        image,
    } = fetched;
    let meta = &package.meta;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut definitions = Vec::new();
    let mut only_2 = Vec::new();
    for of in &package.objects {
        let api_version = of["apiVersion"].as_str().unwrap_or_default();
        let kind = of["kind"].as_str().unwrap_or_default();
        *kinds.entry(format!("{kind} {api_version}")).or_default() += 1;
        if needs_crossplane_2(api_version, kind) {
            only_2.push(format!("{kind} {api_version}"));
        }
        if let Some(versions) = of["spec"]["versions"].as_array() {
            let names: Vec<_> = versions.iter().map(|version| &version["name"]).collect();
            definitions.push(json!({
                "kind": kind,
                "name": object::name(of),
                "defines": of["spec"]["names"]["kind"],
                "scope": scope(of),
                "versions": names,
            }));
        }
    }
    only_2.sort();
    only_2.dedup();
    let dependencies: Vec<_> = meta
        .depends_on
        .iter()
        .map(|of| json!({"kind": of.kind, "package": of.package, "version": of.constraints}))
        .collect();
    let layers: Vec<_> = image
        .manifest
        .layers
        .iter()
        .map(|layer| {
            json!({"digest": layer.digest, "size": layer.size, "holds": Image::role(layer)})
        })
        .collect();
    let platforms: Vec<_> = image
        .platforms()
        .into_iter()
        .map(|(platform, digest)| json!({"platform": platform.to_string(), "digest": digest}))
        .collect();
    let config = &image.config["config"];
    let lint = package.lint().err().map(|error| error.to_string());
    json!({
        "digest": digest.as_str(),
        "kind": meta.kind.as_str(),
        "name": meta.name,
        "annotations": meta.annotations,
        "crossplane": {
            "declared": meta.crossplane,
            "takes": match only_2.is_empty() {
                true => "1.20 and 2, as far as it holds only what both know",
                false => "2 only",
            },
            "becauseOf": only_2,
        },
        "capabilities": meta.capabilities,
        "dependencies": dependencies,
        "objects": kinds,
        "definitions": definitions,
        "fault": lint,
        "image": {
            "annotations": image.annotations(),
            "platforms": platforms,
            "layers": layers,
            "runtime": {
                "entrypoint": config["Entrypoint"],
                "cmd": config["Cmd"],
                "user": config["User"],
                "ports": config["ExposedPorts"].as_object().map(|p| p.keys().collect::<Vec<_>>()),
            },
        },
    })
}

/// What a definition is scoped to, where it says nothing: what its API takes that for.
fn scope(definition: &Value) -> &str {
    match (
        &definition["spec"]["scope"],
        definition["apiVersion"].as_str(),
    ) {
        (Value::String(scope), _) => scope,
        (_, Some("apiextensions.crossplane.io/v1")) => "LegacyCluster",
        _ => "Namespaced",
    }
}

fn text(report: &Value) -> String {
    let mut text = String::new();
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        Value::Array(all) => {
            let words: Vec<_> = all.iter().filter_map(Value::as_str).collect();
            words.join(" ")
        }
        other => other.to_string(),
    };
    let mut line = |words: String| {
        text += &words;
        text.push('\n');
    };
    line(format!(
        "{} {}",
        word(&report["kind"]),
        word(&report["name"])
    ));
    line(format!("digest        {}", word(&report["digest"])));
    let about = &report["annotations"]["meta.crossplane.io/description"];
    if about.is_string() {
        line(format!("description   {}", word(about)));
    }
    let crossplane = &report["crossplane"];
    line(format!(
        "crossplane    {} (declared: {})",
        word(&crossplane["takes"]),
        word(&crossplane["declared"])
    ));
    let because = word(&crossplane["becauseOf"]);
    if !because.is_empty() {
        line(format!("              because it holds {because}"));
    }
    let capabilities = word(&report["capabilities"]);
    if !capabilities.is_empty() {
        line(format!("capabilities  {capabilities}"));
    }
    if report["fault"].is_string() {
        line(format!("fault         {}", word(&report["fault"])));
    }
    let list = |pointer: &str| report.pointer(pointer).and_then(Value::as_array);
    for (title, pointer, fields) in [
        (
            "dependencies",
            "/dependencies",
            &["kind", "package", "version"][..],
        ),
        (
            "definitions",
            "/definitions",
            &["defines", "name", "scope", "versions"],
        ),
        ("platforms", "/image/platforms", &["platform", "digest"]),
        ("layers", "/image/layers", &["digest", "size", "holds"]),
    ] {
        let all = list(pointer).map(Vec::as_slice).unwrap_or_default();
        if !all.is_empty() {
            line(format!("\n{title}"));
        }
        for entry in all {
            let words: Vec<_> = fields.iter().map(|field| word(&entry[*field])).collect();
            line(format!("  {}", words.join("  ")));
        }
    }
    let objects = report["objects"].as_object().into_iter().flatten();
    line("\nobjects".into());
    for (kind, count) in objects {
        line(format!("  {count}  {kind}"));
    }
    let runtime = &report["image"]["runtime"];
    line("\nruntime".into());
    for field in ["entrypoint", "cmd", "user", "ports"] {
        line(format!("  {field:<12}{}", word(&runtime[field])));
    }
    text
}
