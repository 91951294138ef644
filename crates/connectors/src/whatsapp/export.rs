//! One export: a text, or an archive with the text and the files that were sent.
//!
//! Everything about an archive comes from outside: how many names it says it has, how long a text gets, what the names
//! are. So its directory is measured before it is read, a text is read up to a bound whatever it claims, and names are
//! only ever shown. Nothing is unpacked.

use super::parse::{Chat, NotAChat};
use crate::files::{FilePath, Opened};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use zip::ZipArchive;

/// The longest text of one chat. WhatsApp exports 40,000 messages at most, which are some megabytes.
pub(crate) const TEXT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The longest directory of an archive: 10,000 files, which is what WhatsApp exports at most, take 1 MiB.
const DIRECTORY_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// How far from the end an archive's last record may begin: it may have a comment.
const TAIL_BYTES: u64 = 65_536 + 22;
/// Texts of an archive that are tried: a document that was sent may be one, too.
const CANDIDATES_MAX: usize = 5;

/// What an export turned out to be.
#[derive(Debug)]
pub(crate) enum Export {
    Chat(Box<Loaded>),
    /// Something else.
    NotAChat,
    TooLarge,
    TooManyMessages,
    /// An archive that cannot be read, and why.
    Broken(String),
}

/// A chat with the files beside its text, by name.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) chat: Chat,
    pub(crate) name: String,
    /// Bytes were no text in any encoding that is known, and were replaced.
    pub(crate) has_wrong_encoding: bool,
    /// Sizes of files in the archive; `None` for a text, whose files lie in its folder.
    pub(crate) archived: Option<BTreeMap<String, u64>>,
}

/// Reads an export.
pub(crate) fn load(path: &FilePath, opened: &Opened) -> io::Result<Export> {
    if path.has_extension("zip") {
        return from_archive(path, opened.reader()?);
    }
    let Some(bytes) = opened.read_whole(TEXT_BYTES_MAX)? else { return Ok(Export::TooLarge) };
    Ok(chat_of(bytes, chat_name(path), None))
}

