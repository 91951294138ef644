//! The date and time with which a line of an export begins, in the spellings of WhatsApp's locales.
//!
//! Pure. A line has three numbers, and only the whole file tells which of them is the day: so a [`Stamp`] keeps
//! the numbers as they stand there, and an [`OrderTally`] decides for all lines together. Nothing is guessed for
//! a single line, and what is no date at all is text.

use jiff::civil::{Date, DateTime};

/// What stands before a message: three numbers, and a time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The numbers of the date in the order in which they are written.
    pub(crate) numbers: [u16; 3],
    /// The first number has four digits, so it is the year.
    year_is_first: bool,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: Option<u8>,
    /// Morning or afternoon is told: a clock of twelve hours.
    pub(crate) has_half: bool,
    pub(crate) shape: Shape,
}

/// What all lines of one file have in common. A line of another shape is text that somebody pasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Shape {
    is_bracketed: bool,
    separator: char,
    has_seconds: bool,
}

/// Which number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateOrder {
    Day,
    Month,
    Year,
}

/// The longest word between date and time ("um", "klo", "kl."), in characters.
const WORD_CHARS_MAX: usize = 8;

impl Stamp {
    /// The stamp at the beginning of a line, and what comes after it.
    pub(crate) fn read(line: &str) -> Option<(Self, &str)> {
        let mut at = Reader { rest: line, before: None };
        let is_bracketed = at.take('[');
        at.skip_spaces();
        let (numbers, digits, separator) = at.date()?;
        at.word_between();
        let (mut hour, minute, second) = at.time()?;
        let half = at.half_of_day();
        let half = at.before.or(half);
        if let Some(half) = half {
            hour = half.apply(hour)?;
        }
        at.skip_spaces();
        if is_bracketed {
            at.take(']').then_some(())?;
        } else {
            (at.take('-') || at.take('–')).then_some(())?;
        }
        at.take(' ');
        let shape = Shape { is_bracketed, separator, has_seconds: second.is_some() };
        (hour < 24 && minute < 60 && second.unwrap_or(0) <= 60).then_some(())?;
        Some((
            Self { numbers, year_is_first: digits[0] == 4, hour, minute, second, has_half: half.is_some(), shape },
            at.rest,
        ))
    }

    /// The same for two exports of one chat from one phone, whatever is found out about the order of the numbers.
    pub(crate) fn as_written(&self) -> String {
        let [a, b, c] = self.numbers;
        format!("{a}.{b}.{c} {}:{:02}:{:02}", self.hour, self.minute, self.second.unwrap_or(0))
    }

    /// What the phone showed, if the numbers are a date in this order.
    pub(crate) fn in_order(&self, order: DateOrder) -> Option<DateTime> {
        let [a, b, c] = self.numbers;
        let (year, month, day) = match order {
            _ if self.year_is_first => (a, b, c),
            DateOrder::Day => (c, b, a),
            DateOrder::Month => (c, a, b),
            DateOrder::Year => (a, b, c),
        };
        let date = Date::new(whole_year(year)?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        // A leap second has no place on a clock of 60.
        let second = self.second.unwrap_or(0).min(59);
        Some(date.at(self.hour as i8, self.minute as i8, second as i8, 0))
    }
}

/// WhatsApp began in 2009. Two digits are of this century; Thai phones count from the year of the Buddha.
fn whole_year(written: u16) -> Option<i16> {
    let year = match written {
        0..=99 => 2000 + written,
        2500..=2700 => written - 543,
        _ => written,
    };
    (2009..=2156).contains(&year).then_some(year as i16)
}

/// What the stamps of a file say about the order of their numbers, one after another.
///
/// A number above twelve is no month. Where that does not tell, messages stand in the order in which they were sent, so
/// the order of numbers in which time goes backwards least often is the right one.
#[derive(Clone, Debug)]
pub(crate) struct OrderTally {
    /// How many there were.
    pub(crate) count: u64,
    separator: char,
    has_halves: bool,
    all_years_first: bool,
    /// What speaks against each order: lines that are no date in it, and then steps back in time.
    faults: [(u64, u64); 3],
    /// The last day in each order.
    last: [Option<Date>; 3],
}

impl OrderTally {
    pub(crate) const fn new(shape: Shape) -> Self {
        Self {
            count: 0,
            separator: shape.separator,
            has_halves: false,
            all_years_first: true,
            faults: [(0, 0); 3],
            last: [None; 3],
        }
    }

