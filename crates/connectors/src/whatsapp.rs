//! Chats that were exported out of WhatsApp.

mod collect;
mod export;
mod parse;
mod stamps;
mod words;

use crate::FirstParty;

/// The row of the table.
pub(crate) const WHATSAPP: FirstParty = FirstParty {
    name: "whatsapp",
    manifest: include_str!("whatsapp/manifest.json"),
    needs: "exported chats (.txt or .zip) in the folder that WHATSAPP_EXPORT_DIR names",
    connector: &collect::WhatsApp,
};
