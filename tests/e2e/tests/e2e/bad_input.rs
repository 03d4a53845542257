//! Bad input gets the right code and a clear body, and stores nothing.

use serde_json::{Value, json};

use ecp_harness::{Answer, Ecp, volume, volume_spec, workspace};

fn problem(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:#?}");
    for member in ["type", "title", "status", "detail", "instance", "sources"] {
        assert!(!answer.body[member].is_null(), "{member}: {answer:#?}");
    }
    assert_eq!(answer.body["status"], status);
    assert!(
        answer.headers["content-type"]
            .to_str()
            .unwrap()
            .contains("json")
    );
}

#[tokio::test]
async fn bad_requests_are_refused_and_nothing_is_stored() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
    let disk = volume("prod", "disk-1");
    let put = |path: &str| {
        ecp.request("PUT", path)
            .bearer_auth(&ecp.token)
            .header("content-type", "application/json")
    };

    problem(&Ecp::send(put(&disk).body("{\"spec\": ")).await, 400);
    problem(&Ecp::send(put(&disk).body("")).await, 400);
    problem(&Ecp::send(put(&disk).body("[]")).await, 412);
    let big = format!("{{\"spec\": {{\"pad\": \"{}\"}}}}", "x".repeat(2 << 20));
    problem(&Ecp::send(put(&disk).body(big)).await, 413);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    problem(&Ecp::send(put(&disk).body(deep)).await, 400);
    let xml = ecp.request("PUT", &disk).bearer_auth(&ecp.token);
    problem(
        &Ecp::send(xml.header("content-type", "text/xml").body("<a/>")).await,
        415,
    );

    for (spec, field) in [
        (
            json!({ "sizeGB": "10", "skuRef": { "resource": "skus/RD500" } }),
            "sizeGB",
        ),
        (
            json!({ "sizeGB": 0, "skuRef": { "resource": "skus/RD500" } }),
            "sizeGB",
        ),
        (
            json!({ "sizeGB": 1_000_001, "skuRef": { "resource": "skus/RD500" } }),
            "sizeGB",
        ),
        (
            json!({ "sizeGB": 1.5, "skuRef": { "resource": "skus/RD500" } }),
            "sizeGB",
        ),
        (json!({ "skuRef": { "resource": "skus/RD500" } }), "sizeGB"),
        (json!({ "sizeGB": 10 }), "skuRef"),
        (json!({ "sizeGB": 10, "skuRef": "skus/RD500" }), "skuRef"),
        (
            json!({ "sizeGB": 10, "skuRef": { "resource": "skus/NOPE" } }),
            "skuRef",
        ),
        (Value::Null, "spec"),
    ] {
        let refused = ecp.put(&disk, spec.clone()).await;
        problem(&refused, 412);
        assert!(
            refused.body.to_string().contains(field),
            "{spec}: {:#}",
            refused.body
        );
    }
    let long = json!({ "labels": { "a": "x".repeat(64) }, "spec": volume_spec(10) });
    problem(&ecp.call("PUT", &disk, Some(&long)).await, 412);

    problem(
        &ecp.put(&volume("prod", &"x".repeat(129)), volume_spec(10))
            .await,
        412,
    );
    problem(
        &ecp.put(&volume("prod", "Upper"), volume_spec(10)).await,
        412,
    );
    problem(
        &ecp.put(&volume("prod", "..%2F..%2Fetc"), volume_spec(10))
            .await,
        412,
    );
    problem(
        &ecp.put(&volume("none", "disk-1"), volume_spec(10)).await,
        412,
    );
    problem(&ecp.get(&volume("prod", "disk-1")).await, 404);
    problem(&ecp.delete(&volume("prod", "disk-1")).await, 404);

    let list = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages";
    for query in [
        "labels=env%3D",
        "labels=%3E%3D5",
        "limit=x",
        "skipToken=%00",
    ] {
        let answer = ecp.get(&format!("{list}?{query}")).await;
        assert!([400, 412].contains(&answer.status), "{query}: {answer:#?}");
        problem(&answer, answer.status);
    }
    problem(&ecp.call("PATCH", &disk, Some(&json!({}))).await, 405);

    let none = Ecp::send(ecp.request("GET", &disk)).await;
    problem(&none, 401);
    assert!(none.headers.contains_key("www-authenticate"));
    problem(
        &Ecp::send(ecp.request("GET", &disk).bearer_auth("wrong")).await,
        401,
    );

    assert_eq!(
        ecp.items("storage.v1.secapi.cloud/v1", "block-storages")
            .await,
        Vec::<Value>::new()
    );
    assert!(!ecp.log().contains("panicked"), "{}", ecp.log());
    assert!(!ecp.log().contains(&ecp.token), "the token is in the log");
}