    /// The next stamp.
    pub(crate) fn add(&mut self, stamp: &Stamp) {
        self.count += 1;
        self.has_halves |= stamp.has_half;
        self.all_years_first &= stamp.year_is_first;
        for (at, order) in DateOrder::ALL.into_iter().enumerate() {
            let (impossible, back) = &mut self.faults[at];
            let Some(time) = stamp.in_order(order) else {
                *impossible += 1;
                continue;
            };
            // The end of summer time takes an hour back, within one day.
            *back += u64::from(self.last[at].is_some_and(|last| time.date() < last));
            self.last[at] = Some(time.date());
        }
    }

    /// What most of the lines say, and whether anything but habit speaks for it.
    pub(crate) fn decide(&self) -> (DateOrder, bool) {
        // The habit of the United States, and of everybody else.
        let habit = if self.has_halves && self.separator == '/' { [1, 0, 2] } else { [0, 1, 2] };
        let faults = habit.map(|at| self.faults[at]);
        // The first of the least.
        let best = (0..3).min_by_key(|&at| (faults[at], at)).unwrap_or(0);
        // Years of two digits come first almost nowhere: that alone is no doubt about the others.
        let speaks_against = |at: usize| faults[at] > faults[best] || DateOrder::ALL[habit[at]] == DateOrder::Year;
        let is_told = self.all_years_first || (0..3).filter(|&at| at != best).all(speaks_against);
        (DateOrder::ALL[habit[best]], is_told)
    }
}

impl DateOrder {
    const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Year];
}

/// Morning or afternoon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Before,
    After,
    /// Around twelve: eleven is before it.
    Noon,
}

impl Half {
    const fn apply(self, hour: u8) -> Option<u8> {
        match (self, hour) {
            (Self::Before, 12) => Some(0),
            (Self::Before, 0..12) => Some(hour),
            (Self::Noon, 11 | 12) | (Self::After, 12..24) => Some(hour),
            (Self::Noon, 0..11) | (Self::After, 0..12) => Some(hour + 12),
            _ => None,
        }
    }
}

/// Spelled without spaces, points and marks, in lower case.
const HALVES: [(Half, &str); 3] = [
    (Half::Before, "am 上午 凌晨 清晨 早上 午前 오전 ص قظ sa pg öö de πμ पूर्वाह्न"),
    (Half::Noon, "中午"),
    (Half::After, "pm 下午 晚上 午後 오후 م بظ ch ptg ös du μμ अपराह्न"),
];

/// Reads from left to right. Whatever is not there is not taken.
struct Reader<'l> {
    rest: &'l str,
    /// The half of the day, where it stands before the time.
    before: Option<Half>,
}

