//! The page of `--html`: complete in itself, well-formed, and safe with text from files.

use crate::support::{BUCKET, folder, gleaner, scenario_file};

/// Every tag that is opened is closed, in order; text has no stray markup.
fn assert_well_formed(html: &str) {
    let mut open = Vec::new();
    let body = html.strip_prefix("<!DOCTYPE html>").expect("a document type");
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("each < is the start of a tag");
        assert!(!text.contains('>'), "stray > after <{tag}>: {text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag has a name"));
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "all closed");
}

#[test]
fn the_page_needs_nothing_but_itself_and_holds_every_chart() {
    let out = folder("html").join("page.html");
    let path = out.to_str().unwrap();
    let file = scenario_file("html-escape", BUCKET, "");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("about = '<script src=\"https://example.org\">&'\n{text}")).unwrap();
    let answer = gleaner(&["lab", "run", &file, "limit-falls", "--law", "gleaner,aimd", "--html", path, "--json"]);
    assert_eq!(answer.stdout.lines().count(), 8, "JSON and a page at once: {answer:?}");
    let html = std::fs::read_to_string(&out).unwrap();
    assert_well_formed(&html);
    for foreign in ["<script", "src=", "href=\"http", "url(", "@import", "<link", "<img"] {
        let text = html.replace("&lt;script src=&quot;https", "");
        assert!(!text.contains(foreign), "{foreign}");
    }
    assert!(html.contains("&lt;script src=&quot;https://example.org&quot;&gt;&amp;"));
    assert!(html.contains("prefers-color-scheme: dark"));
    assert_eq!(html.matches("<svg ").count(), 6, "per scenario: ours, aimd, and ours with one worker");
    let left: Vec<_> =
        std::fs::read_dir(out.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["page.html"], "nothing half-written is left");
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let path = folder("no-page").join("missing").join("page.html");
    let answer = gleaner(&["lab", "run", "bucket-bare", "--law", "aimd", "--html", path.to_str().unwrap()]);
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("page.html: cannot be written") && answer.stderr.contains("hint: "), "{answer:?}");
}
