//! The fields of a structural schema as rows of a Markdown table.

use serde_json::Value;

/// One field. Its order is that of its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    path: String,
    kind: String,
    constraints: String,
    description: String,
}

/// All fields below a schema, parents before children, in alphabetical order.
pub(crate) fn rows(schema: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    walk("", schema, &mut rows);
    rows.sort();
    rows
}

/// The rows of each of `all` that not every other has, and those that every one has.
pub(crate) fn split_common(all: Vec<Vec<Row>>) -> (Vec<Row>, Vec<Vec<Row>>) {
    let common: Vec<Row> = all.first().map_or_else(Vec::new, |first| {
        let everywhere = |row: &&Row| all.iter().all(|rows| rows.contains(row));
        first.iter().filter(everywhere).cloned().collect()
    });
    let own = |rows: Vec<Row>| rows.into_iter().filter(|r| !common.contains(r)).collect();
    let own = all.into_iter().map(own).collect();
    (common, own)
}

/// A Markdown table, or a sentence if there is nothing to show.
pub(crate) fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "None of its own.\n".into();
    }
    let mut out = String::from("| field | type | constraints | description |\n|---|---|---|---|\n");
    for row in rows {
        let cells = [
            format!("`{}`", row.path),
            row.kind.clone(),
            row.constraints.clone(),
            row.description.clone(),
        ];
        out += &format!("| {} |\n", cells.map(|c| c.replace('|', "\\|")).join(" | "));
    }
    out
}

/// Rules of a schema itself, as a list.
pub(crate) fn rules(schema: &Value) -> String {
    rule_texts(schema)
        .map(|rule| format!("- {rule}\n"))
        .collect()
}

fn walk(path: &str, schema: &Value, rows: &mut Vec<Row>) {
    let required = strings(&schema["required"]);
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let path = match path {
            "" => name.clone(),
            parent => format!("{parent}.{name}"),
        };
        rows.push(row(&path, child, required.contains(&name.as_str())));
        below(&path, child, rows);
    }
}

/// What is inside a field: its properties, or those of its items or values.
fn below(path: &str, schema: &Value, rows: &mut Vec<Row>) {
    walk(path, schema, rows);
    for (member, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[member].is_object() {
            below(&format!("{path}{suffix}"), &schema[member], rows);
        }
    }
}

fn row(path: &str, schema: &Value, required: bool) -> Row {
    let mut constraints = Vec::new();
    if required {
        constraints.push("required".to_owned());
    }
    limits(schema, "", &mut constraints);
    limits(&schema["items"], "each: ", &mut constraints);
    limits(&schema["additionalProperties"], "each: ", &mut constraints);
    constraints.extend(rule_texts(schema));
    Row {
        path: path.into(),
        kind: kind(schema),
        constraints: constraints.join("; "),
        description: text(&schema["description"]),
    }
}

fn kind(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".into();
    }
    match schema["type"].as_str() {
        Some("array") => format!("array of {}", kind(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(&schema["additionalProperties"]))
        }
        Some("object") if schema["x-kubernetes-preserve-unknown-fields"] == true => {
            "any object".into()
        }
        Some(kind) => kind.into(),
        None => "any".into(),
    }
}

fn limits(schema: &Value, prefix: &str, out: &mut Vec<String>) {
    const LIMITS: [(&str, &str, &str); 10] = [
        ("minimum", "at least ", ""),
        ("maximum", "at most ", ""),
        ("minLength", "at least ", " characters"),
        ("maxLength", "at most ", " characters"),
        ("minItems", "at least ", " items"),
        ("maxItems", "at most ", " items"),
        ("minProperties", "at least ", " entries"),
        ("maxProperties", "at most ", " entries"),
        ("pattern", "matches ", ""),
        ("format", "format ", ""),
    ];
    let choices: Vec<String> = schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .map(code)
        .collect();
    if !choices.is_empty() {
        out.push(format!("{prefix}one of {}", choices.join(", ")));
    }
    for (member, before, after) in LIMITS {
        let value = &schema[member];
        if member == "minLength" && *value == 1 {
            out.push(format!("{prefix}not empty"));
        } else if !value.is_null() && value != "int64" {
            // Integers are of 64 bits everywhere: no news.
            out.push(format!("{prefix}{before}{}{after}", code(value)));
        }
    }
    if !schema["default"].is_null() {
        out.push(format!("default {}", code(&schema["default"])));
    }
}

fn rule_texts(schema: &Value) -> impl Iterator<Item = String> {
    schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| match &rule["message"] {
            Value::Null => code(&rule["rule"]),
            message => text(message),
        })
}

fn code(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

fn text(value: &Value) -> String {
    let words = value.as_str().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

fn strings(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}
