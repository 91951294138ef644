//! Charts as SVG: the accepted rate as a line, the limit as steps, each refusal as a tick.
//!
//! Colors come from classes of the page, so one drawing serves light and dark. Only data and the necessary frame are
//! drawn: no grid, no box, no legend inside.

use super::axis::{rate_ticks, time_ticks};
use super::describe::number;
use super::series::{Mark, Series};
use std::fmt::Write;

/// Height for refusals under the plot.
const RUG: f64 = 14.0;

/// Dimensions of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    labels: bool,
}

impl Frame {
    /// One chart over the width of the page, with axes.
    pub(super) const LARGE: Self =
        Self { width: 860.0, height: 236.0, left: 40.0, right: 76.0, top: 10.0, bottom: 40.0, labels: true };
    /// One of many small charts, which shares the axes of the large one.
    pub(super) const SMALL: Self =
        Self { width: 206.0, height: 78.0, left: 0.0, right: 0.0, top: 2.0, bottom: 15.0, labels: false };

    fn plot_width(&self) -> f64 {
        self.width - self.left - self.right
    }

    fn plot_height(&self) -> f64 {
        self.height - self.top - self.bottom
    }

    /// Distinguishable columns at this size.
    pub(super) fn columns(&self) -> usize {
        (self.plot_width() / if self.labels { 1.5 } else { 1.2 }) as usize
    }

    /// Distinguishable positions of refusals at this size.
    pub(super) fn spots(&self) -> usize {
        self.plot_width() as usize
    }
}

/// Draws `series` on a rate axis up to `top`; `title` is for screen readers.
pub(super) fn chart(series: &Series, frame: Frame, top: f64, title: &str) -> String {
    let canvas = Canvas { frame, top, span_s: series.span_s };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
        frame.width,
        frame.height,
        super::html::escape(title)
    );
    canvas.axes(&mut svg);
    let _ = write!(svg, "<path class=\"limit\" d=\"{}\"/>", canvas.steps(&series.limit));
    // An estimate far above the limit is left out: at the upper edge it would look like a rate.
    let own: Vec<Option<f64>> = series.own.iter().map(|rate| rate.filter(|&rate| rate <= top)).collect();
    let _ = write!(svg, "<path class=\"own\" d=\"{}\"/>", canvas.line(&own));
    let accepted: Vec<Option<f64>> = series.accepted.iter().copied().map(Some).collect();
    let _ = write!(svg, "<path class=\"accepted\" d=\"{}\"/>", canvas.line(&accepted));
    canvas.refusals(&mut svg, &series.marks);
    if frame.labels {
        canvas.line_labels(&mut svg, series);
    }
    svg.push_str("</svg>");
    svg
}

struct Canvas {
    frame: Frame,
    top: f64,
    span_s: f64,
}

impl Canvas {
    fn x(&self, at_s: f64) -> f64 {
        self.frame.left + (at_s / self.span_s).clamp(0.0, 1.0) * self.frame.plot_width()
    }

    fn y(&self, rate: f64) -> f64 {
        self.frame.top + (1.0 - (rate / self.top).clamp(0.0, 1.0)) * self.frame.plot_height()
    }

    fn floor(&self) -> f64 {
        self.frame.top + self.frame.plot_height()
    }

    fn axes(&self, svg: &mut String) {
        let (left, right) = (self.frame.left, self.frame.width - self.frame.right);
        let _ = write!(svg, "<path class=\"axis\" d=\"M{left} {y}H{right}\"/>", y = short(self.floor()));
        if !self.frame.labels {
            return;
        }
        for (rate, label) in rate_ticks(self.top, 4) {
            let y = self.y(rate);
            let _ = write!(svg, "<text class=\"end\" x=\"{}\" y=\"{}\">{label}/s</text>", left - 6.0, short(y + 4.0));
            let _ = write!(svg, "<path class=\"axis\" d=\"M{} {}h4\"/>", left - 4.0, short(y));
        }
        for (at_s, label) in time_ticks(self.span_s, 8) {
            let (x, y) = (short(self.x(at_s)), short(self.frame.height - 6.0));
            let _ = write!(svg, "<text class=\"mid\" x=\"{x}\" y=\"{y}\">{label}</text>");
        }
    }

    fn steps(&self, limit: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (index, &(from_s, rate)) in limit.iter().enumerate() {
            let (x, y) = (short(self.x(from_s)), short(self.y(rate)));
            let _ = if index == 0 { write!(path, "M{x} {y}") } else { write!(path, "H{x}V{y}") };
        }
        let _ = write!(path, "H{}", short(self.x(self.span_s)));
        path
    }

    /// A line through the middle of each column; a column without a value breaks it.
    fn line(&self, values: &[Option<f64>]) -> String {
        let mut path = String::new();
        let mut pen = 'M';
        for (index, value) in values.iter().enumerate() {
            let Some(rate) = value else {
                pen = 'M';
                continue;
            };
            let at_s = (index as f64 + 0.5) / values.len() as f64 * self.span_s;
            let _ = write!(path, "{pen}{} {}", short(self.x(at_s)), short(self.y(*rate)));
            pen = 'L';
        }
        path
    }

    /// A tick per position with refusals, longer by the logarithm of their number.
    fn refusals(&self, svg: &mut String, marks: &[Mark]) {
        if marks.is_empty() {
            return;
        }
        svg.push_str("<path class=\"refused\" d=\"");
        for mark in marks {
            let length = (5.0 + 2.0 * f64::from(mark.count).log2()).min(RUG);
            let _ = write!(svg, "M{} {}v{}", short(self.x(mark.at_s)), short(self.floor() + 1.0), short(length));
        }
        svg.push_str("\"/>");
    }

    /// Labels at the right end of the lines instead of a legend.
    fn line_labels(&self, svg: &mut String, series: &Series) {
        let x = self.x(self.span_s) + 6.0;
        let limit = series.limit.last().map_or(0.0, |&(_, rate)| rate);
        let y = self.y(limit);
        let _ =
            write!(svg, "<text class=\"of-limit\" x=\"{x}\" y=\"{}\">limit {}/s</text>", short(y - 2.0), number(limit));
        let tail = series.accepted.len().saturating_sub(8);
        let last = &series.accepted[tail..];
        let mean = last.iter().sum::<f64>() / last.len().max(1) as f64;
        let below = self.y(mean).max(y + 2.0) + 10.0;
        let _ = write!(
            svg,
            "<text class=\"of-accepted\" x=\"{x}\" y=\"{}\">accepted</text>",
            short(below.min(self.floor()))
        );
        if !series.marks.is_empty() {
            let y = short(self.floor() + 11.0);
            let _ = write!(svg, "<text class=\"of-refused\" x=\"{x}\" y=\"{y}\">refused</text>");
        }
    }
}

/// A coordinate with one decimal: finer than a pixel, and half the bytes of two.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
