//! The JSON Schema (2020-12) of a fleet file, made from the tables that the loader itself reads
//! ([`super::keys`] and [`Harness::option_table`](crate::harness::Harness::option_table)).
//!
//! It is for editors: what the loader accepts, the schema accepts. It does not judge what needs more than
//! one key, the grammar of a text, or a file system; the loader does. In one thing it is stricter: options
//! of `defaults` that no role inherits are checked too.

use serde_json::{Map, Value, json};

use super::keys::{self, DEFAULTS, DROP_IN, Key, Kind, TOP};
use crate::harness::Harnesses;

/// Which file a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaOf {
    /// `fleet.yaml`.
    Base,
    /// A file of `fleet.d`.
    DropIn,
}

/// Keys where a written `null` has a meaning of its own.
const NULL: &[&str] = &["model", "start_stagger_ms"];
/// A text that holds a variable: what it becomes is not known before it is put in.
const VARIABLE: &str = r"\$\{[A-Za-z0-9_]+\}";

/// Makes the schema. `harnesses` are those that a file may name: their tables say which options exist,
/// and a harness without a table takes any.
pub fn schema(of: SchemaOf, harnesses: &Harnesses) -> Value {
    let (table, title) = match of {
        SchemaOf::Base => (TOP, "fleet.yaml of ours-fleet"),
        SchemaOf::DropIn => (DROP_IN, "a drop-in file of ours-fleet (fleet.d/*.yaml)"),
    };
    let mut maker = Maker { harnesses, shared: Map::new() };
    let mut whole = maker.block(table, false);
    for id in harnesses.ids() {
        let options = harnesses.get(id).and_then(|harness| harness.option_table());
        let value = match options {
            Some(table) => maker.block(table, true),
            None => json!({ "type": "object" }),
        };
        maker.shared.insert(options_name(id), value);
    }
    whole["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    whole["title"] = json!(title);
    // An empty file is an empty fleet.
    whole["type"] = json!(["object", "null"]);
    whole["$defs"] = Value::Object(maker.shared);
    whole
}

fn options_name(harness: &str) -> String {
    format!("options of {harness}")
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{}", name.replace(' ', "%20")) })
}

struct Maker<'a> {
    harnesses: &'a Harnesses,
    /// Blocks by name, written once however often they are used.
    shared: Map<String, Value>,
}

impl Maker<'_> {
    /// A mapping with these keys and no others. `partial`: what is required may come from elsewhere.
    fn block(&mut self, table: &'static [Key], partial: bool) -> Value {
        let mut properties = Map::new();
        for key in table {
            properties.insert(key.name.to_owned(), self.key(key));
        }
        let mut block = json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        });
        let required: Vec<&str> =
            table.iter().filter(|key| key.default == "required").map(|key| key.name).collect();
        if !partial && !required.is_empty() {
            block["required"] = json!(required);
        }
        if table.iter().any(|key| key.name == "harness_options") {
            block["allOf"] = self.options_by_harness();
        }
        block
    }

    /// The options belong to the harness that is written beside them, where one is.
    fn options_by_harness(&self) -> Value {
        let rule = |id: &str| {
            json!({
                "if": { "properties": { "harness": { "const": id } }, "required": ["harness"] },
                "then": { "properties": { "harness_options": reference(&options_name(id)) } },
            })
        };
        self.harnesses.ids().map(rule).collect()
    }

    fn key(&mut self, key: &'static Key) -> Value {
        let mut value = match (key.name, &key.kind) {
            ("harness", _) => self.harness(),
            ("harness_options", _) => self.any_options(),
            ("permissions", Kind::Block(table)) => self.permissions(table),
            ("roles", Kind::Names(Kind::Block(table))) => self.roles(table),
            (name, kind) => self.kind(name, kind),
        };
        if NULL.contains(&key.name) {
            value = json!({ "anyOf": [value, { "type": "null" }] });
        }
        let default = match key.default {
            "" | "required" => String::new(),
            text => format!(" Default: {text}."),
        };
        value["description"] = json!(format!("{}{default}", key.doc));
        value
    }

    fn kind(&mut self, name: &str, kind: &'static Kind) -> Value {
        match kind {
            Kind::Any => json!({}),
            Kind::Text => json!({ "type": "string" }),
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Number => json!({ "type": "number", "minimum": 0 }),
            Kind::Integer => json!({ "type": "integer", "minimum": 0 }),
            Kind::Words(words) => of_words(words.iter().copied()),
            Kind::List(kind) => json!({ "type": "array", "items": self.kind(name, kind) }),
            Kind::Names(kind) => {
                json!({ "type": "object", "additionalProperties": self.kind(name, kind) })
            }
            Kind::Either(kinds) => {
                let kinds: Vec<Value> = kinds.iter().map(|kind| self.kind(name, kind)).collect();
                json!({ "anyOf": kinds })
            }
            Kind::Block(table) => {
                // What stands in the defaults is united with what stands on the role.
                let partial = keys::names(DEFAULTS).any(|key| key == name);
                let block = self.block(table, partial);
                self.share(name, block)
            }
        }
    }

    /// A reference to a block, unless another one has that name.
    fn share(&mut self, name: &str, block: Value) -> Value {
        match self.shared.get(name) {
            Some(other) if *other != block => block,
            Some(_) => reference(name),
            None => {
                self.shared.insert(name.to_owned(), block);
                reference(name)
            }
        }
    }

    fn harness(&self) -> Value {
        of_words(self.harnesses.ids())
    }

    /// Options where nobody wrote a harness beside them: those of any.
    fn any_options(&self) -> Value {
        let all: Vec<Value> = self.harnesses.ids().map(|id| reference(&options_name(id))).collect();
        json!({ "anyOf": all })
    }

    /// With the deprecated word that the loader still takes.
    fn permissions(&mut self, table: &'static [Key]) -> Value {
        let mut block = self.block(table, true);
        if let Some(words) = block["properties"]["approval"]["anyOf"].as_array_mut() {
            words.push(json!({ "const": "deny", "deprecated": true }));
        }
        self.share("permissions", block)
    }

    /// A role without keys may be written as nothing.
    fn roles(&mut self, table: &'static [Key]) -> Value {
        let block = self.block(table, false);
        let role = self.share("role", block);
        json!({ "type": "object", "additionalProperties": { "anyOf": [role, { "type": "null" }] } })
    }
}

fn of_words<'w>(words: impl Iterator<Item = &'w str>) -> Value {
    let words: Vec<&str> = words.collect();
    json!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": VARIABLE }] })
}