impl<'l> Reader<'l> {
    /// The next character that can be seen.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches(is_mark);
        self.rest.chars().next()
    }

    fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let next = self.peek().filter(|&next| wanted(next))?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, wanted: char) -> bool {
        self.take_if(|next| next == wanted).is_some()
    }

    fn skip_spaces(&mut self) {
        while self.take_if(char::is_whitespace).is_some() {}
    }

    /// A number of at most `digits_max` digits, and how many it has.
    fn number(&mut self, digits_max: usize) -> Option<(u16, usize)> {
        let (mut value, mut digits) = (0, 0);
        while let Some(digit) = self.peek().and_then(digit) {
            (digits < digits_max).then_some(())?;
            self.take_if(|_| true);
            (value, digits) = (value * 10 + digit, digits + 1);
        }
        (digits > 0).then_some((value, digits))
    }

    fn date(&mut self) -> Option<([u16; 3], [usize; 3], char)> {
        let (a, a_digits) = self.number(4)?;
        self.skip_spaces();
        let separator = self.take_if(|next| matches!(next, '.' | '/' | '-' | '年' | '년'))?;
        self.skip_spaces();
        let (b, b_digits) = self.number(2)?;
        self.skip_spaces();
        self.take_if(|next| next == separator || matches!(next, '月' | '월'))?;
        self.skip_spaces();
        let (c, c_digits) = self.number(4)?;
        // Three digits are no year, and two years are no date.
        let year_digits = |digits| matches!(digits, 1 | 2 | 4);
        (year_digits(a_digits) && year_digits(c_digits) && (a_digits < 4 || c_digits < 4)).then_some(())?;
        Some(([a, b, c], [a_digits, b_digits, c_digits], separator))
    }

    /// Commas, and a word: "um" in German, "下午" in Chinese.
    fn word_between(&mut self) {
        let mut word = String::new();
        for _ in 0..WORD_CHARS_MAX {
            let Some(next) = self.take_if(|next| digit(next).is_none() && !matches!(next, '[' | ']' | '\n')) else {
                break;
            };
            word.push(next);
        }
        self.before = half_called(&word);
    }

    fn time(&mut self) -> Option<(u8, u8, Option<u8>)> {
        let (hour, _) = self.number(2)?;
        self.clock_separator()?;
        let (minute, minute_digits) = self.number(2)?;
        (minute_digits == 2).then_some(())?;
        let rest = self.rest;
        let second = self.clock_separator().and_then(|()| self.number(2)).filter(|&(_, digits)| digits == 2);
        if second.is_none() {
            self.rest = rest;
        }
        Some((hour as u8, minute as u8, second.map(|(second, _)| second as u8)))
    }

    fn clock_separator(&mut self) -> Option<()> {
        self.take_if(|next| matches!(next, ':' | '.' | '：')).map(|_| ())
    }

    /// The half of the day after the time. A word that is none is left where it is.
    fn half_of_day(&mut self) -> Option<Half> {
        let stop = self.rest.char_indices().find(|&(at, next)| {
            matches!(next, ']' | '-' | '–' | '\n') || digit(next).is_some() || at > 4 * WORD_CHARS_MAX
        });
        let word = &self.rest[..stop?.0];
        let half = half_called(word)?;
        self.rest = &self.rest[word.len()..];
        Some(half)
    }
}

fn half_called(word: &str) -> Option<Half> {
    let plain = |letter: &char| letter.is_alphanumeric() || matches!(letter, '\u{900}'..='\u{97f}');
    let word = word.chars().filter(plain).flat_map(char::to_lowercase).collect::<String>();
    HALVES.iter().find(|(_, spelled)| spelled.split(' ').any(|one| one == word)).map(|&(half, _)| half)
}

/// What is there only for the direction of writing.
pub(crate) const fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
}

