//! From PUT to 404: each kind with every field (contract, sections 3.2 to 3.4, 3.8).

use serde_json::{Value, json};

use crate::check;
use crate::kinds::Kind;
use crate::site::Site;
use crate::{bodies, cases_of_kinds};

cases_of_kinds!(OF_KINDS: Two lives);

/// A name as long as a user may like it, with all characters that there are.
const NAME: &str = "x.1-a";

/// A body that also has what the server owns, which it must ignore.
fn body(spec: &Value) -> Value {
    json!({
        "labels": { "env": "conformance", "Any Text!": "ä", "n": "7", "empty": "" },
        "annotations": { "note": "two\nlines", "a/b": "\u{1F600}" },
        "extensions": { "vendor": { "thing": [1, 2.5, "x", null, {}], "on": true } },
        "metadata": {
            "name": NAME, "tenant": "", "region": "", "provider": "", "kind": "instance",
            "verb": "GET", "ref": "nonsense", "resourceVersion": 0,
            "createdAt": "0001-01-01T00:00:00Z", "lastModifiedAt": "0001-01-01T00:00:00Z",
        },
        "spec": spec,
        "status": { "state": "error", "conditions": null },
    })
}

/// All but the verb and the status.
fn lasting(document: &Value) -> Value {
    let mut document = document.clone();
    document["metadata"]["verb"].take();
    document["status"].take();
    document
}

async fn lives(site: Site, kind: &'static Kind) {
    site.prepare_full(kind).await;
    let path = site.path(kind, NAME);
    site.world.get(&path).await.ok(404);
    site.world.delete(&path).await.ok(404);

    let body = body(&bodies::full(&site, kind));
    let answer = site.put_body(kind, NAME, &body).await;
    assert_eq!(answer.status, 201, "{answer:#?}");
    assert_eq!(answer.header("location"), Some(&*path));
    let created = answer.ok(201);
    check::metadata(&site, kind, NAME, &created, "PUT");
    check::echo(&created, &body);
    check::conditions(&created, &check::CREATED);
    assert_eq!(created["metadata"]["resourceVersion"], 1);

    let read = site.get(kind, NAME).await.ok(200);
    check::metadata(&site, kind, NAME, &read, "GET");
    assert_eq!(lasting(&read), lasting(&created));
    check::conditions(&read, &check::CREATED);
    let items = site.world.all(&site.list(kind), "").await;
    let named = |v: &&Value| v["metadata"]["name"] == NAME;
    assert_eq!(lasting(items.iter().find(named).unwrap()), lasting(&read));

    changes(&site, kind, &body, &read).await;

    let deleted = site.delete(kind, NAME).await;
    assert_eq!(deleted.status, 202);
    assert_eq!(deleted.body, "");
    site.world.until_gone(&path).await;
    assert!(!site.names(kind, "").await.contains(&NAME.to_owned()));
    site.delete(kind, NAME).await.ok(404);
}

/// Every PUT that is accepted counts, whatever it changes, and replaces all (sections 2.1, 3.3).
async fn changes(site: &Site, kind: &Kind, body: &Value, first: &Value) {
    let mut changed = body.clone();
    changed["spec"] = bodies::changed(kind, body["spec"].clone());
    changed["labels"] = json!({ "env": "other", "new": "x" });
    let mut bare = changed.clone();
    for field in ["labels", "annotations", "extensions"] {
        bare[field].take();
    }
    for (body, version) in [(&changed, 2), (&changed, 3), (&changed, 4), (&bare, 5)] {
        let updated = site.put_body(kind, NAME, body).await.ok(200);
        check::metadata(site, kind, NAME, &updated, "PUT");
        check::echo(&updated, body);
        check::conditions(&updated, &check::changed(version - 1));
        assert_eq!(updated["metadata"]["resourceVersion"], version);
        let read = site.get(kind, NAME).await.ok(200);
        assert_eq!(lasting(&read), lasting(&updated));
        let times = |v: &Value| {
            let time = |field: &str| check::time(&v["metadata"][field]);
            (time("createdAt"), time("lastModifiedAt"))
        };
        assert_eq!(times(&read).0, times(first).0);
        assert!(times(&read).1 > times(first).1, "{read:#}");
    }
}
