//! The JSON Schema of the file and of its sections, from their types and doc comments.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A section's schema. TOML has no null, so neither has the schema of an optional key.
pub(super) fn schema_of<T: JsonSchema>() -> Json {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    without_null(&mut schema);
    schema
}

fn without_null(schema: &mut Json) {
    match schema {
        Json::Array(list) => list.iter_mut().for_each(without_null),
        Json::Object(map) => {
            if let Some(Json::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Json::Array(forms)) = map.get_mut("anyOf") {
                forms.retain(|form| form.get("type").is_none_or(|name| name != "null"));
                if let [Json::Object(only)] = forms.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.extend(only);
                }
            }
            map.values_mut().for_each(without_null);
        }
        _ => {}
    }
}

/// The keys of a section, with their schemas.
pub(super) fn properties(schema: &Json) -> BTreeMap<&str, &Json> {
    let map = schema.get("properties").and_then(Json::as_object);
    map.into_iter().flatten().map(|(key, schema)| (key.as_str(), schema)).collect()
}
