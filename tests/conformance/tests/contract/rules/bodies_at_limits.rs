//! The longest names and values that the contract allows (sections 2.1, 2.6, 3.2).

use serde_json::{Value, json};

use crate::bodies::reference;
use crate::kinds::*;
use crate::site::Site;
use crate::{bodies, cases, check};

cases!(
    One names_labels_and_annotations_of_every_kind,
    One specs,
);

/// 128 characters of all sorts that a name can have.
fn longest_name() -> String {
    format!("{}.z-9", "a".repeat(124))
}

async fn names_labels_and_annotations_of_every_kind(site: Site) {
    let name = longest_name();
    assert_eq!(name.len(), 128);
    for kind in KINDS {
        site.sample(kind).await;
        let body = json!({
            "labels": { "k": "v".repeat(63), "ä": "ä".repeat(31) },
            "annotations": { "k": "v".repeat(1024) },
            "spec": bodies::minimal(&site, kind),
        });
        let made = site.put_body(kind, &name, &body).await.ok(201);
        check::metadata(&site, kind, &name, &made, "PUT");
        check::conditions(&made, &check::CREATED);
        check::echo(&made, &body);
    }
    // In the reverse order nothing is in use any more.
    for kind in KINDS.iter().rev() {
        site.remove(kind, &name).await;
    }
}

/// The value, a number of times.
fn times(n: usize, value: &Value) -> Value {
    vec![value.clone(); n].into()
}

async fn specs(site: Site) {
    let text = |n: usize| "x".repeat(n);
    for kind in [
        &ROLE,
        &ROLE_ASSIGNMENT,
        &BLOCK_STORAGE,
        &INSTANCE,
        &NETWORK,
        &ROUTE_TABLE,
        &SECURITY_GROUP_RULE,
        &SECURITY_GROUP,
    ] {
        site.prepare(kind).await;
        let mut spec = bodies::minimal(&site, kind);
        match kind.name {
            "role" => {
                let permission = &mut spec["permissions"][0];
                permission["resources"] = times(256, &json!(text(256)));
                permission["verb"] = times(16, &json!("delete"));
            }
            "role-assignment" => {
                spec["subs"] = times(256, &json!("bob@example.com"));
                spec["roles"] = times(32, &json!(ROLE.sample));
                spec["scopes"] = times(256, &json!({ "regions": ["region-1"] }));
                spec["scopes"][0]["regions"] = times(64, &json!("region-1"));
            }
            "block-storage" => spec["sizeGB"] = json!(1_000_000),
            "instance" => {
                spec["userData"] = json!(text(65536));
                spec["sshKeys"] = times(32, &json!(text(4096)));
                spec["antiAffinityGroup"] = json!(text(64));
                let mut volumes = Vec::new();
                for n in 0..64 {
                    let disk = format!("data-{n}");
                    let minimal = bodies::minimal(&site, &BLOCK_STORAGE);
                    site.put(&BLOCK_STORAGE, &disk, &minimal).await.ok(201);
                    volumes.push(json!({ "deviceRef": reference(&disk) }));
                }
                spec["dataVolumes"] = volumes.into();
            }
            "network" => {
                spec["cidr"] = json!({ "ipv4": "1.0.0.0/8" });
                let cidr = |n: usize| json!({ "ipv4": format!("10.{n}.0.0/16") });
                spec["additionalCidrs"] = (0..32).map(cidr).collect();
            }
            "routing-table" => spec["routes"] = times(1000, &spec["routes"][0]),
            "security-group-rule" => {
                let ports: Vec<u32> = (1..=100).map(|n| 65535 - n).collect();
                spec["ports"] = json!({ "from": 1, "to": 65535, "list": ports });
                spec["protocol"] = json!("tcp+udp");
                spec["sourceRef"] = times(32, &reference("10.0.0.0/8"));
            }
            "security-group" => spec["rules"] = times(500, &json!({ "direction": "egress" })),
            other => panic!("{other}"),
        }
        let made = site.put(kind, "full-up", &spec).await.ok(201);
        check::echo(&made, &json!({ "spec": spec }));
        check::conditions(&made, &check::CREATED);
    }
}
