//! The picture of a step that is to be done by hand: what the page looked like when the question was asked.
//!
//! Only of a question that waits, and only the file that its run named: a plain name in that run's folder. It is shown if
//! it is a picture by its content, and not by its name, and if it is not larger than a window can be. Links are not
//! followed. Nothing is ever written here.

use super::error_page::PageProblem;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::UrlPath;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::Look;
use gleaner_protocol::is_picture_name;
use gleaner_store::OpenQuestion;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The largest file. It is what a connector may write.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The most pixels: a wall of screens. A small file can claim to be much more, and a browser would believe it.
const PIXELS_MAX: u64 = 64 * 1024 * 1024;
/// How every PNG begins: its signature, and the length and name of its first part.
const BEGINNING: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// Whether a question has one to show; whether it can be shown is found out when it is asked for.
pub(super) fn is_named(question: &OpenQuestion) -> bool {
    question.picture.as_deref().is_some_and(is_picture_name) && is_plain(&question.run_id)
}

pub(crate) async fn of_question(State(state): Shared, UrlPath(id): UrlPath<i64>) -> Result<Response, PageProblem> {
    let root = state.app.root().to_owned();
    let bytes = state.reading.ask(move |reader| {
        let waiting = Look::new(reader)?.waiting;
        let question = waiting.iter().find(|question| question.id == id).filter(|question| is_named(question));
        let read = question.and_then(|question| read(&root, &question.run_id, question.picture.as_deref()?));
        read.ok_or_else(|| {
            Problem::not_found("this question has no picture, or does not wait any more", "the inbox lists what waits")
        })
    });
    let headers = [(CONTENT_TYPE, "image/png"), (CONTENT_DISPOSITION, "inline; filename=\"question.png\"")];
    Ok((headers, bytes.await?).into_response())
}

/// A run's name is the runtime's, and made of these. Any other has no folder of this name.
fn is_plain(run_id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !run_id.is_empty() && run_id.len() <= 100 && run_id.bytes().all(plain)
}

/// The file, if it is there and is a picture.
fn read(root: &Path, run_id: &str, name: &str) -> Option<Vec<u8>> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Not to be held up by a pipe that somebody put there.
    let file = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let runs = rustix::fs::open(root.join("runs"), folder, Mode::empty()).ok()?;
    let run = openat(&runs, run_id, folder, Mode::empty()).ok()?;
    let file = File::from(openat(&run, name, file, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    // It may have grown meanwhile.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= BYTES_MAX && is_picture(&bytes)).then_some(bytes)
}

fn is_picture(bytes: &[u8]) -> bool {
    let Some(size) = bytes.strip_prefix(BEGINNING).and_then(|rest| rest.first_chunk::<8>()) else { return false };
    let [a, b, c, d, e, f, g, h] = *size;
    let (width, height) = (u64::from(u32::from_be_bytes([a, b, c, d])), u64::from(u32::from_be_bytes([e, f, g, h])));
    width > 0 && height > 0 && width.saturating_mul(height) <= PIXELS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [BEGINNING, &width.to_be_bytes(), &height.to_be_bytes(), b"\x08\x06\0\0\0 and more"].concat()
    }

    #[test]
    fn a_picture_is_one_by_its_content_and_of_a_size_that_a_browser_can_show() {
        assert!(is_picture(&png(1280, 800)));
        let wrong: [&[u8]; 5] = [b"", b"<svg onload=x>", b"\x89PNG\r\n\x1a\n", &png(0, 5), &png(100_000, 100_000)];
        assert!(wrong.iter().all(|bytes| !is_picture(bytes)));
        assert!(!is_picture(&BEGINNING[1..]));
    }

    #[test]
    fn only_a_file_of_the_runs_own_folder_is_read_and_no_link_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("runs/run-1");
        std::fs::create_dir_all(&run).unwrap();
        std::fs::write(run.join("a.png"), png(9, 9)).unwrap();
        std::fs::write(root.path().join("out.png"), png(9, 9)).unwrap();
        std::fs::write(run.join("large.png"), [png(9, 9), vec![0; 8 * 1024 * 1024]].concat()).unwrap();
        std::fs::write(run.join("page.png"), "<html>").unwrap();
        symlink(root.path().join("out.png"), run.join("link.png")).unwrap();
        symlink(&run, root.path().join("runs/run-2")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, run.join("pipe.png"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read(root.path(), "run-1", "a.png"), Some(png(9, 9)));
        let refused = [
            ("run-1", "link.png"),
            ("run-1", "large.png"),
            ("run-1", "page.png"),
            ("run-1", "pipe.png"),
            ("run-1", "none.png"),
            ("run-2", "a.png"),
            ("run-3", "a.png"),
        ];
        for (run, name) in refused {
            assert_eq!(read(root.path(), run, name), None, "{run} {name}");
        }
        assert!(is_plain("notes-1") && !is_plain("..") && !is_plain("a/b") && !is_plain(""));
    }
}
