//! Messages of Apple's Messages, out of its database on a Mac.

#[cfg(test)]
mod archive_tests;
mod buckets;
mod collect;
mod parse;
mod source;
mod tables;
mod typedstream;

use crate::FirstParty;

/// The row of the table.
pub(crate) const IMESSAGE: FirstParty = FirstParty {
    name: "imessage",
    manifest: include_str!("imessage/manifest.json"),
    needs: "~/Library/Messages/chat.db on a Mac (with Full Disk Access), or the file that IMESSAGE_DB_PATH names",
    connector: &collect::IMessage,
};
