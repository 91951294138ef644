//! Self-contained page of all runs: no script, no font, no request.
//!
//! First the summary, then each scenario: our law large, the others small beside it on the same axes, for comparison.
//! Text from scenario files is escaped.

use super::describe::{provider, seconds};
use super::series::Series;
use super::story::story;
use super::summary::{Summary, TARGET_VIOLATIONS};
use super::svg::{Frame, chart};
use crate::laws::LawName;
use crate::scenario::Scenario;
use crate::score::Figures;
use crate::trace::Trace;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// One run, drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    figures: Figures,
    large: Series,
    small: Series,
}

impl Drawing {
    /// Keeps the parts of a run that its charts need.
    pub fn new(scenario: &Scenario, figures: &Figures, trace: &Trace) -> Self {
        let at = |frame: Frame| Series::new(scenario, figures, trace, frame.columns(), frame.spots());
        Self { figures: figures.clone(), large: at(Frame::LARGE), small: at(Frame::SMALL) }
    }

    /// The large chart alone, as an `svg` element for another page. Colors are classes: `limit`, `accepted`, `own`,
    /// `refused` and `axis`.
    pub fn svg(&self, scenario: &Scenario) -> String {
        chart(&self.large, Frame::LARGE, self.large.top(), &label(scenario, &self.figures))
    }
}

/// A scenario and its runs to draw, the large chart first.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its runs.
    pub drawings: Vec<Drawing>,
}

