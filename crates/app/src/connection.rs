//! Connections as they are described and started: catalog of connectors, settings, credentials, and adding one.

pub(crate) mod add_request;
pub(crate) mod catalog;
pub(crate) mod connector_form;
pub(crate) mod credentials;
pub(crate) mod new_connection;
pub(crate) mod setting_name;
pub(crate) mod settings;
