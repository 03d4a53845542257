//! Requests that are none of the contract's, and what surrounds all of them (sections 1.3 to 1.5).

use serde_json::{Value, json};

use crate::kinds::*;
use crate::site::Site;
use crate::world::Refusal;
use crate::{bodies, cases};

cases!(
    One unknown_paths_are_not_found,
    One unknown_methods_are_told_the_known_ones,
    One bodies_must_be_json,
    One answers_are_json,
    Two bodies_have_at_most_a_mebibyte,
    One null_is_absent_and_unknown_members_are_told,
    One head_is_get_without_the_body,
    One nobody_is_let_in_without_a_token,
    One the_apis_are_listed_to_everybody,
    One requests_have_ids,
    One names_are_percent_encoded,
);

async fn unknown_paths_are_not_found(site: Site) {
    for path in [
        "/",
        "/providers",
        "/providers/seca.storage",
        "/providers/seca.storage/v1",
        "/providers/seca.storage/v2/tenants/t/images",
        "/providers/seca.nothing/v1/tenants/t/images",
        "/providers/seca.storage/v1/tenants/t/volumes",
        "/providers/seca.storage/v1/tenants/t/workspaces/w/images",
        "/providers/seca.compute/v1/tenants/t/workspaces/w/block-storages",
        "/providers/seca.network/v1/tenants/t/workspaces/w/subnets",
        "/providers/seca.network/v1/tenants/t/workspaces/w/networks/n/nics",
        "/providers/seca.storage/v1/tenants//images",
        "/providers/seca.storage/v1/tenants/t/images/a/b/c",
        "/regions/none/providers/seca.storage/v1/tenants/t/images",
    ] {
        site.world.get(path).await.ok(404);
        let call = site.world.call("PUT", path).json(&json!({}));
        call.send().await.ok(404);
    }
    let long = format!("{}/{}", site.list(&IMAGE), "a".repeat(6000));
    let answer = site.world.get(&long).await;
    assert!(
        matches!(answer.status, 400 | 404 | 412 | 414 | 422),
        "{answer:#?}"
    );
}

async fn unknown_methods_are_told_the_known_ones(site: Site) {
    for kind in KINDS {
        for (path, allowed) in [
            (site.list(kind), &["GET"][..]),
            (site.path(kind, "x"), &["GET", "PUT", "DELETE"]),
        ] {
            for method in ["PUT", "DELETE", "POST", "PATCH", "TRACE", "FROB"] {
                if allowed.contains(&method) {
                    continue;
                }
                let call = site.world.call(method, &path).json(&json!({ "spec": {} }));
                let answer = call.send().await;
                let told = answer.header("allow").unwrap_or_default().to_owned();
                answer.ok(405);
                assert!(allowed.iter().all(|m| told.contains(m)), "{told}");
                assert!(!told.contains(method), "{told}");
            }
        }
    }
}

async fn bodies_must_be_json(site: Site) {
    let path = site.path(&WORKSPACE, "x");
    for body in [
        "",
        "{",
        "{}}",
        "nonsense",
        "{\"spec\":}",
        "{'spec':{}}",
        "\u{feff}{}",
        "{\"a\":1,}",
    ] {
        let call = site.world.call("PUT", &path);
        let call = call.header("content-type", "application/json").bytes(body);
        call.send().await.ok(400);
    }
    let deep = format!("{{\"spec\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    for body in [deep.into_bytes(), b"{\"spec\":{\"a\":\"\xff\"}}".to_vec()] {
        let call = site.world.call("PUT", &path);
        let call = call.header("content-type", "application/json").bytes(body);
        call.send().await.ok(400);
    }
    for media in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "json",
    ] {
        let call = site.world.call("PUT", &path).header("content-type", media);
        call.bytes("{\"spec\":{}}").send().await.ok(415);
    }
    site.get(&WORKSPACE, "x").await.ok(404);
    for (media, status) in [
        ("application/json; charset=utf-8", 201),
        ("APPLICATION/JSON", 200),
        ("application/problem+json", 200),
    ] {
        let call = site.world.call("PUT", &path).header("content-type", media);
        call.bytes("{\"spec\":{}}").send().await.ok(status);
    }
    let call = site.world.call("PUT", &path);
    call.bytes("{\"spec\":{}}").send().await.ok(200);
}

