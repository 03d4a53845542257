//! Tests of what roles allow.

use proptest::prelude::*;
use serde_json::json;

use super::*;

impl HasSpec for Value {
    fn spec(&self) -> Option<&Value> {
        Some(self)
    }
}

fn claim<'a>(collection: &'a str, name: &'a str, verb: &'a str) -> Claim<'a> {
    Claim {
        provider: "seca.storage",
        tenant: "acme",
        workspace: "prod",
        region: "r1",
        collection,
        name,
        verb,
    }
}

fn permission(provider: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"permissions": [{"provider": provider, "resources": resources, "verb": verbs}]})
}

fn assignment(subs: Value, scopes: Value) -> Value {
    json!({"subs": subs, "scopes": scopes, "roles": ["missing", "role"]})
}

fn allowed(assignment: &Value, role: &Value, claim: &Claim<'_>) -> bool {
    let role = |name: &str| (name == "role").then(|| role.clone());
    grants(assignment, role, "bob", claim)
}

#[test]
fn subjects_are_named_or_all() {
    let role = permission("seca.storage/v1", &["*"], &["*"]);
    for (subs, want) in [
        (json!(["bob"]), true),
        (json!(["alice", "bob"]), true),
        (json!(["*"]), true),
        (json!([]), false),
        (json!(null), false),
        (json!(["Bob"]), false),
        (json!(["bo*"]), false),
        (json!("bob"), false),
    ] {
        let assignment = assignment(subs.clone(), json!([{}]));
        let got = allowed(&assignment, &role, &claim("images", "a", "get"));
        assert_eq!(got, want, "{subs}");
    }
}

#[test]
fn a_claim_reads_as_what_a_role_must_have() {
    assert_eq!(
        claim("networks/subnets", "front", "put").to_string(),
        r#""put" of "networks/subnets/front" of seca.storage, tenant "acme", region "r1", workspace "prod""#
    );
    let global = Claim {
        workspace: "",
        region: "",
        ..claim("roles", "", "list")
    };
    assert_eq!(
        global.to_string(),
        r#""list" of "roles" of seca.storage, tenant "acme""#
    );
}

#[test]
fn every_list_of_a_scope_must_hold() {
    let role = permission("seca.storage", &["*"], &["*"]);
    let inside = claim("images", "a", "get");
    let of_tenant = Claim {
        workspace: "",
        ..inside
    };
    let global = Claim {
        workspace: "",
        region: "",
        ..inside
    };
    for (scopes, want) in [
        (json!([{}]), [true, true, true]),
        (json!([]), [false; 3]),
        (json!(null), [false; 3]),
        (json!(["prod"]), [false; 3]),
        (json!([{"tenants": ["acme"]}]), [true, true, true]),
        (json!([{"tenants": ["other"]}]), [false; 3]),
        (json!([{"tenants": []}]), [false; 3]),
        (json!([{"workspaces": ["prod"]}]), [true, false, false]),
        (json!([{"workspaces": ["dev"]}]), [false; 3]),
        (json!([{"workspaces": [""]}]), [false; 3]),
        (json!([{"regions": ["r1"]}]), [true, true, false]),
        (json!([{"regions": ["r2"]}]), [false; 3]),
        (
            json!([{"regions": ["r1"], "workspaces": ["dev"]}]),
            [false; 3],
        ),
        (
            json!([{"regions": ["r2"]}, {"regions": ["r1"], "tenants": ["acme"]}]),
            [true, true, false],
        ),
    ] {
        let assignment = assignment(json!(["bob"]), scopes.clone());
        let got = [&inside, &of_tenant, &global].map(|c| allowed(&assignment, &role, c));
        assert_eq!(got, want, "{scopes}");
    }
}

