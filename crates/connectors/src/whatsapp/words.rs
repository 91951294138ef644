//! What WhatsApp itself writes into an export in place of a message: media, deletions, edits.
//!
//! Pure. The phrases are those of the languages that are most in use. What is not here stays text: nothing is lost,
//! it only is not told apart.

use super::stamps::is_mark;

/// What a message's text turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// What somebody wrote.
    Text(String),
    /// A file, by its name where the export tells it, and what was written under it.
    Media { name: Option<String>, caption: String },
    /// It was deleted for everyone.
    Deleted,
    /// WhatsApp says something.
    Notice(String),
}

/// What Android writes for a file that was not exported.
const OMITTED: [&str; 20] = [
    "<Media omitted>",
    "<Media weggelaten>",
    "<Medien ausgeschlossen>",
    "<Medien weggelassen>",
    "<Multimedia omitido>",
    "<Archivo omitido>",
    "<Médias omis>",
    "<Fichier omis>",
    "<Mídia oculta>",
    "<Arquivo de mídia oculto>",
    "<Ficheiro não revelado>",
    "<Media omessi>",
    "<Без медиафайлов>",
    "<Medya dahil edilmedi>",
    "<미디어 파일을 생략했습니다.>",
    "<メディアは含まれていません>",
    "<省略多媒体文件>",
    "<省略多媒體檔案>",
    "<تم استبعاد الوسائط>",
    "<Pominięto multimedia>",
];

/// The last word of what iPhones write, behind a mark: "image omitted".
const OMITTED_ENDS: [&str; 18] = [
    " omitted",
    " omitida",
    " omitido",
    " weggelassen",
    " absente",
    " absent",
    " omis",
    " omise",
    " manquant",
    " ocultada",
    " ocultado",
    " omessa",
    " omesso",
    " non incluso",
    " weggelaten",
    " çıkarıldı",
    "は含まれていません",
    "忽略",
];

/// What Android writes behind the name of a file.
const ATTACHED: [&str; 14] = [
    "(file attached)",
    "(archivo adjunto)",
    "(Datei angehängt)",
    "(arquivo anexado)",
    "(ficheiro anexado)",
    "(fichier joint)",
    "(file allegato)",
    "(bestand bijgevoegd)",
    "(файл добавлен)",
    "(файл прикреплён)",
    "(dosya ekli)",
    "(文件附件)",
    "(ファイル添付)",
    "(파일 첨부됨)",
];

const DELETED: [&str; 17] = [
    "This message was deleted",
    "You deleted this message",
    "Diese Nachricht wurde gelöscht",
    "Du hast diese Nachricht gelöscht",
    "Este mensaje fue eliminado",
    "Se eliminó este mensaje",
    "Eliminaste este mensaje",
    "Ce message a été supprimé",
    "Vous avez supprimé ce message",
    "Esta mensagem foi apagada",
    "Mensagem apagada",
    "Você apagou esta mensagem",
    "Questo messaggio è stato eliminato",
    "Hai eliminato questo messaggio",
    "Dit bericht is verwijderd",
    "Bu mesaj silindi",
    "Данное сообщение удалено",
];

const EDITED: [&str; 8] = [
    "<This message was edited>",
    "<Diese Nachricht wurde bearbeitet>",
    "<Diese Nachricht wurde bearbeitet.>",
    "<Se editó este mensaje.>",
    "<Se editó este mensaje>",
    "<Ce message a été modifié>",
    "<Mensagem editada>",
    "<Questo messaggio è stato modificato>",
];

impl Body {
    /// What a text is, and whether it was edited. On iPhones a mark tells what nobody typed.
    pub(crate) fn of(raw: &str) -> (Self, bool) {
        let is_marked = raw.starts_with('\u{200e}');
        let text = without_marks(raw);
        let edited = EDITED.iter().find_map(|words| text.strip_suffix(words));
        let is_edited = edited.is_some();
        let text = edited.map_or(text.as_str(), trim_end);
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let body = if let Some(name) = attached(first, is_marked) {
            Self::Media { name: Some(name.to_owned()), caption: rest.to_owned() }
        } else if OMITTED.contains(&first) || (is_marked && OMITTED_ENDS.iter().any(|end| first.ends_with(end))) {
            Self::Media { name: None, caption: rest.to_owned() }
        } else if let Some((caption, name)) = attached_below(text) {
            Self::Media { name: Some(name.to_owned()), caption: caption.to_owned() }
        } else if DELETED.contains(&text.trim_end_matches(['.', ' '])) {
            Self::Deleted
        } else if is_marked {
            Self::Notice(text.to_owned())
        } else {
            Self::Text(text.to_owned())
        };
        (body, is_edited)
    }

