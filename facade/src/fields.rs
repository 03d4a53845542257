//! Values at a path with lists in it, such as `dataVolumes[].deviceRef`.

use serde_json::Value;

/// A value and the exact path that leads to it, such as `dataVolumes[3].deviceRef`.
pub(crate) type Found<'a> = (String, &'a Value);

/// Every value at a path below `spec`, in order. `[]` stands for every element of a list.
pub(crate) fn find<'a>(spec: &'a Value, path: &str) -> Vec<Found<'a>> {
    let steps: Vec<&str> = path.split('.').collect();
    let mut found = Vec::new();
    walk(spec, &steps, String::new(), &mut found);
    found
}

fn walk<'a>(value: &'a Value, steps: &[&str], at: String, found: &mut Vec<Found<'a>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push((at, value));
        return;
    };
    let (name, list) = match step.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (*step, false),
    };
    let Some(value) = value.get(name).filter(|v| !v.is_null()) else {
        return;
    };
    let at = if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    };
    if !list {
        return walk(value, rest, at, found);
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        walk(item, rest, format!("{at}[{i}]"), found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_followed_at_any_depth() {
        let spec = json!({
            "boot": {"ref": 1},
            "disks": [{"ref": 2}, {}, {"ref": 3}],
            "rules": [{"from": ["a", "b"]}, {"from": null}, {"from": ["c"]}],
        });
        let paths = |path: &str| -> Vec<String> {
            let show = |(at, value): Found<'_>| format!("{at}={value}");
            find(&spec, path).into_iter().map(show).collect()
        };
        assert_eq!(paths("boot.ref"), ["boot.ref=1"]);
        assert_eq!(paths("disks[].ref"), ["disks[0].ref=2", "disks[2].ref=3"]);
        assert_eq!(
            paths("rules[].from[]"),
            [
                r#"rules[0].from[0]="a""#,
                r#"rules[0].from[1]="b""#,
                r#"rules[2].from[0]="c""#
            ]
        );
        assert!(paths("none[].ref").is_empty());
        assert!(paths("boot[]").is_empty());
    }
}
