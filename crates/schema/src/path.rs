//! Paths to fields, kept on the stack and written only when an error needs them.

use std::fmt::Write;

use crate::limits::PATH_STEP_LEN_MAX;

/// A path to a field of an object or of a schema.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The root.
    Root,
    /// `.name`
    Field(&'a Path<'a>, &'a str),
    /// `[key]`, as apimachinery writes map keys.
    Key(&'a Path<'a>, &'a str),
    /// `[3]`
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The path as text; empty for the root.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// The path as apimachinery prints it in an error: `<nil>` for the root.
    pub(crate) fn shown(&self) -> String {
        match self {
            Path::Root => "<nil>".to_owned(),
            _ => self.text(),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Path::Root => {}
            Path::Field(parent, name) => {
                parent.write(out);
                if !out.is_empty() {
                    out.push('.');
                }
                push_step(out, name);
            }
            Path::Key(parent, key) => {
                parent.write(out);
                out.push('[');
                push_step(out, key);
                out.push(']');
            }
            Path::Index(parent, index) => {
                parent.write(out);
                // Writing to a String cannot fail.
                let _ = write!(out, "[{index}]");
            }
        }
    }
}

/// Writes a name, or the beginning of a very long one.
fn push_step(out: &mut String, name: &str) {
    if name.len() <= PATH_STEP_LEN_MAX {
        out.push_str(name);
        return;
    }
    let end = name.floor_char_boundary(PATH_STEP_LEN_MAX);
    out.push_str(name.get(..end).unwrap_or_default());
    out.push_str("...");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_long_keys_are_shortened() {
        let (long, most) = ("é".repeat(1000), "x".repeat(PATH_STEP_LEN_MAX));
        let text = Path::Root.field(&long).key(&long).index(0).text();
        assert!(text.len() < 3 * PATH_STEP_LEN_MAX, "{text}");
        assert_eq!(Path::Root.field(&most).text(), most);
    }

    #[test]
    fn paths_are_written_as_apimachinery_writes_them() {
        let spec = Path::Root.field("spec");
        let list = spec.field("list");
        let item = list.index(2);
        assert_eq!(item.field("name").text(), "spec.list[2].name");
        assert_eq!(spec.key("a/b").text(), "spec[a/b]");
        assert_eq!(Path::Root.text(), "");
        assert_eq!(Path::Root.shown(), "<nil>");
    }
}
