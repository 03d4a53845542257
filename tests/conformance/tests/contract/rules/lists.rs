//! Lists: filters, pages, deletion modes (contract, sections 1.4, 1.6, 1.7; public bugs A54 to A56).

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::kinds::*;
use crate::site::Site;
use crate::{bodies, cases, cases_of_kinds, check};

cases!(
    One selectors,
    One selectors_that_make_no_sense_are_refused,
    One limits_out_of_bounds_are_moved_into_them,
    One tokens_belong_to_one_list,
    One pages_survive_what_comes_and_goes,
    One labels_are_replaced_as_a_whole,
);
cases_of_kinds!(OF_KINDS: One filters_and_pages);

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn labels(selector: &str) -> String {
    format!("labels={}", encoded(selector))
}

async fn labelled(site: &Site, kind: &Kind, name: &str, labels: &Value) {
    let body = json!({ "labels": labels, "spec": bodies::minimal(site, kind) });
    site.put_body(kind, name, &body).await.ok(201);
}

async fn filters_and_pages(site: Site, kind: &'static Kind) {
    site.prepare(kind).await;
    // Those that others of the kind needed; workspaces, for example.
    let before = site.names(kind, "").await;
    for (name, env) in [("a", "one"), ("b", "two"), ("c", "one")] {
        labelled(&site, kind, name, &json!({ "env": env })).await;
    }
    let page = site.world.get(&site.list(kind)).await.ok(200);
    let place = match kind.scope {
        Scope::Network => format!("networks/{}/", site.network),
        Scope::Workspace | Scope::Tenant => String::new(),
    };
    let metadata = json!({
        "provider": format!("{}/v1", kind.provider),
        "resource": format!("{place}{}", kind.collection),
        "verb": "GET",
    });
    assert_eq!(page["metadata"], metadata);
    for item in page["items"].as_array().unwrap() {
        let name = item["metadata"]["name"].as_str().unwrap();
        check::metadata(&site, kind, name, item, "GET");
    }
    let mut all = ["a", "b", "c"].map(String::from).to_vec();
    all.extend(before);
    all.sort();
    for query in ["", "limit=1", "limit=2", "limit=1000"] {
        assert_eq!(site.names(kind, query).await, all, "{query}");
    }
    for query in [labels("env=one"), labels("env=one") + "&limit=1"] {
        assert_eq!(site.names(kind, &query).await, ["a", "c"], "{query}");
    }
    assert_eq!(site.names(kind, &labels("env=three")).await, [""; 0]);
    let first = site
        .world
        .get(&format!("{}?limit=1", site.list(kind)))
        .await;
    assert_eq!(first.ok(200)["items"].as_array().unwrap().len(), 1);
}

async fn selectors(site: Site) {
    for (name, labels) in [
        ("a", json!({ "env": "prod", "Tier": "D2XS", "cpus": "4" })),
        ("b", json!({ "env": "Prod", "tier": "D2XS", "cpus": "16" })),
        (
            "c",
            json!({ "environment": "preprod", "ns:team": "web", "cpus": "many" }),
        ),
        ("d", json!({ "a.b/c-d_e": "1.5", "empty": "" })),
    ] {
        labelled(&site, &WORKSPACE, name, &labels).await;
    }
    for (selector, names) in [
        ("", &["a", "b", "c", "d"][..]),
        ("env=prod", &["a"]),
        ("env==prod", &["a"]),
        ("env!=prod", &["b", "c", "d"]),
        ("Tier=D2XS", &["a"]),
        ("tier=D2XS", &["b"]),
        ("env=*rod", &["a", "b"]),
        ("env*=*rod", &["a", "b", "c"]),
        ("*env*=*prod*", &["a", "c"]),
        ("env=*", &["a", "b"]),
        ("ns:team=web", &["c"]),
        ("a.b/c-d_e=1.5", &["d"]),
        ("cpus=4", &["a"]),
        ("cpus>3", &["a", "b"]),
        ("cpus>4", &["b"]),
        ("cpus>=4", &["a", "b"]),
        ("cpus<16", &["a"]),
        ("cpus<=16", &["a", "b"]),
        ("a.b/c-d_e<2", &["d"]),
        ("cpus>=4,env=prod", &["a"]),
        ("cpus>=4,env!=prod", &["b"]),
        ("env=prod,env=Prod", &[]),
        // Set-based terms, as Kubernetes has them (public bug A54).
        ("env in (prod, staging)", &["a"]),
        ("env notin (prod,Prod)", &["c", "d"]),
        ("env in (prod,Prod),cpus>4", &["b"]),
        ("cpus,tier!=front", &["a", "b", "c"]),
        ("!cpus", &["d"]),
        ("env=pro", &[]),
        ("en=prod", &[]),
    ] {
        let found = site.names(&WORKSPACE, &labels(selector)).await;
        assert_eq!(found, names, "{selector}");
        let found = site
            .names(&WORKSPACE, &(labels(selector) + "&limit=1"))
            .await;
        assert_eq!(found, names, "{selector} page by page");
    }
}

