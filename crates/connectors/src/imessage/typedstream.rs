//! The text of a message out of `attributedBody`, in which Messages keeps it since macOS 13.
//!
//! It is a "typedstream", the archive of NeXTSTEP: values behind the codes of their types, with objects, classes and
//! texts that are written once and then referred to by number. What is wanted is the text of the first string object,
//! so everything before it is read and nothing after it. Pure; every length is held against what is there, depth and
//! steps have a bound, and what is not understood is `None` and never a guess.

/// How deep objects and classes may lie in each other. The text of a message lies four deep.
const DEPTH_MAX: usize = 32;
/// How many values are read before the text has to have come. It is among the first ten.
const STEPS_MAX: usize = 10_000;

/// Codes that stand in place of a number or a beginning.
const TWO_BYTES: u8 = 0x81;
const FOUR_BYTES: u8 = 0x82;
const NEW: u8 = 0x84;
const NIL: u8 = 0x85;
const END: u8 = 0x86;
/// The number of the first reference.
const FIRST_REFERENCE: i64 = -110;

/// The text of the first string in the archive.
pub(crate) fn text(archive: &[u8]) -> Option<String> {
    let mut reader = Reader { rest: archive, names: Vec::new(), objects: Vec::new(), depth: 0, steps: 0 };
    reader.header()?;
    loop {
        match reader.group(false)? {
            Value::Text(text) => return Some(text),
            Value::Other => {}
        }
    }
}

/// What reading something led to.
enum Value {
    /// The text that is looked for: nothing more is read.
    Text(String),
    Other,
}

/// How something begins that is written once: not at all, anew, or as a reference to an earlier one.
enum Begin {
    Nothing,
    New,
    Known(usize),
}

struct Reader<'a> {
    rest: &'a [u8],
    /// Names of classes and codes of types, which are written once.
    names: Vec<&'a [u8]>,
    /// Objects and classes, which are written once. Of each only whether it is a class of strings.
    objects: Vec<bool>,
    depth: usize,
    steps: usize,
}

impl<'a> Reader<'a> {
    fn header(&mut self) -> Option<()> {
        let version = self.byte()?;
        let length = self.byte()?;
        let signature = self.bytes(usize::from(length))?;
        // The other byte order was that of machines that never had Messages.
        (version == 4 && signature == b"streamtyped").then_some(())?;
        self.number().map(|_| ())
    }

    /// The code of a type, and a value for each of its letters. `in_string` says that a text in it is the one.
    fn group(&mut self, in_string: bool) -> Option<Value> {
        self.step()?;
        let code = self.name()??;
        let mut letters = code;
        while let Some((&letter, after)) = letters.split_first() {
            letters = after;
            match letter {
                b'@' => {
                    if let Value::Text(text) = self.object()? {
                        return Some(Value::Text(text));
                    }
                }
                b'+' => {
                    let bytes = self.counted()?;
                    if in_string {
                        return Some(Value::Text(String::from_utf8_lossy(bytes).into_owned()));
                    }
                }
                b'*' | b'%' | b':' => drop(self.c_string()?),
                b'#' => drop(self.class()?),
                b'f' | b'd' => self.float(if letter == b'f' { 4 } else { 8 })?,
                b'c' | b'C' => drop(self.byte()?),
                b'B' | b's' | b'S' | b'i' | b'I' | b'l' | b'L' | b'q' | b'Q' => drop(self.number()?),
                b'[' => letters = self.array(letters)?,
                // Structures are their members, one after the other.
                b'{' => letters = after_equals(letters),
                b'}' => {}
                _ => return None,
            }
        }
        Some(Value::Other)
    }

    /// A new object with its contents, a reference to one, or none.
    fn object(&mut self) -> Option<Value> {
        self.step()?;
        match self.begin(self.objects.len())? {
            Begin::Nothing | Begin::Known(_) => Some(Value::Other),
            Begin::New => self.deeper(|reader| {
                reader.objects.push(false);
                let is_string = reader.class()?;
                loop {
                    if *reader.rest.first()? == END {
                        reader.bytes(1)?;
                        return Some(Value::Other);
                    }
                    if let Value::Text(text) = reader.group(is_string)? {
                        return Some(Value::Text(text));
                    }
                }
            }),
        }
    }

    /// A class with those that it is derived from: whether one of them is that of strings.
    fn class(&mut self) -> Option<bool> {
        self.step()?;
        match self.begin(self.objects.len())? {
            Begin::Nothing => Some(false),
            Begin::New => self.deeper(|reader| {
                let name = reader.name()??;
                reader.number()?;
                let at = reader.objects.len();
                reader.objects.push(false);
                let is_string = reader.class()? || name == b"NSString";
                reader.objects[at] = is_string;
                Some(is_string)
            }),
            Begin::Known(at) => self.objects.get(at).copied(),
        }
    }