async fn answers_are_json(site: Site) {
    site.sample(&WORKSPACE).await;
    let paths = [
        site.list(&WORKSPACE),
        site.path(&WORKSPACE, WORKSPACE.sample),
    ];
    for path in &paths {
        for (accept, status) in [
            ("application/json", 200),
            ("*/*", 200),
            ("application/*", 200),
            ("text/html, application/json;q=0.9", 200),
            ("application/json; deleted=true", 200),
            ("text/html", 406),
            ("application/xml", 406),
            ("application/json; deleted=maybe", 400),
        ] {
            let call = site.world.call("GET", path).header("accept", accept);
            let answer = call.send().await;
            assert!(answer.header("content-type").unwrap().contains("json"));
            answer.ok(status);
        }
    }
}

async fn bodies_have_at_most_a_mebibyte(site: Site) {
    const MAX: usize = 1 << 20;
    let path = site.path(&WORKSPACE, "x");
    let body = |len: usize| {
        let frame = "{\"spec\":{},\"extra\":\"\"}".len();
        format!(
            "{{\"spec\":{{}},\"extra\":\"{}\"}}",
            "x".repeat(len - frame)
        )
    };
    for (len, status) in [(MAX + 1, 413), (MAX * 3, 413), (MAX, 201)] {
        let call = site.world.call("PUT", &path);
        let call = call
            .header("content-type", "application/json")
            .bytes(body(len));
        call.send().await.ok(status);
    }
    // A large one that is wrong is told what is wrong, and not that it is large.
    site.prepare(&INSTANCE).await;
    let mut spec = bodies::minimal(&site, &INSTANCE);
    spec["userData"] = json!("x".repeat(900_000));
    let answer = site.put(&INSTANCE, "x", &spec).await;
    assert_eq!(answer.sources(), ["/spec/userData"]);
    answer.ok(site.world.code(Refusal::Invalid));
}

async fn null_is_absent_and_unknown_members_are_told(site: Site) {
    site.prepare(&NIC).await;
    site.prepare(&INSTANCE).await;
    for kind in KINDS {
        let mut body = json!({
            "labels": null, "annotations": null, "extensions": null, "metadata": null,
            "status": null, "frob": { "a": 1 }, "spec": bodies::minimal(&site, kind),
        });
        let optional = match kind.name {
            "block-storage" => "sourceImageRef",
            "image" => "boot",
            "instance" => "sshKeys",
            "network" => "additionalCidrs",
            "internet-gateway" => "egressOnly",
            "nic" => "publicIpRefs",
            "public-ip" => "address",
            "subnet" => "skuRef",
            "security-group-rule" => "ports",
            "security-group" => "rules",
            _ => "",
        };
        if !optional.is_empty() {
            body["spec"][optional] = Value::Null;
        }
        if kind.name != "workspace" {
            body["spec"]["frob"] = json!(1);
        }
        if kind.name == "role-assignment" {
            site.sample(&ROLE).await;
        }
        let answer = site.put_body(kind, "x", &body).await;
        let warnings = answer.headers.get_all("warning").iter();
        let warnings: Vec<_> = warnings.map(|w| w.to_str().unwrap()).collect();
        let told = |pointer: &str| warnings.iter().any(|w| w.contains(pointer));
        assert!(told(" \"/frob "), "{answer:#?}");
        assert!(
            kind.name == "workspace" || told("\"/spec/frob "),
            "{answer:#?}"
        );
        let made = answer.ok(201);
        assert!(
            made["spec"].get("frob").is_none() || kind.name == "workspace",
            "{made:#}"
        );
        assert_eq!(made["status"]["state"], "active", "{made:#}");
    }
    // What Terraform sends for lists that are not set.
    for (kind, field) in [(&ROUTE_TABLE, "routes"), (&NIC, "addresses")] {
        let mut spec = bodies::minimal(&site, kind);
        spec[field] = Value::Null;
        let made = site.make(kind, "unset", &spec).await;
        assert!(
            made["spec"].get(field).is_none_or(Value::is_null),
            "{made:#}"
        );
    }
    site.put_body(&WORKSPACE, "bare", &json!({ "spec": null }))
        .await
        .ok(201);
    site.put_body(&WORKSPACE, "bare", &json!({})).await.ok(200);
    let mut subnet = bodies::minimal(&site, &SUBNET);
    subnet["zone"] = json!("");
    subnet["routeTableRef"] = json!({ "resource": "" });
    site.make(&SUBNET, "anywhere", &subnet).await;
}