    /// The same for an export with media and for one without, so that both make one record.
    pub(crate) fn identity(&self) -> (u8, &str) {
        match self {
            Self::Text(text) => (0, text),
            Self::Media { caption, .. } => (1, caption),
            Self::Deleted => (2, ""),
            Self::Notice(text) => (3, text),
        }
    }
}

/// `<attached: 0001-PHOTO.jpg>` in any language, or `IMG-0001.jpg (file attached)`.
fn attached(line: &str, is_marked: bool) -> Option<&str> {
    if let Some(inner) = line.strip_prefix('<').and_then(|line| line.strip_suffix('>')) {
        let (word, name) = inner.split_once(':').or_else(|| inner.split_once('：'))?;
        return Some(name.trim()).filter(|name| word.chars().count() <= 30 && is_file_name(name));
    }
    let by_words = ATTACHED.iter().find_map(|words| line.strip_suffix(words));
    let by_mark = || line.strip_suffix(')').filter(|_| is_marked)?.rsplit_once(" (").map(|(name, _)| name);
    by_words.or_else(by_mark).map(str::trim_end).filter(|name| is_file_name(name))
}

/// iPhones put the file below its caption: `look at this <attached: 0001-PHOTO.jpg>`.
fn attached_below(text: &str) -> Option<(&str, &str)> {
    let (caption, rest) = text.rsplit_once('<')?;
    let name = attached(&text[text.len() - rest.len() - 1..], false)?;
    Some((trim_end(caption), name))
}

fn trim_end(text: &str) -> &str {
    text.trim_end_matches(|letter: char| letter.is_whitespace() || is_mark(letter))
}

/// Ends as a file does. A name is only ever shown: nothing is opened by it.
fn is_file_name(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let plain =
        |extension: &str| (1..=5).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    name.len() <= 255 && extension.is_some_and(plain)
}

/// Without what is there only for the direction of writing at the ends of lines. Inside of a line it may be
/// somebody's: Arabic and emoji need them.
pub(crate) fn without_marks(text: &str) -> String {
    let lines = text.split('\n').map(|line| line.trim_matches(|letter| is_mark(letter) && letter != '\u{200d}'));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(name: Option<&str>, caption: &str) -> Body {
        Body::Media { name: name.map(ToOwned::to_owned), caption: caption.to_owned() }
    }

    #[test]
    fn media_is_told_in_several_languages() {
        for (raw, name, caption) in [
            ("\u{200e}<attached: 00000012-PHOTO-2024-01-31.jpg>", Some("00000012-PHOTO-2024-01-31.jpg"), ""),
            ("\u{200e}<Anhang: 12-AUDIO.opus>", Some("12-AUDIO.opus"), ""),
            ("\u{200e}<pièce jointe : a.pdf>", Some("a.pdf"), ""),
            ("look \u{200e}<adjunto: 1.webp>", Some("1.webp"), "look"),
            ("IMG-20240131-WA0001.jpg (file attached)", Some("IMG-20240131-WA0001.jpg"), ""),
            ("\u{200e}IMG-1.jpg (palabras nuevas)\nmit Text", Some("IMG-1.jpg"), "mit Text"),
            ("My report.pdf (Datei angehängt)", Some("My report.pdf"), ""),
            ("<Media omitted>", None, ""),
            ("<Medien ausgeschlossen>\nschau", None, "schau"),
            ("\u{200e}image omitted", None, ""),
            ("\u{200e}Bild weggelassen", None, ""),
        ] {
            assert_eq!(Body::of(raw), (media(name, caption), false), "{raw}");
        }
    }

    #[test]
    fn what_somebody_typed_stays_text() {
        for raw in
            ["notes.txt (old version)", "<b>bold: yes</b>", "the image was omitted", "a < b: c > d", "<: >", "<>"]
        {
            assert_eq!(Body::of(raw), (Body::Text(raw.to_owned()), false), "{raw}");
        }
    }

    #[test]
    fn deletions_edits_and_notices_are_told_apart() {
        assert_eq!(Body::of("\u{200e}This message was deleted.").0, Body::Deleted);
        assert_eq!(Body::of("Du hast diese Nachricht gelöscht.").0, Body::Deleted);
        assert_eq!(Body::of("see you \u{200e}<This message was edited>"), (Body::Text("see you".into()), true));
        assert_eq!(Body::of("\u{200e}Missed voice call").0, Body::Notice("Missed voice call".into()));
    }

    #[test]
    fn an_export_with_media_and_one_without_have_one_identity() {
        let (with, without) = (Body::of("IMG-1.jpg (file attached)\nhi").0, Body::of("<Media omitted>\nhi").0);
        assert_eq!(with.identity(), without.identity());
        assert_ne!(with.identity(), Body::of("hi").0.identity(), "or any text would do");
    }
}