    /// A name that is new, known by its number, or none.
    fn name(&mut self) -> Option<Option<&'a [u8]>> {
        match self.begin(self.names.len())? {
            Begin::Nothing => Some(None),
            Begin::New => {
                let name = self.counted()?;
                self.names.push(name);
                Some(Some(name))
            }
            Begin::Known(at) => self.names.get(at).copied().map(Some),
        }
    }

    /// A text for C: it is written once, like an object.
    fn c_string(&mut self) -> Option<()> {
        match self.begin(self.objects.len())? {
            Begin::Nothing | Begin::Known(_) => Some(()),
            Begin::New => {
                self.objects.push(false);
                self.name().map(|_| ())
            }
        }
    }

    /// `[12c]`: so many of one type. Bytes are written as they are; an array of anything else has no text in it.
    fn array(&mut self, letters: &'a [u8]) -> Option<&'a [u8]> {
        let digits = letters.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let count = std::str::from_utf8(&letters[..digits]).ok()?.parse::<usize>().ok()?;
        let (&letter, after) = letters[digits..].split_first()?;
        for _ in 0..count {
            match letter {
                b'c' | b'C' => drop(self.byte()?),
                b'f' => self.float(4)?,
                b'd' => self.float(8)?,
                b's' | b'S' | b'i' | b'I' | b'l' | b'L' | b'q' | b'Q' => drop(self.number()?),
                _ => return None,
            }
        }
        after.strip_prefix(b"]")
    }

    fn float(&mut self, size: usize) -> Option<()> {
        // A float without a fraction is written as a number.
        if self.rest.first() == Some(&0x83) { self.bytes(size + 1).map(|_| ()) } else { self.number().map(|_| ()) }
    }

    /// How something begins that is written once; `known` is how many of its kind were written before.
    fn begin(&mut self, known: usize) -> Option<Begin> {
        match *self.rest.first()? {
            NIL => self.bytes(1).map(|_| Begin::Nothing),
            NEW => self.bytes(1).map(|_| Begin::New),
            _ => {
                let at = usize::try_from(self.number()? - FIRST_REFERENCE).ok()?;
                (at < known).then_some(Begin::Known(at))
            }
        }
    }

    fn number(&mut self) -> Option<i64> {
        match self.byte()? {
            TWO_BYTES => Some(i64::from(i16::from_le_bytes(self.bytes(2)?.try_into().ok()?))),
            FOUR_BYTES => Some(i64::from(i32::from_le_bytes(self.bytes(4)?.try_into().ok()?))),
            NEW | NIL | END | 0x83 => None,
            small => Some(i64::from(small.cast_signed())),
        }
    }

    /// Bytes behind their number, which has no sign.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let count = match self.byte()? {
            TWO_BYTES => u32::from(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?)),
            FOUR_BYTES => u32::from_le_bytes(self.bytes(4)?.try_into().ok()?),
            small if small < 0x80 => u32::from(small),
            _ => return None,
        };
        self.bytes(usize::try_from(count).ok()?)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= STEPS_MAX).then_some(())
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        (self.depth < DEPTH_MAX).then_some(())?;
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// `{_NSRange=QQ}`: the name of a structure says nothing about its members.
fn after_equals(letters: &[u8]) -> &[u8] {
    letters.iter().position(|&letter| letter == b'=').map_or(letters, |at| &letters[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imessage::archive_tests::archive_of;

    #[test]
    fn texts_of_every_length_come_out() {
        for length in [0, 1, 5, 0x7f, 0x80, 0x81, 300, 0xffff, 0x1_0000, 200_000] {
            let long = "ü".repeat(length / 2) + &"x".repeat(length % 2);
            assert_eq!(text(&archive_of(&long)).as_deref(), Some(long.as_str()), "{length}");
        }
        assert_eq!(text(&archive_of("👩‍👩‍👧 \u{fffc}\n\u{0}")).as_deref(), Some("👩‍👩‍👧 \u{fffc}\n\u{0}"));
    }

    #[test]
    fn a_changeable_string_is_a_string_too() {
        let archive = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x19NSMutableAttributedString\x00\x84\x84\x12NSAttributedString\x00\x84\x84\x08NSObject\x00\x85\x92\x84\x84\x84\x0fNSMutableString\x01\x84\x84\x08NSString\x01\x95\x84\x01+\x02hi\x86\x86";
        assert_eq!(text(archive).as_deref(), Some("hi"));
    }

    #[test]
    fn an_archive_that_is_cut_off_or_damaged_is_not_guessed_at() {
        let whole = archive_of("hello");
        let text_ends = whole.windows(5).position(|part| part == b"hello").unwrap() + 5;
        for end in 0..text_ends {
            assert_eq!(text(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            for change in [0x00, 0x7f, 0x80, 0x81, 0x82, 0x84, 0x85, 0x86, 0x92, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = change;
                // Whatever comes out: no panic, and never more than there is.
                assert!(text(&damaged).is_none_or(|text| text.len() <= 3 * whole.len()));
            }
        }
        assert_eq!(text(b""), None);
        assert_eq!(text(b"bplist00"), None);
    }

    #[test]
    fn objects_within_objects_without_end_are_refused() {
        let mut deep = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@".to_vec();
        deep.extend(b"\x84\x84\x84\x01A\x00\x85\x92".repeat(100_000));
        assert_eq!(text(&deep), None);
        let wide = |nothings: usize| {
            let begin = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x85".to_vec();
            let end = b"\x92\x84\x84\x84\x08NSString\x01\x85\x84\x01+\x02hi\x86";
            [begin, b"\x92\x85".repeat(nothings), end.to_vec()].concat()
        };
        assert_eq!(text(&wide(100)).as_deref(), Some("hi"));
        assert_eq!(text(&wide(100_000)), None, "it is not looked for without end");
    }
}
