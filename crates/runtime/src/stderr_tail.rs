//! The end of what a connector wrote to its errors: free text, kept short and without secrets.
//!
//! A connector may write gigabytes there. The last 16 KiB are kept and how much was dropped is said.
//! The connection's own secrets are masked before anything is kept, also where a read cut one in two.

use gleaner_engine::Redactor;

/// How much is kept. From the contract.
const TAIL_BYTES: usize = 16 * 1024;

/// A tail that is being filled.
#[derive(Debug)]
pub(crate) struct StderrTail {
    redactor: Redactor,
    /// Masked text.
    kept: String,
    /// What may be the beginning of a secret, not yet masked.
    open: Vec<u8>,
    seen: u64,
}

impl StderrTail {
    pub(crate) const fn new(redactor: Redactor) -> Self {
        Self { redactor, kept: String::new(), open: Vec::new(), seen: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        self.open.extend_from_slice(bytes);
        // Whole lines first: a secret has no line feed. A line without end is cut where a secret cannot
        // be cut with it.
        let end = match self.open.iter().rposition(|&byte| byte == b'\n') {
            Some(at) => at + 1,
            None => self.open.len().saturating_sub(TAIL_BYTES + self.redactor.longest()),
        };
        let done = self.open.drain(..end).collect::<Vec<_>>();
        let masked = self.redactor.mask(&String::from_utf8_lossy(&done));
        self.kept.push_str(&masked);
        cut_front(&mut self.kept, TAIL_BYTES);
    }

    /// What is kept, with what is said about the rest.
    pub(crate) fn text(&self) -> String {
        let mut text = self.kept.clone();
        text.push_str(&self.redactor.mask(&String::from_utf8_lossy(&self.open)));
        cut_front(&mut text, TAIL_BYTES);
        let dropped = self.seen.saturating_sub(text.len() as u64);
        if self.seen > TAIL_BYTES as u64 { format!("({dropped} bytes dropped)\n{text}") } else { text }
    }
}

fn cut_front(text: &mut String, max: usize) {
    let mut from = text.len().saturating_sub(max);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.drain(..from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_the_rest_is_counted() {
        let mut tail = StderrTail::new(Redactor::default());
        for n in 0..100_000 {
            tail.push(format!("line {n}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.ends_with("line 99999\n"));
        assert!(text.len() < TAIL_BYTES + 100);
        assert!(text.starts_with("(10"), "{}", &text[..40]);
        let mut endless = StderrTail::new(Redactor::default());
        for _ in 0..1000 {
            endless.push(&[b'x'; 1000]);
        }
        assert!(endless.open.len() + endless.kept.len() < 3 * TAIL_BYTES, "no line feed, and still bounded");
    }

    #[test]
    fn a_secret_is_masked_wherever_a_read_cuts_it() {
        let redactor = || Redactor::new(["s3cr3t-value".to_owned()]);
        for cut in 0..30 {
            let mut tail = StderrTail::new(redactor());
            let text = "token s3cr3t-value used\nnext";
            tail.push(&text.as_bytes()[..cut.min(text.len())]);
            tail.push(&text.as_bytes()[cut.min(text.len())..]);
            assert!(!tail.text().contains("s3cr3t"), "cut at {cut}: {}", tail.text());
            assert!(tail.text().contains("used\nnext"));
        }
    }
}