/// On an empty list, too: what is wrong does not depend on what is there.
async fn selectors_that_make_no_sense_are_refused(site: Site) {
    for selector in [
        "=prod",
        ">=5",
        "cpus>many",
        "cpus<",
        "env=prod,,x=1",
        "env in",
        "env in (a",
        "!",
    ] {
        let path = format!("{}?{}", site.list(&WORKSPACE), labels(selector));
        let answer = site.world.get(&path).await;
        assert!(
            matches!(answer.status, 400 | 412 | 422),
            "{selector}: {answer:#?}"
        );
        assert_eq!(answer.sources(), ["labels"], "{selector}");
    }
}

async fn limits_out_of_bounds_are_moved_into_them(site: Site) {
    for name in ["a", "b"] {
        labelled(&site, &WORKSPACE, name, &json!({})).await;
    }
    let list = site.list(&WORKSPACE);
    for (limit, shown) in [("0", 1), ("-1", 1), ("99999999", 2), ("10001", 2), ("", 2)] {
        let page = site
            .world
            .get(&format!("{list}?limit={limit}"))
            .await
            .ok(200);
        assert_eq!(page["items"].as_array().unwrap().len(), shown, "{limit}");
        assert_eq!(
            page["metadata"].get("skipToken").is_some(),
            shown == 1,
            "{limit}"
        );
    }
    for limit in ["x", "1.5", "1e3", "0x10"] {
        let answer = site.world.get(&format!("{list}?limit={limit}")).await;
        assert_eq!(answer.sources(), ["limit"]);
        answer.ok(400);
    }
}

/// A token of another list, tenant, filter or server is refused, and never shows what is theirs.
async fn tokens_belong_to_one_list(site: Site) {
    let other = Site::new(site.world.clone());
    for site in [&site, &other] {
        for name in ["a", "b", "c"] {
            labelled(site, &WORKSPACE, name, &json!({ "k": "v" })).await;
        }
        site.sample(&WORKSPACE).await;
        for name in ["a", "b"] {
            labelled(site, &PUBLIC_IP, name, &json!({})).await;
        }
    }
    let list = site.list(&WORKSPACE);
    let token = async |path: &str| {
        let page = site.world.get(path).await.ok(200);
        page["metadata"]["skipToken"].as_str().unwrap().to_owned()
    };
    let own = token(&format!("{list}?limit=1")).await;
    let filtered = token(&format!("{list}?limit=1&labels=k%3Dv")).await;
    let others = token(&format!("{}?limit=1", other.list(&WORKSPACE))).await;
    let ips = token(&format!("{}?limit=1", site.list(&PUBLIC_IP))).await;
    let long = "x".repeat(5000);
    for wrong in [
        "garbage",
        "%00%ff",
        "eyJ2IjoxfQ",
        &long,
        &filtered,
        &others,
        &ips,
    ] {
        let answer = site.world.get(&format!("{list}?skipToken={wrong}")).await;
        assert_eq!(answer.sources(), ["skipToken"], "{answer:#?}");
        answer.ok(400);
    }
    let filter_changed = format!("{list}?labels=k%3Dv&skipToken={own}");
    site.world.get(&filter_changed).await.ok(400);
    // Its own it takes, with another limit, too.
    let rest = site
        .world
        .get(&format!("{list}?limit=10&skipToken={own}"))
        .await;
    assert_eq!(rest.ok(200)["items"].as_array().unwrap().len(), 3);
}

async fn pages_survive_what_comes_and_goes(site: Site) {
    for name in ["b", "d", "f", "h"] {
        labelled(&site, &WORKSPACE, name, &json!({})).await;
    }
    let list = site.list(&WORKSPACE);
    let page = site.world.get(&format!("{list}?limit=2")).await.ok(200);
    let token = page["metadata"]["skipToken"].as_str().unwrap();
    // The last one shown goes, one before and one after it come.
    site.remove(&WORKSPACE, "d").await;
    for name in ["a", "e"] {
        labelled(&site, &WORKSPACE, name, &json!({})).await;
    }
    let rest = site.names(&WORKSPACE, &format!("skipToken={token}")).await;
    assert_eq!(rest, ["e", "f", "h"]);
}

/// Public bug A58.
async fn labels_are_replaced_as_a_whole(site: Site) {
    for (labels, status) in [
        (json!({ "a": "1" }), 201),
        (json!({ "a": "1", "b": "2" }), 200),
        (json!({ "b": "2" }), 200),
    ] {
        let body = json!({ "labels": labels, "spec": {} });
        site.put_body(&WORKSPACE, "x", &body).await.ok(status);
        let read = site.get(&WORKSPACE, "x").await.ok(200);
        assert_eq!(read["labels"], labels);
        for key in ["a", "b"] {
            let query = self::labels(&format!("{key}=*"));
            let found = site.names(&WORKSPACE, &query).await.len();
            assert_eq!(found == 1, labels.get(key).is_some(), "{query}: {labels}");
        }
    }
}
