//! One export: a text, or an archive with the text and the files that were sent.
//!
//! Everything about an archive comes from outside: how many names it says it has, how long a text gets, what the names
//! are. So its directory is measured before it is read, a text is unpacked up to a bound whatever it claims, and names
//! are only ever shown. What is unpacked lies in a file without a name, which is gone with the process.

use super::parse::{Outline, Sent};
use crate::files::{FilePath, Opened};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use zip::ZipArchive;

/// The longest text that is unpacked. WhatsApp exports 40,000 messages at most, which are some megabytes.
const UNPACKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
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
    /// Its name is that of an export, and no line of it begins with a date that is known.
    NotUnderstood,
    /// An archive that cannot be read, and why.
    Broken(String),
}

/// A chat with the files beside its text, by name.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// In UTF-8.
    pub(crate) text: File,
    pub(crate) outline: Outline,
    pub(crate) name: String,
    /// Letters of a text in UTF-16 that are none, and were replaced.
    pub(crate) letters_replaced: u64,
    /// Sizes of files in the archive; `None` for a text, whose files lie in its folder.
    pub(crate) archived: Option<BTreeMap<String, u64>>,
    /// There are more chats in the archive, which are left out.
    pub(crate) has_others: bool,
}

/// Reads an export, of which so much was sent before.
pub(crate) fn load(path: &FilePath, opened: &Opened, sent: Option<Sent>, buffer: &mut Vec<u8>) -> io::Result<Export> {
    if path.has_extension("zip") {
        return from_archive(path, opened.reader()?, sent, buffer);
    }
    let name = path.stem().to_lowercase();
    Ok(match chat_of(opened.reader()?, path, sent, buffer)? {
        Some(loaded) => Export::Chat(Box::new(loaded)),
        None if (name == "_chat" || name.contains("whatsapp")) && opened.stamp.size > 0 => Export::NotUnderstood,
        None => Export::NotAChat,
    })
}

fn from_archive(path: &FilePath, mut file: File, sent: Option<Sent>, buffer: &mut Vec<u8>) -> io::Result<Export> {
    if let Err(why) = check_directory(&mut file)? {
        return Ok(Export::Broken(why));
    }
    file.rewind()?;
    let mut archive = match ZipArchive::new(BufReader::new(file)) {
        Ok(archive) => archive,
        Err(fault) => return Ok(Export::Broken(format!("the archive cannot be read: {fault}"))),
    };
    let (mut texts, mut files, mut fault) = (Vec::new(), BTreeMap::new(), None);
    for at in 0..archive.len() {
        let entry = match archive.by_index_data(at) {
            Ok(entry) => entry,
            Err(error) => {
                fault = Some(format!("entry {at} of the archive cannot be read: {error}"));
                continue;
            }
        };
        // A name that is no text is that of a file that was sent, not that of the chat.
        let Some(name) = entry.name().ok().and_then(|name| last_name(&name).map(ToOwned::to_owned)) else { continue };
        if name.to_lowercase().ends_with(".txt") {
            texts.push((text_rank(&name), at));
        }
        files.insert(name, entry.size());
    }
    texts.sort_unstable();
    let chats = texts.iter().filter(|(rank, _)| *rank < OTHER_TEXT).count();
    let tried = texts.len().min(CANDIDATES_MAX);
    for (nth, &(_, at)) in texts[..tried].iter().enumerate() {
        let text = match unpack(&mut archive, at) {
            Ok(text) => text,
            Err(error) => {
                fault = Some(format!("the text in the archive cannot be read: {error}"));
                continue;
            }
        };
        if let Some(mut loaded) = chat_of(text, path, sent, buffer)? {
            let others = texts[nth + 1..tried].iter().map(|&(_, at)| at);
            loaded.has_others = chats > 1 || any_is_chat(&mut archive, others, buffer)?;
            loaded.archived = Some(files);
            return Ok(Export::Chat(Box::new(loaded)));
        }
    }
    if texts.len() > tried {
        fault = fault.or_else(|| Some("no chat is among the first texts in the archive".to_owned()));
    }
    Ok(match fault {
        Some(why) => Export::Broken(why),
        None if chats > 0 => Export::NotUnderstood,
        None => Export::NotAChat,
    })
}

