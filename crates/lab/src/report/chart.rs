//! Terminal chart: accepted rate against the limit, with refusals marked below.
//!
//! The accepted rate is a braille line, eight dots to a character, so that staying just under a limit looks different
//! from crossing it; the limit is a box line, so that the two differ without color. Where both meet in a character
//! the accepted rate is shown.

use super::axis::{rate_ticks, time_ticks};
use super::series::Series;

/// Characters left of the plot: a label of seven and the axis.
const MARGIN: usize = 9;
/// A narrower chart would be unreadable.
const PLOT_WIDTH_MIN: usize = 20;

/// Meaning of a character, for coloring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Nothing, an axis or a label.
    Plain,
    /// The accepted rate.
    Accepted,
    /// The true limit.
    Limit,
    /// Refused requests.
    Refused,
}

/// One character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The character.
    pub glyph: char,
    /// Its meaning.
    pub ink: Ink,
}

const BLANK: Cell = Cell { glyph: ' ', ink: Ink::Plain };

/// Rows of characters.
#[derive(Clone, Debug)]
pub struct Chart {
    rows: Vec<Vec<Cell>>,
}

impl Chart {
    /// Width of the plot in a chart of `width` characters.
    pub fn plot_width(width: usize) -> usize {
        width.saturating_sub(MARGIN).max(PLOT_WIDTH_MIN)
    }

    /// Draws `series`, `width` characters wide, the plot `height` lines high.
    pub fn draw(series: &Series, width: usize, height: usize) -> Self {
        let plot_width = Self::plot_width(width);
        let mut plot = Plot { top: series.top().max(1e-9), cells: vec![vec![BLANK; plot_width]; height] };
        plot.limit(series);
        plot.accepted(&series.accepted);
        let mut rows = plot.labelled();
        rows.push(time_axis(plot_width, series.span_s));
        rows.push(time_labels(plot_width, series.span_s));
        rows.push(refusals(plot_width, series));
        Self { rows }
    }

    /// The lines, top first.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

struct Plot {
    top: f64,
    cells: Vec<Vec<Cell>>,
}

impl Plot {
    fn width(&self) -> usize {
        self.cells.first().map_or(0, Vec::len)
    }

    /// The step of `steps` for `rate`, counted from the top; higher rates stay at the top.
    fn level(&self, rate: f64, steps: usize) -> usize {
        let share = (rate / self.top).clamp(0.0, 1.0);
        (((1.0 - share) * steps as f64) as usize).min(steps - 1)
    }

    fn limit(&mut self, series: &Series) {
        let (width, height) = (self.width(), self.cells.len());
        let mut before = None;
        for x in 0..width {
            let at_s = (x as f64 + 0.5) / width as f64 * series.span_s;
            let row = self.level(series.limit_at(at_s), height);
            let (low, high) = (row.min(before.unwrap_or(row)), row.max(before.unwrap_or(row)));
            for line in &mut self.cells[low..=high] {
                line[x] = Cell { glyph: '│', ink: Ink::Limit };
            }
            let glyph = match before {
                Some(last) if last < row => '└',
                Some(last) if last > row => '┌',
                _ => '─',
            };
            self.cells[row][x].glyph = glyph;
            if let Some(last) = before.filter(|&last| last != row) {
                self.cells[last][x].glyph = if last < row { '┐' } else { '┘' };
            }
            before = Some(row);
        }
    }

    fn accepted(&mut self, accepted: &[f64]) {
        if accepted.is_empty() {
            return;
        }
        let dots = self.width() * 2;
        let steps = self.cells.len() * 4;
        let mut before = None;
        for x in 0..dots {
            let level = self.level(accepted[x * accepted.len() / dots], steps);
            let (low, high) = (level.min(before.unwrap_or(level)), level.max(before.unwrap_or(level)));
            for y in low..=high {
                let cell = &mut self.cells[y / 4][x / 2];
                let base = if cell.ink == Ink::Accepted { cell.glyph as u32 } else { BRAILLE };
                let glyph = char::from_u32(base | DOTS[y % 4][x % 2]).unwrap_or(' ');
                *cell = Cell { glyph, ink: Ink::Accepted };
            }
            before = Some(level);
        }
    }