/// The page; `figures` are all runs, also those not drawn.
pub fn page(sections: &[Section<'_>], laws: &[LawName], figures: &[Figures]) -> String {
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    let _ = write!(html, "<title>Gleaner lab</title><style>{STYLE}</style></head>\n<body><main>");
    html.push_str("<h1>Goodput and refusals by law</h1>");
    let _ = write!(
        html,
        "<p>{} simulated providers, {} runs. <b>G</b> is what a law got accepted, as a share of what an oracle that \
         knows every limit gets; <b>V</b> is the share of its requests that were refused.</p>",
        sections.len(),
        figures.len()
    );
    summary_table(&mut html, laws, figures);
    html.push_str(LEGEND);
    contents(&mut html, sections);
    for (index, section) in sections.iter().enumerate() {
        section_html(&mut html, index, section);
    }
    html.push_str("</main></body></html>\n");
    html
}

const LEGEND: &str = "<p class=\"legend\"><span class=\"key limit\"></span> true limit \
    <span class=\"key accepted\"></span> accepted per second \
    <span class=\"key own\"></span> the law's own estimate of its rate \
    <span class=\"key refused\"></span> refused, taller for more. \
    Small charts share the axes of the large one above them; what goes over the top is cut off.</p>";

fn summary_table(html: &mut String, laws: &[LawName], figures: &[Figures]) {
    html.push_str("<table><thead><tr><th>law</th>");
    for head in
        ["mean G", "worst G", "mean V", "over V target", "bans", "inside Retry-After", "mean score", "worst score"]
    {
        let _ = write!(html, "<th>{head}</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for &law in laws {
        let runs: Vec<&Figures> = figures.iter().filter(|f| f.law == law).collect();
        let Some(sum) = Summary::from_runs(&runs) else { continue };
        let _ = write!(html, "<tr{}><td>{}</td>", ours(law), law.as_str());
        let _ = write!(html, "<td>{:.3}</td><td>{:.3}</td>", sum.goodput_mean, sum.goodput_worst);
        let _ = write!(html, "<td>{}</td>", percent(sum.violation_mean));
        let _ = write!(html, "<td{}>{} of {}</td>", bad(sum.over_target > 0), sum.over_target, sum.runs);
        let _ = write!(html, "<td{}>{}</td>", bad(sum.bans > 0), sum.bans);
        let inside = sum.sends_inside_retry_after;
        let _ = write!(html, "<td{}>{inside}</td>", bad(inside > 0));
        let _ = write!(html, "<td>{:.3}</td><td>{:.3}</td></tr>", sum.score_mean, sum.score_worst);
    }
    html.push_str("</tbody></table>");
}

fn contents(html: &mut String, sections: &[Section<'_>]) {
    html.push_str("<nav>");
    for (index, section) in sections.iter().enumerate() {
        let _ = write!(html, "<a href=\"#s{index}\">{}</a> ", escape(&section.scenario.name));
    }
    html.push_str("</nav>");
}

fn section_html(html: &mut String, index: usize, section: &Section<'_>) {
    let scenario = section.scenario;
    let Some((first, rest)) = section.drawings.split_first() else { return };
    let _ = write!(html, "<section id=\"s{index}\"><h2>{}</h2>", escape(&scenario.name));
    let _ = write!(
        html,
        "<p>{} <span class=\"quiet\">{}.</span></p>",
        escape(&scenario.about),
        escape(&provider(scenario))
    );
    let top = first.large.top();
    let _ = write!(
        html,
        "<figure><figcaption><b>{}</b> {}</figcaption>",
        first.figures.law.as_str(),
        figures_line(&first.figures)
    );
    html.push_str(&chart(&first.large, Frame::LARGE, top, &label(scenario, &first.figures)));
    let _ = write!(
        html,
        "<p class=\"quiet\">{}</p></figure><div class=\"small\">",
        escape(&story(scenario, &first.figures))
    );
    for drawing in rest {
        let figures = &drawing.figures;
        let workers = if figures.workers == first.figures.workers { String::new() } else { workers(figures.workers) };
        let _ = write!(html, "<figure><figcaption><b>{}</b>{workers}", figures.law.as_str());
        let _ = write!(html, "<br/>{}</figcaption>", short_line(figures));
        // Fewer workers may have a lower limit, so their chart has its own axis.
        let top = if workers.is_empty() { top } else { drawing.small.top() };
        html.push_str(&chart(&drawing.small, Frame::SMALL, top, &label(scenario, figures)));
        html.push_str("</figure>");
    }
    html.push_str("</div></section>");
}

fn figures_line(figures: &Figures) -> String {
    let counts = &figures.counts;
    let converge = figures
        .converge_s
        .map_or_else(|| "never converged".to_owned(), |s| format!("converged in {}", seconds(s.round())));
    let mut line = format!(
        "{} · G {:.3} · V {} · {} ban{} · latency ×{:.1} · {converge}",
        workers(figures.workers).trim_start(),
        figures.goodput,
        percent(figures.violation_ratio),
        counts.bans,
        if counts.bans == 1 { "" } else { "s" },
        counts.latency_ratio,
    );
    if let Some(recover_s) = figures.recover_s {
        let _ = write!(line, " · recovered in {}", seconds(recover_s.round()));
    }
    let _ = write!(line, " · score {:.3}", figures.score);
    line
}

fn short_line(figures: &Figures) -> String {
    let over = !figures.violations_within(TARGET_VIOLATIONS);
    let mut line = format!("G {:.2} <span{}>V {}</span>", figures.goodput, bad(over), percent(figures.violation_ratio));
    match figures.counts.bans {
        0 => {}
        1 => line.push_str(" <span class=\"bad\">banned</span>"),
        n => {
            let _ = write!(line, " <span class=\"bad\">{n} bans</span>");
        }
    }
    line
}

fn workers(count: usize) -> String {
    format!(" {count} worker{}", if count == 1 { "" } else { "s" })
}

fn label(scenario: &Scenario, figures: &Figures) -> String {
    format!("{} on {}: accepted rate against the limit over time", figures.law.as_str(), scenario.name)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.995 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

const fn ours(law: LawName) -> &'static str {
    if matches!(law, LawName::Gleaner) { " class=\"ours\"" } else { "" }
}

const fn bad(is: bool) -> &'static str {
    if is { " class=\"bad\"" } else { "" }
}

/// Escapes text. Control characters, which are invalid in a page, are dropped.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn text_from_a_file_cannot_become_markup() {
        assert_eq!(escape("<b a='1'>\"&\u{1b}[31m\nx"), "&lt;b a=&#39;1&#39;&gt;&quot;&amp;[31m x");
    }
}