/// Whether one of these texts begins with a message: a document that was sent does not.
fn any_is_chat(
    archive: &mut ZipArchive<BufReader<File>>,
    texts: impl Iterator<Item = usize>,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    for at in texts {
        let Ok(text) = unpack(archive, at) else { continue };
        let outline = Outline::read(&in_utf8(text)?.0, None, buffer)?;
        if outline.is_some_and(|outline| outline.lines_before == 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Unpacks a text into a file without a name.
fn unpack(archive: &mut ZipArchive<BufReader<File>>, at: usize) -> io::Result<File> {
    let mut text = tempfile::tempfile()?;
    let entry = archive.by_index(at).map_err(io::Error::other)?;
    let bytes = io::copy(&mut entry.take(UNPACKED_BYTES_MAX + 1), &mut text)?;
    if bytes > UNPACKED_BYTES_MAX {
        return Err(io::Error::other("it has more than 2 GiB; unpack the archive, and put the folder in its place"));
    }
    Ok(text)
}

/// The chat's own text first.
fn text_rank(name: &str) -> u8 {
    match name {
        "_chat.txt" => 0,
        _ if name.to_lowercase().contains("whatsapp") => 1,
        _ => OTHER_TEXT,
    }
}

/// The rank of a text whose name is not that of a chat.
const OTHER_TEXT: u8 = 2;

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

fn chat_of(text: File, path: &FilePath, sent: Option<Sent>, buffer: &mut Vec<u8>) -> io::Result<Option<Loaded>> {
    let (text, letters_replaced) = in_utf8(text)?;
    let outline = Outline::read(&text, sent, buffer)?;
    let loaded = |outline| {
        let name = chat_name(path);
        Loaded { text, outline, name, letters_replaced, archived: None, has_others: false }
    };
    Ok(outline.map(loaded))
}

/// A text in UTF-8, and how many letters had to be replaced. Exports are UTF-8; an editor may have saved them otherwise.
fn in_utf8(text: File) -> io::Result<(File, u64)> {
    let mut mark = [0; 2];
    let order: fn([u8; 2]) -> u16 = match text.read_at(&mut mark, 0)? {
        2 if mark == [0xff, 0xfe] => u16::from_le_bytes,
        2 if mark == [0xfe, 0xff] => u16::from_be_bytes,
        _ => return Ok((text, 0)),
    };
    let mut reader = BufReader::new(text);
    reader.seek(SeekFrom::Start(2))?;
    let (mut failed, mut replaced) = (None, 0);
    let units = std::iter::from_fn(|| {
        let mut unit = [0; 2];
        match reader.read_exact(&mut unit) {
            Ok(()) => Some(order(unit)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    let mut writer = BufWriter::new(tempfile::tempfile()?);
    for letter in char::decode_utf16(units) {
        replaced += u64::from(letter.is_err());
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        writer.write_all(letter.encode_utf8(&mut [0; 4]).as_bytes())?;
    }
    match failed {
        Some(error) => Err(error),
        None => Ok((writer.into_inner().map_err(io::IntoInnerError::into_error)?, replaced)),
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
        let read = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let (file, replaced) = in_utf8(file).unwrap();
            let mut text = vec![0; 99];
            let length = file.read_at(&mut text, 0).unwrap();
            (String::from_utf8_lossy(&text[..length]).into_owned(), replaced)
        };
        let text = "1/2/24, 10:00 - Zoë: hi 😀";
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let wide = order(0xfeff).into_iter().chain(text.encode_utf16().flat_map(order)).collect::<Vec<_>>();
            assert_eq!(read(&wide), (text.to_owned(), 0));
        }
        assert_eq!(read(&[0xff, 0xfe, 0x00, 0xd8, b'a', 0]), ("\u{fffd}a".to_owned(), 1));
        assert_eq!((read(&[0xff, 0xfe]), read(text.as_bytes())), ((String::new(), 0), (text.to_owned(), 0)));
    }
}
