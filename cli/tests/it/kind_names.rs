//! What people type after `kubectl get`.

use std::collections::BTreeSet;

use ecp_xrds::Flavour;
use serde_json::Value;

fn typed(names: &Value) -> BTreeSet<String> {
    let field = |key: &str| names[key].as_str().map(str::to_lowercase);
    let short = names["shortNames"].as_array().into_iter().flatten();
    ["plural", "singular", "kind"]
        .into_iter()
        .filter_map(field)
        .chain(short.filter_map(Value::as_str).map(Into::into))
        .collect()
}

/// `kubectl get images` takes the first group in discovery, so a name that a managed resource
/// shares with a SECA kind shows the wrong thing, and `kubectl wait` waits for it.
#[test]
fn no_other_kind_has_the_name_of_a_seca_kind() {
    let mut others = ecp_engine::crds();
    others.extend(provider_ecp::crds());
    others.extend(provider_dummy::crds());
    for flavour in [Flavour::V2, Flavour::Claims] {
        for xrd in ecp_xrds::xrds(flavour) {
            let mut ours = typed(&xrd["spec"]["names"]);
            ours.extend(typed(&xrd["spec"]["claimNames"]));
            for other in &others {
                let theirs = typed(&other["spec"]["names"]);
                let shared: Vec<_> = ours.intersection(&theirs).collect();
                let (a, b) = (&xrd["metadata"]["name"], &other["metadata"]["name"]);
                assert!(shared.is_empty(), "{a} and {b} share {shared:?}");
            }
        }
    }
}
