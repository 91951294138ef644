//! Round numbers for the axes of charts.

use super::describe::number;

/// Round steps of a time axis: seconds, minutes, hours.
const TIME_STEPS_S: [f64; 15] =
    [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0];

/// At most `most` round times over `span_s`, starting at 0, each with its label.
pub(super) fn time_ticks(span_s: f64, most: usize) -> Vec<(f64, String)> {
    let fits = |step: &f64| span_s / step <= most as f64;
    let step =
        TIME_STEPS_S.into_iter().find(fits).unwrap_or_else(|| (span_s / most as f64 / 86_400.0).ceil() * 86_400.0);
    let (unit_s, unit) = match step {
        s if s >= 3600.0 => (3600.0, "h"),
        s if s >= 60.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    (0..)
        .map(|k| f64::from(k) * step)
        .take_while(|&at| at <= span_s)
        .map(|at| (at, if at == 0.0 { "0".to_owned() } else { format!("{} {unit}", number(at / unit_s)) }))
        .collect()
}

/// About `wanted` round rates from 0 up to `top`, with labels.
pub(super) fn rate_ticks(top: f64, wanted: usize) -> Vec<(f64, String)> {
    if top <= 0.0 {
        return vec![(0.0, "0".to_owned())];
    }
    let rough = top / wanted as f64;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * decade).find(|&s| s >= rough * 0.999).unwrap_or(decade);
    (0..).map(|k| f64::from(k) * step).take_while(|&rate| rate <= top * 1.001).map(|r| (r, number(r))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(time_ticks(3600.0, 6)), ["0", "10 min", "20 min", "30 min", "40 min", "50 min", "60 min"]);
        assert_eq!(labels(time_ticks(28_800.0, 6)), ["0", "2 h", "4 h", "6 h", "8 h"]);
        assert_eq!(labels(time_ticks(864_000.0, 6)), ["0", "48 h", "96 h", "144 h", "192 h", "240 h"]);
        assert_eq!(labels(rate_ticks(15.0, 4)), ["0", "5", "10", "15"]);
        assert_eq!(labels(rate_ticks(0.075, 4)), ["0", "0.02", "0.04", "0.06"]);
    }
}
