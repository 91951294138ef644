//! The demonstration: a provider with a limit that nobody tells, and a connector for it. Both are real: HTTP
//! on loopback, a process of its own, the same run as with any other connector.

pub(crate) mod connector;
pub(crate) mod provider;

/// Where the connector finds the provider.
pub(crate) const URL: &str = "DEMO_URL";
/// How many notes the provider has.
pub(crate) const NOTES: u64 = 200;
/// Notes in a page of the list, and so in a slice.
pub(crate) const PAGE: u64 = 20;
/// Notes that are listed and not there: even a good provider has some.
pub(crate) const LOST: [u64; 2] = [37, 142];

pub(crate) const MANIFEST: &str = r#"{
  "connector_id": "gleaner-demo", "connector_key": "demo", "version": "1", "display_name": "Demonstration",
  "runtime_requirements": {"bindings": {"network": {"required": true}}, "environment_variables": ["DEMO_URL"]},
  "streams": [{
    "name": "notes", "semantics": "mutable_state", "primary_key": "id",
    "schema": {"type": "object", "required": ["id", "title"], "properties": {
      "id": {"type": "integer"}, "title": {"type": "string"}, "written_at": {"type": "string"}}}
  }]
}"#;
