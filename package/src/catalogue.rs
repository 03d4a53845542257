//! The catalogue of a new control plane: one region of the dummy cloud and what it offers.

use std::collections::BTreeSet;

use ecp_xrds::object_name;
use serde_json::{Value, json};

/// Namespace of what belongs to no tenant, such as the managed resources of regions and SKUs.
pub const SYSTEM_NAMESPACE: &str = "secapi-system";

/// Zones of the region (SECA section 4.3).
const ZONES: [&str; 2] = ["zone-a", "zone-b"];
/// Instance SKUs: SECA name, processors and GB of memory (SECA section 4.3).
const INSTANCE_SKUS: [(&str, i64, i64); 3] = [("D2XS", 1, 1), ("DXS", 1, 2), ("DS", 2, 4)];
/// Network SKUs: SECA name, Mbit/s and packets a second (SECA section 4.3).
const NETWORK_SKUS: [(&str, i64, i64); 3] = [
    ("N1K", 1000, 10_000),
    ("N5K", 5000, 40_000),
    ("N10K", 10_000, 80_000),
];
/// Storage SKUs: SECA name and operations a second (SECA section 4.3).
const STORAGE_SKUS: [(&str, i64); 3] = [("RD100", 100), ("RD500", 500), ("RD2K", 2000)];
/// The smallest volume the SKUs recommend.
const VOLUME_SIZE_GB_MIN: i64 = 50;

/// What a new control plane starts with, in the order it should be created: the system namespace,
/// the dummy cloud's default configuration, regions in it, and the SKUs that all of them offer.
///
/// `url` is where the facade is reached: the base URL of a provider in a region, without version.
pub fn catalogue(regions: &[String], url: impl Fn(&str, &str) -> String) -> Vec<Value> {
    let mut objects = vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": SYSTEM_NAMESPACE},
        }),
        json!({
            "apiVersion": "dummy.m.secapi.cloud/v1alpha1",
            "kind": "ClusterProviderConfig",
            "metadata": {"name": "default"},
            "spec": {},
        }),
    ];
    objects.extend(regions.iter().map(|region| region_object(region, &url)));
    objects.extend(STORAGE_SKUS.map(|(name, iops)| storage_sku(name, iops)));
    objects.extend(
        INSTANCE_SKUS
            .map(|(name, vcpu, ram)| sku("InstanceSKU", name, json!({"vCPU": vcpu, "ram": ram}))),
    );
    objects.extend(NETWORK_SKUS.map(|(name, bandwidth, packets)| {
        let spec = json!({"bandwidth": bandwidth, "packets": packets});
        sku("NetworkSKU", name, spec)
    }));
    objects
}

fn region_object(region: &str, url: impl Fn(&str, &str) -> String) -> Value {
    let served: BTreeSet<&str> = ecp_xrds::kinds().iter().map(|k| k.provider).collect();
    // A client takes the URL as the base of `v1/...`, so the version is not in it.
    let providers: Vec<Value> = served
        .into_iter()
        .map(|name| json!({"name": name, "version": "v1", "url": url(region, name)}))
        .collect();
    json!({
        "apiVersion": "v1.secapi.cloud/v1",
        "kind": "Region",
        "metadata": {"name": region},
        "spec": {
            "availableZones": ZONES,
            "providers": providers,
            "cloud": {
                "name": "dummy",
                "location": region,
                "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"},
            },
        },
    })
}

fn storage_sku(name: &str, iops: i64) -> Value {
    let spec = json!({
        "iops": iops,
        "minVolumeSize": VOLUME_SIZE_GB_MIN,
        "type": "remote-durable",
    });
    sku("StorageSKU", name, spec)
}

/// A SKU that is offered in every region.
fn sku(kind: &str, name: &str, mut spec: Value) -> Value {
    let info = ecp_xrds::by_kind(kind);
    let mut labels = json!({"Provider": "seca", "Tier": name});
    if kind == "InstanceSKU" {
        labels["Architecture"] = "amd64".into();
    }
    spec["name"] = name.into();
    spec["commonData"] = json!({"labels": labels});
    json!({
        "apiVersion": info.map(|i| i.api_version()),
        "kind": kind,
        "metadata": {"name": info.map(|i| object_name(i, name))},
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use ecp_meta::object;

    use super::*;

    #[test]
    fn the_catalogue_is_valid_and_says_where_the_apis_are() {
        let url = |region: &str, provider: &str| format!("http://x/{region}/{provider}");
        let objects = catalogue(&["region-1".into(), "region-2".into()], url);
        let kinds: Vec<_> = objects.iter().map(|o| object::gvk(o).kind).collect();
        let first = ["Namespace", "ClusterProviderConfig", "Region", "Region"];
        assert_eq!(kinds[..4], first);
        let skus = ["StorageSKU", "InstanceSKU", "NetworkSKU"];
        assert_eq!(kinds[4..], skus.map(|kind| [kind; 3]).concat());
        for object in &objects[2..] {
            let info = ecp_xrds::by_kind(&object::gvk(object).kind).unwrap();
            assert_eq!(ecp_xrds::validate(info, &object["spec"]), []);
        }
        let storage = objects[2]["spec"]["providers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|p| p["name"] == "seca.storage")
            .unwrap();
        assert_eq!(storage["url"], "http://x/region-1/seca.storage");
        assert_eq!(objects[5]["metadata"]["name"], "rd500");
        assert_eq!(ecp_xrds::seca_name(&objects[5]), "RD500");
    }
}