#[test]
fn permissions_match_provider_resource_and_verb() {
    let everywhere = assignment(json!(["bob"]), json!([{}]));
    for (provider, resources, verbs, claim, want) in [
        (
            "seca.storage/v1",
            "images/*",
            "get",
            ("images", "a", "get"),
            true,
        ),
        (
            "seca.storage",
            "images/*",
            "GET",
            ("images", "a", "get"),
            true,
        ),
        (
            "seca.compute/v1",
            "images/*",
            "get",
            ("images", "a", "get"),
            false,
        ),
        ("*", "images/*", "get", ("images", "a", "get"), false),
        (
            "seca.storage/v2",
            "images/*",
            "get",
            ("images", "a", "get"),
            false,
        ),
        (
            "seca.storage",
            "images/*",
            "list",
            ("images", "", "list"),
            false,
        ),
        (
            "seca.storage",
            "images",
            "list",
            ("images", "", "list"),
            true,
        ),
        (
            "seca.storage",
            "images",
            "get",
            ("images", "", "list"),
            false,
        ),
        (
            "seca.storage",
            "images",
            "get",
            ("images", "a", "get"),
            false,
        ),
        (
            "seca.storage",
            "images/a",
            "get",
            ("images", "a", "get"),
            true,
        ),
        (
            "seca.storage",
            "images/a",
            "get",
            ("images", "ab", "get"),
            false,
        ),
        ("seca.storage", "*", "put", ("images", "a", "delete"), false),
        ("seca.storage", "*", "*", ("images", "a", "delete"), true),
        (
            "seca.storage",
            "vms/*",
            "post",
            ("vms", "a", "post.start"),
            true,
        ),
        (
            "seca.storage",
            "vms/*",
            "post.stop",
            ("vms", "a", "post.start"),
            false,
        ),
        (
            "seca.storage",
            "vms/*",
            "post.start",
            ("vms", "a", "post.start"),
            true,
        ),
        (
            "seca.storage",
            "vms/*",
            "start",
            ("vms", "a", "post.start"),
            false,
        ),
        // A single workspace is `workspaces/<name>`, like everything else.
        (
            "seca.storage",
            "workspaces/*",
            "put",
            ("workspaces", "w", "put"),
            true,
        ),
        (
            "seca.storage",
            "workspaces",
            "put",
            ("workspaces", "w", "put"),
            false,
        ),
        (
            "seca.storage",
            "workspaces/*",
            "put",
            ("instances", "w", "put"),
            false,
        ),
    ] {
        let role = permission(provider, &[resources], &[verbs]);
        let (collection, name, verb) = claim;
        let got = allowed(&everywhere, &role, &self::claim(collection, name, verb));
        assert_eq!(got, want, "{provider} {resources} {verbs} {claim:?}");
    }
}

#[test]
fn what_is_no_role_grants_nothing() {
    let everywhere = assignment(json!(["*"]), json!([{}]));
    for role in [
        json!(null),
        json!({}),
        json!({"permissions": {}}),
        json!({"permissions": [{"provider": "seca.storage", "resources": "*", "verb": ["*"]}]}),
        json!({"permissions": [{"provider": "seca.storage", "resources": ["*"]}]}),
        json!({"permissions": [{"resources": ["*"], "verb": ["*"]}]}),
    ] {
        assert!(
            !allowed(&everywhere, &role, &claim("images", "a", "get")),
            "{role}"
        );
    }
    assert!(!grants(
        &everywhere,
        |_| None::<Value>,
        "bob",
        &claim("images", "a", "get")
    ));
}

prop_compose! {
    fn some_scopes()(lists in proptest::collection::vec(
        proptest::collection::vec(proptest::option::of(
            proptest::collection::vec("[ab]", 0..3)), 3), 0..3)) -> Vec<Vec<Option<Vec<String>>>> {
        lists
    }
}

fn scope_value(lists: &[Option<Vec<String>>]) -> Value {
    let names = ["tenants", "regions", "workspaces"];
    let fields = names.iter().zip(lists);
    let set = fields.filter_map(|(name, list)| Some(((*name).to_owned(), json!(list.as_ref()?))));
    Value::Object(set.collect())
}

proptest! {
    /// The whole rule, said in another way.
    #[test]
    fn scopes_are_tenant_and_region_and_workspace(
        scopes in some_scopes(), place in proptest::collection::vec("[ab]?", 3),
    ) {
        let assignment = assignment(
            json!(["bob"]), scopes.iter().map(|s| scope_value(s)).collect::<Value>());
        let claim = Claim {
            tenant: &place[0], region: &place[1], workspace: &place[2],
            ..claim("images", "a", "get")
        };
        let want = scopes.iter().any(|scope| {
            scope.iter().zip(&place).all(|(list, at)| list.as_ref().is_none_or(|l| l.contains(at)))
        });
        let role = permission("seca.storage", &["*"], &["*"]);
        prop_assert_eq!(allowed(&assignment, &role, &claim), want);
    }

    /// More subjects, scopes, roles or verbs never take away; fewer never give.
    #[test]
    fn grants_only_grow_with_what_is_listed(
        verbs in proptest::collection::vec("(get|list|put|delete|post)", 0..3), more in "(get|put|\\*)",
        asked in "(get|list|put|delete|post\\.start)",
    ) {
        let everywhere = assignment(json!(["bob"]), json!([{}]));
        let allowed = |verbs: &[&str]| {
            let role = permission("seca.storage", &["*"], verbs);
            allowed(&everywhere, &role, &claim("images", "a", &asked))
        };
        let mut verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
        let before = allowed(&verbs);
        prop_assert_eq!(before, verbs.iter().any(|v| asked.split('.').next() == Some(v)));
        verbs.push(&more);
        prop_assert!(!before || allowed(&verbs));
    }

    /// Whatever an assignment and a role hold, nothing panics, and strangers get nothing.
    #[test]
    fn strangers_get_nothing(sub in "[a-z]{1,5}", text in ".{0,20}") {
        prop_assume!(sub != "bob");
        let assignment = assignment(json!([sub]), json!([{}]));
        let role = permission(&text, &[&text, "*"], &["*"]);
        prop_assert!(!allowed(&assignment, &role, &claim("images", "a", "get")));
    }
}