async fn head_is_get_without_the_body(site: Site) {
    site.sample(&WORKSPACE).await;
    for path in [
        site.list(&WORKSPACE),
        site.path(&WORKSPACE, WORKSPACE.sample),
    ] {
        let get = site.world.get(&path).await;
        let head = site.world.call("HEAD", &path).send().await;
        for name in ["content-type", "content-length"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        assert_eq!((head.ok(200), get.status), (json!(""), 200));
    }
    let missing = site.path(&WORKSPACE, "missing");
    site.world.call("HEAD", &missing).send().await.ok(404);
}

async fn nobody_is_let_in_without_a_token(site: Site) {
    for kind in KINDS {
        for path in [site.list(kind), site.path(kind, "x")] {
            let anonymous = site.world.call("GET", &path).anonymous().send().await;
            let asked = anonymous.header("www-authenticate").unwrap_or_default();
            assert!(asked.starts_with("Bearer"), "{anonymous:#?}");
            anonymous.ok(401);
            site.world
                .call("GET", &path)
                .token("wrong")
                .send()
                .await
                .ok(401);
            let call = site.world.call("PUT", &path).token("wrong");
            call.json(&json!({})).send().await.ok(401);
        }
    }
    let path = site.list(&WORKSPACE);
    for authorization in ["Basic YTpi", "Bearer", "Bearer ", "nonsense"] {
        let call = site.world.call("GET", &path).anonymous();
        let call = call.header("authorization", authorization);
        call.send().await.ok(401);
    }
    let token = &site.world.ecp.token;
    let call = site.world.call("GET", &path).anonymous();
    let call = call.header("authorization", &format!("bEaReR {token}"));
    call.send().await.ok(200);
}

async fn the_apis_are_listed_to_everybody(site: Site) {
    let paths = [
        "/.wellknown/secapi",
        "/providers/seca.compute/.wellknown/secapi",
    ];
    for path in paths {
        let call = site.world.call("GET", path).anonymous();
        let document = call.send().await.ok(200);
        assert_eq!(document["version"], "v1");
        let endpoints = document["endpoints"].as_array().unwrap();
        let mut providers: Vec<_> = endpoints.iter().map(|e| e["provider"].clone()).collect();
        providers.sort_by_key(|p| p.as_str().map(str::to_owned));
        let all = [
            "authorization",
            "compute",
            "network",
            "region",
            "storage",
            "workspace",
        ];
        assert_eq!(providers, all.map(|name| format!("seca.{name}/v1")));
        for endpoint in endpoints {
            let url = endpoint["url"].as_str().unwrap();
            assert!(url.starts_with(&site.world.ecp.rest), "{url}");
            assert!(!url.contains("/v1"), "{url}");
        }
        site.world
            .call("PUT", path)
            .json(&json!({}))
            .send()
            .await
            .ok(405);
    }
    for path in ["/healthz", "/readyz", "/livez", "/metrics", "/openapi.json"] {
        site.world
            .call("GET", path)
            .anonymous()
            .send()
            .await
            .ok(200);
    }
}

async fn requests_have_ids(site: Site) {
    let path = site.list(&WORKSPACE);
    let own = site
        .world
        .call("GET", &path)
        .header("x-request-id", "mine-1")
        .send()
        .await;
    assert_eq!(own.header("x-request-id"), Some("mine-1"));
    let ids: Vec<_> = [site.world.get(&path).await, site.world.get("/none").await]
        .iter()
        .map(|a| a.header("x-request-id").unwrap().to_owned())
        .collect();
    assert_ne!(ids[0], ids[1]);
}

async fn names_are_percent_encoded(site: Site) {
    site.put_body(&WORKSPACE, "a-b.c", &json!({})).await.ok(201);
    let read = site.get(&WORKSPACE, "%61%2Db%2Ec").await.ok(200);
    assert_eq!(read["metadata"]["name"], "a-b.c");
    for odd in ["..%2f..%2fx", "%00", "a%20b", "%F0%9F%98%80"] {
        let answer = site.get(&WORKSPACE, odd).await;
        assert!(matches!(answer.status, 400 | 404), "{answer:#?}");
    }
}