/// A digit of any script that phones write dates in.
const fn digit(letter: char) -> Option<u16> {
    let zero = match letter {
        '0'..='9' => '0',
        '٠'..='٩' => '٠',
        '۰'..='۹' => '۰',
        '०'..='९' => '०',
        '০'..='৯' => '০',
        '０'..='９' => '０',
        _ => return None,
    };
    Some((letter as u32 - zero as u32) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, &str)> {
        let (stamp, rest) = Stamp::read(line)?;
        let mut tally = OrderTally::new(stamp.shape);
        tally.add(&stamp);
        let order = OrderTally { has_halves: false, ..tally }.decide().0;
        Some((stamp.in_order(order)?.to_string().replace('T', " "), rest))
    }

    #[test]
    fn the_spellings_of_the_locales_are_read() {
        for (line, time) in [
            ("[31/01/2024, 18:05:33] A: hi", "2024-01-31 18:05:33"),
            ("\u{200e}[31.01.24, 18:05:33] A: hi", "2024-01-31 18:05:33"),
            ("[1/31/24, 6:05:33\u{202f}PM] A: hi", "2024-01-31 18:05:33"),
            ("[2024-01-31, 6:05:33 p. m.] A: hi", "2024-01-31 18:05:33"),
            ("31/01/2024, 18:05 - A: hi", "2024-01-31 18:05:00"),
            ("1/31/24, 12:05\u{202f}AM - A: hi", "2024-01-31 00:05:00"),
            ("1/31/24, 12:05 PM - A: hi", "2024-01-31 12:05:00"),
            ("31.01.24, 18:05 - A: hi", "2024-01-31 18:05:00"),
            ("31.01.2024 um 18:05 - A: hi", "2024-01-31 18:05:00"),
            ("31/01/2024 à 18:05 - A: hi", "2024-01-31 18:05:00"),
            ("31.1.2024 klo 18.05 - A: hi", "2024-01-31 18:05:00"),
            ("31-01-2024 18:05 - A: hi", "2024-01-31 18:05:00"),
            ("2024/1/31 下午6:05 - A: hi", "2024-01-31 18:05:00"),
            ("2024/1/31 中午12:05 - A: hi", "2024-01-31 12:05:00"),
            ("2024. 1. 31. 오후 6:05 - A: hi", "2024-01-31 18:05:00"),
            ("[2024年1月31日 18:05:33] A: hi", "2024-01-31 18:05:33"),
            ("2024년 1월 31일 오전 6:05 - A: hi", "2024-01-31 06:05:00"),
            ("٣١\u{200f}/١\u{200f}/٢٠٢٤، ٦:٠٥ م - A: hi", "2024-01-31 18:05:00"),
            ("۲۰۲۴/۱/۳۱،\u{200f} ۱۸:۰۵ - A: hi", "2024-01-31 18:05:00"),
            ("31/1/2567 18:05 - A: hi", "2024-01-31 18:05:00"),
            ("31/1/24 6:05 ΜΜ - A: hi", "2024-01-31 18:05:00"),
        ] {
            assert_eq!(read(line), Some((time.to_owned(), "A: hi")), "{line}");
        }
    }

    #[test]
    fn what_is_no_stamp_is_text() {
        for line in [
            "",
            "hello",
            "31/01/2024",
            "31/01/2024, 18:05",
            "31/01/2024, 18:05 A: hi",
            "[31/01/2024, 18:05 A: hi",
            "99/99/2024, 18:05 - A: hi",
            "31/01/2024, 25:05 - A: hi",
            "31/01/2024, 18:99 - A: hi",
            "1/31/24, 13:05 AM - A: hi",
            "31/01/024, 18:05 - A: hi",
            "1402/11/11, 18:05 - A: hi",
            "12345678901234567890/1/2 3:04 - A: hi",
            "1/2/99999, 3:04 - A: hi",
            "1/2/24, 999:04 - A: hi",
            "1.2.3 - 4",
            "[[[[",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    fn order_of(lines: &[&str], has_halves: bool) -> (DateOrder, bool) {
        let stamps = lines.iter().map(|line| Stamp::read(line).unwrap().0).collect::<Vec<_>>();
        let mut tally = OrderTally::new(stamps[0].shape);
        stamps.iter().for_each(|stamp| tally.add(stamp));
        OrderTally { has_halves, ..tally }.decide()
    }

    #[test]
    fn the_whole_file_tells_which_number_is_the_day() {
        let slashes = ["3/4/24, 10:00 - A: a", "13/4/24, 10:00 - A: b"];
        assert_eq!(order_of(&slashes, true), (DateOrder::Day, true), "13 is no month");
        let slashes = ["3/4/24, 10:00 - A: a", "3/14/24, 10:00 - A: b"];
        assert_eq!(order_of(&slashes, false), (DateOrder::Month, true), "14 is no month");
        // Read with the day first, time would go backwards.
        let by_time = ["1/2/24, 10:00 - A: a", "2/1/24, 10:00 - A: b", "3/1/24, 10:00 - A: b"];
        assert_eq!(order_of(&by_time, false), (DateOrder::Month, true));
        assert_eq!(order_of(&["3/4/24, 10:00 - A: a"], true), (DateOrder::Month, false), "habit alone");
        assert_eq!(order_of(&["3.4.24, 10:00 - A: a"], true), (DateOrder::Day, false), "habit alone");
        assert!(order_of(&["2024-04-03 10:00 - A: a"], false).1, "a year of four digits tells");
        assert_eq!(order_of(&["24/4/3 10:00 - A: a", "24/4/13 10:00 - A: a"], false), (DateOrder::Year, true));
    }

    #[test]
    fn a_stamp_that_is_read_is_the_same_in_another_order() {
        let (stamp, _) = Stamp::read("3/4/24, 6:00 PM - A: a").unwrap();
        assert_eq!(stamp.as_written(), "3.4.24 18:00:00");
    }
}