    /// The lines of the plot with the rate axis on their left.
    fn labelled(self) -> Vec<Vec<Cell>> {
        let ticks = rate_ticks(self.top, 4);
        let height = self.cells.len();
        let mut labels = vec![String::new(); height];
        for (rate, label) in ticks {
            labels[self.level(rate, height)] = format!("{label}/s");
        }
        let with_label = |(cells, label): (Vec<Cell>, String)| {
            let axis = if label.is_empty() { '│' } else { '┤' };
            plain(&format!("{label:>7} {axis}")).chain(cells).collect()
        };
        self.cells.into_iter().zip(labels).map(with_label).collect()
    }
}

/// The empty braille pattern, and the bit of each dot by row and column.
const BRAILLE: u32 = 0x2800;
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

fn time_axis(width: usize, span_s: f64) -> Vec<Cell> {
    let mut line = vec!['─'; width];
    for (at, _) in ticks(width, span_s) {
        line[at] = '┬';
    }
    plain(&format!("{:>8}└", "")).chain(plain(&String::from_iter(line))).collect()
}

fn time_labels(width: usize, span_s: f64) -> Vec<Cell> {
    let mut line = vec![' '; MARGIN + width];
    for (at, label) in ticks(width, span_s) {
        // Centered under its tick, and inside the chart.
        let length = label.chars().count();
        let from = (MARGIN + at).saturating_sub(length / 2).min(MARGIN + width - length);
        for (offset, glyph) in label.chars().enumerate() {
            line[from + offset] = glyph;
        }
    }
    plain(String::from_iter(line).trim_end()).collect()
}

fn ticks(width: usize, span_s: f64) -> Vec<(usize, String)> {
    let column = |at_s: f64| ((at_s / span_s * width as f64) as usize).min(width - 1);
    time_ticks(span_s, (width / 10).max(2)).into_iter().map(|(at_s, label)| (column(at_s), label)).collect()
}

/// One column's refusals as one character: a cross, a count, or a hash for ten and more.
fn refusals(width: usize, series: &Series) -> Vec<Cell> {
    let mut counts = vec![0_u32; width];
    for mark in &series.marks {
        counts[((mark.at_s / series.span_s * width as f64) as usize).min(width - 1)] += mark.count;
    }
    let glyph = |count: u32| match count {
        0 => ' ',
        1 => '×',
        2..=9 => char::from_digit(count, 10).unwrap_or('9'),
        _ => '#',
    };
    let cells = counts.into_iter().map(|count| Cell { glyph: glyph(count), ink: Ink::Refused });
    plain(&format!("{:>8} ", "refused")).chain(cells).collect()
}

fn plain(text: &str) -> impl Iterator<Item = Cell> + use<> {
    text.chars().map(|glyph| Cell { glyph, ink: Ink::Plain }).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::series::Mark;
    use super::*;

    #[test]
    fn the_line_the_limit_and_the_refusals_can_be_told_apart_without_colour() {
        let series = Series {
            span_s: 60.0,
            limit: vec![(0.0, 10.0), (30.0, 5.0)],
            accepted: vec![0.0, 2.0, 4.0, 6.0, 8.0, 7.0, 4.0, 4.0, 4.0],
            own: Vec::new(),
            marks: vec![Mark { at_s: 31.0, count: 1 }, Mark { at_s: 58.0, count: 12 }],
        };
        let line = |row: &Vec<Cell>| String::from_iter(row.iter().map(|cell| cell.glyph)).trim_end().to_owned();
        let lines: Vec<String> = Chart::draw(&series, 33, 12).rows().iter().map(line).collect();
        let expected = [
            "   15/s ┤",
            "        │",
            "        │",
            "        │",
            "   10/s ┤────────────┐",
            "        │           ⡤⠤⢤",
            "        │           ⡇│⠘⠒⠒⡆",
            "        │        ⡏⠉⠉⠁│   ⡇",
            "    5/s ┤     ⢀⣀⣀⡇   └───⣇⣀⣀⣀⣀⣀⣀⣀",
            "        │     ⢸",
            "        │   ⡖⠒⠚",
            "    0/s ┤⣀⣀⣀⡇",
            "        └┬───────────┬──────────┬",
            "         0         30 s      60 s",
            " refused             ×          #",
        ];
        assert_eq!(lines, expected);
    }
}