fn from_archive(path: &FilePath, mut file: File) -> io::Result<Export> {
    if let Err(why) = check_directory(&mut file)? {
        return Ok(Export::Broken(why));
    }
    file.rewind()?;
    let mut archive = match ZipArchive::new(io::BufReader::new(file)) {
        Ok(archive) => archive,
        Err(fault) => return Ok(Export::Broken(format!("the archive cannot be read: {fault}"))),
    };
    let (mut texts, mut files) = (Vec::new(), BTreeMap::new());
    for at in 0..archive.len() {
        let Ok(entry) = archive.by_index_data(at) else { continue };
        let Some(name) = entry.name().ok().and_then(|name| last_name(&name).map(ToOwned::to_owned)) else { continue };
        if name.to_lowercase().ends_with(".txt") {
            texts.push((text_rank(&name), at));
        }
        files.insert(name, entry.size());
    }
    texts.sort_unstable();
    let mut export = Export::NotAChat;
    for (_, at) in texts.into_iter().take(CANDIDATES_MAX) {
        let mut bytes = Vec::new();
        let read = archive
            .by_index(at)
            .map_err(io::Error::other)
            .and_then(|entry| entry.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
        export = match read {
            Ok(_) if bytes.len() > TEXT_BYTES_MAX => Export::TooLarge,
            Ok(_) => chat_of(bytes, chat_name(path), Some(&files)),
            Err(fault) => Export::Broken(format!("the text in the archive cannot be read: {fault}")),
        };
        if matches!(export, Export::Chat(_)) {
            break;
        }
    }
    Ok(export)
}

/// The chat's own text first.
fn text_rank(name: &str) -> u8 {
    match name {
        "_chat.txt" => 0,
        _ if name.to_lowercase().contains("whatsapp") => 1,
        _ => 2,
    }
}

/// The last part of a name in an archive, which may be any text: `../../etc/passwd` is called `passwd`.
fn last_name(name: &str) -> Option<&str> {
    name.rsplit(['/', '\\']).next().filter(|name| !name.is_empty() && *name != "." && *name != "..")
}

/// Whether the directory of an archive is one that is worth reading: it is all read at once, and its size is its
/// maker's claim.
fn check_directory(file: &mut File) -> io::Result<Result<(), String>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let Some(at) = tail.windows(4).rposition(|four| four == b"PK\x05\x06") else {
        return Ok(Err("it has no end, so it was cut off or is no archive".to_owned()));
    };
    let field = |from: usize| {
        tail.get(at + from..at + from + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    };
    Ok(match field(12) {
        Some(bytes) if bytes <= DIRECTORY_BYTES_MAX => Ok(()),
        _ => {
            Err("it says that it has more files than an export has; unpack it, and put the folder in its place"
                .to_owned())
        }
    })
}

fn chat_of(bytes: Vec<u8>, name: String, archived: Option<&BTreeMap<String, u64>>) -> Export {
    let (text, has_wrong_encoding) = decode(bytes);
    match Chat::read(text) {
        Ok(chat) => Export::Chat(Box::new(Loaded { chat, name, has_wrong_encoding, archived: archived.cloned() })),
        Err(NotAChat::NoMessages) => Export::NotAChat,
        Err(NotAChat::TooManyMessages) => Export::TooManyMessages,
    }
}

/// A text, and whether bytes had to be replaced. Exports are UTF-8; an editor may have saved them otherwise.
fn decode(bytes: Vec<u8>) -> (String, bool) {
    let wide = |order: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
        let text =
            char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>();
        let is_wrong = text.contains(char::REPLACEMENT_CHARACTER);
        (text, is_wrong)
    };
    if bytes.starts_with(&[0xff, 0xfe]) {
        return wide(u16::from_le_bytes);
    }
    if bytes.starts_with(&[0xfe, 0xff]) {
        return wide(u16::from_be_bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(fault) => (String::from_utf8_lossy(fault.as_bytes()).into_owned(), true),
    }
}

/// What an export is called in front of the chat's name.
const PREFIXES: [&str; 15] = [
    "WhatsApp Chat with ",
    "WhatsApp Chat - ",
    "WhatsApp Chat mit ",
    "WhatsApp-Chat mit ",
    "Chat de WhatsApp con ",
    "Conversa do WhatsApp com ",
    "Discussion WhatsApp avec ",
    "Chat WhatsApp con ",
    "WhatsApp-chat met ",
    "WhatsApp-chatt med ",
    "WhatsApp-chat med ",
    "Чат WhatsApp с контактом ",
    "Czat WhatsApp z ",
    "Percakapan WhatsApp dengan ",
    "WhatsApp Sohbeti - ",
];

/// The chat's name, as the file's name tells it: the same for a text, an archive, a folder, and a second download.
fn chat_name(path: &FilePath) -> String {
    let stem = path.stem();
    let folder = path.folders().pop();
    let name = if stem == "_chat" { folder.unwrap_or(stem) } else { stem };
    let name = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name);
    let is_copy =
        |number: &str| !number.is_empty() && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
    let copied = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")).filter(|(_, number)| is_copy(number));
    copied.map_or(name, |(name, _)| name).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> String {
        chat_name(&FilePath::parse(path).unwrap())
    }

    #[test]
    fn a_chat_is_called_the_same_wherever_its_export_lies() {
        for path in [
            "WhatsApp Chat with Alice.txt",
            "WhatsApp Chat with Alice (1).txt",
            "WhatsApp Chat - Alice.zip",
            "old/WhatsApp Chat - Alice (12).zip",
            "WhatsApp Chat - Alice/_chat.txt",
            "WhatsApp-Chat mit Alice.txt",
            "Alice.zip",
        ] {
            assert_eq!(name(path), "Alice", "{path}");
        }
        assert_eq!(name("WhatsApp Chat with Team (Berlin).txt"), "Team (Berlin)");
        assert_eq!(name("_chat.txt"), "_chat");
    }

    #[test]
    fn names_in_an_archive_lead_nowhere() {
        assert_eq!(last_name("../../etc/passwd"), Some("passwd"));
        assert_eq!(last_name("a\\..\\b.jpg"), Some("b.jpg"));
        assert_eq!(last_name("folder/"), None);
        assert_eq!(last_name(".."), None);
    }

    #[test]
    fn an_export_in_another_encoding_is_read() {
        let text = "1/2/24, 10:00 - Zoë: hi";
        let wide = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decode(wide), (text.to_owned(), false));
        let (read, is_wrong) = decode(b"1/2/24, 10:00 - Zo\xeb: hi".to_vec());
        assert!(is_wrong && read.contains("Zo\u{fffd}: hi"));
        assert_eq!(decode(vec![0xff, 0xfe]), (String::new(), false));
    }
}
