//! `--demo`: the first example, applied.

use anyhow::Context as _;
use ecp_meta::object;
use kube::Client;
use serde_json::Value;

use super::install::apply;
use super::parts::kind_of;

/// Applies `examples/first-volume`.
pub(crate) async fn apply_all(client: &Client) -> anyhow::Result<()> {
    for (file, text) in ecp_package::FIRST_VOLUME {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text)
            .with_context(|| format!("reading examples/first-volume/{file}"))?;
        for value in documents {
            let gvk = object::gvk(&value);
            let kind = kind_of(&gvk).with_context(|| format!("{file}: unknown kind {gvk}"))?;
            apply(client, &kind, vec![value])
                .await
                .with_context(|| format!("applying {file}"))?;
        }
    }
    Ok(())
}
