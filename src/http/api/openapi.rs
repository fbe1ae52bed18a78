//! The description of the operator API (OpenAPI 3.1), assembled from the types of its bodies.
//!
//! Invariant: what is served is the checked-in file, and a test keeps that equal to what is assembled.

use super::types::{Interactions, NewTask, Registered};
use super::{AUDIT, AUDIT_PAGE, INTERACTIONS, LARGEST_PAGE, OPENAPI, PAGE, TASKS};
use crate::domain::audit_file::COLUMNS;
use crate::http::problem;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// What is served.
pub const CHECKED_IN: &str = include_str!("../openapi.json");

const BASE: &str = "/components/schemas";

/// Assembles the document.
#[must_use]
pub fn document() -> Value {
    let settings = || SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = BASE.into());
    let mut reading = settings().for_deserialize().into_generator();
    let mut writing = settings().for_serialize().into_generator();
    let task = content::<NewTask>(&mut reading);
    let registered = content::<Registered>(&mut writing);
    let interactions = content::<Interactions>(&mut writing);
    // Named in the errors below.
    let _ = writing.subschema_for::<problem::Body<'static>>();
    let mut schemas: Map<String, Value> = writing.take_definitions(true);
    schemas.extend(reading.take_definitions(true));
    schemas.insert("AuditRow".into(), audit_row());

    let number = |name: &str, text: &str, least: i64, most: Option<i64>, default: i64| {
        let mut schema = json!({ "type": "integer", "minimum": least, "default": default });
        if let Some(most) = most {
            schema["maximum"] = most.into();
        }
        json!({ "name": name, "in": "query", "description": text, "schema": schema })
    };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign operator API",
            "version": "1",
            "description": "Reading what is open and what was decided, and registering tasks to watch. \
                Nothing in this API clicks, answers or links.",
        },
        "security": [{ "operatorToken": [] }],
        "paths": {
            INTERACTIONS: { "get": {
                "operationId": "listInteractions",
                "summary": "Interactions with their cards, votes, claim and outcome, oldest first.",
                "parameters": [
                    { "name": "state", "in": "query",
                      "description": "`open`: everything that has not ended, also what is being answered.",
                      "schema": { "type": "string", "enum": ["open", "all"], "default": "open" } },
                    { "name": "cursor", "in": "query", "description": "The `next` of the page before.",
                      "schema": { "type": "string" } },
                    number("limit", "How many at most.", 1, Some(LARGEST_PAGE), PAGE),
                ],
                "responses": responses("200", "A page.", &interactions, &["400"]),
            } },
            TASKS: { "post": {
                "operationId": "registerTask",
                "summary": "Watches an A2A task from now on. Idempotent.",
                "description": "With `subject`, the task is read as that subject; once that has succeeded, the \
                    subject counts as the one for whom the agent works. On a runtime that lets every subject read \
                    every task, that is the registering program's word.",
                "requestBody": { "required": true, "content": task },
                "responses": responses("202", "The task will be read.", &registered, &["400", "413", "415", "422"]),
            } },
            AUDIT: { "get": {
                "operationId": "readAudit",
                "summary": "Rows of the audit log, ascending.",
                "description": "JSON Lines, as `countersign audit export` writes them; one JSON object with \
                    `Accept: application/json`. An empty answer is the end; go on at the last `seq` + 1.",
                "parameters": [
                    number("from", "The first `seq`.", 0, None, 1),
                    number("limit", "How many at most.", 1, Some(AUDIT_PAGE), AUDIT_PAGE),
                ],
                "responses": responses("200", "Rows.", &json!({
                    "application/x-ndjson": { "schema": { "$ref": "#/components/schemas/AuditRow" } },
                    "application/json": { "schema": {
                        "type": "object",
                        "required": ["rows", "next"],
                        "properties": {
                            "rows": { "type": "array", "items": { "$ref": "#/components/schemas/AuditRow" } },
                            "next": { "type": ["integer", "null"], "description": "The `from` of the next page." },
                        },
                    } },
                }), &["400"]),
            } },
            OPENAPI: { "get": {
                "operationId": "describe",
                "summary": "This document.",
                "responses": responses("200", "OpenAPI 3.1.", &json!({
                    "application/json": { "schema": { "type": "object" } },
                }), &[]),
            } },
        },
        "components": {
            "securitySchemes": { "operatorToken": {
                "type": "http", "scheme": "bearer", "description": "The value of `server.operator_token`.",
            } },
            "schemas": schemas,
        },
    })
}

/// The document as it is checked in.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", document())
}

fn content<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    json!({ "application/json": { "schema": generator.subschema_for::<T>() } })
}

fn responses(status: &str, text: &str, content: &Value, errors: &[&str]) -> Value {
    let mut all = Map::new();
    all.insert(status.into(), json!({ "description": text, "content": content }));
    let always = ["401", "403", "500", "503"];
    for error in errors.iter().chain(&always) {
        let text = match *error {
            "400" => "The request cannot be understood; `field` names what is wrong.",
            "401" => "The operator token is missing or wrong.",
            "403" => "No operator token is configured.",
            "413" => "The body is too big.",
            "415" => "The body is not said to be JSON.",
            "422" => "A field is missing, unknown or names something that is not there; `field` says which.",
            "500" => "Something went wrong here.",
            _ => "Not now; try again.",
        };
        let problem =
            json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
        all.insert((*error).into(), json!({ "description": text, "content": problem }));
    }
    Value::Object(all)
}

/// The audit log's columns: texts or null, `seq` a number; those that every row has are not null.
fn audit_row() -> Value {
    let properties: Map<String, Value> = COLUMNS
        .iter()
        .map(|column| {
            let kind = match *column {
                "seq" => json!("integer"),
                "at" | "event" | "prev" | "hash" => json!("string"),
                _ => json!(["string", "null"]),
            };
            ((*column).to_owned(), json!({ "type": kind }))
        })
        .collect();
    json!({ "type": "object", "required": COLUMNS, "properties": properties, "additionalProperties": false })
}
