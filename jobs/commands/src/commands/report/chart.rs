//! Draws bar charts as inline SVG. The page's style sheet sets their colours.

use super::escape::escape;
use crate::printing::count;

/// Width and height of a chart in SVG units. On a phone, a unit is a little less than a pixel.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 200.0;
/// Room for the labels on the left, below, and above the bars.
const LEFT: f64 = 44.0;
const BELOW: f64 = 34.0;
const ABOVE: f64 = 16.0;

/// A chart divides its width among at least this many bars.
const FEWEST_SLOTS: usize = 5;

#[derive(Debug, Clone)]
pub(super) struct Bar {
    /// The label below the bar; may be empty.
    pub(super) label: String,
    /// The bar's name in the table of values.
    pub(super) name: String,
    pub(super) value: f64,
    /// The value as text.
    pub(super) text: String,
    /// If the bar counts the pairs of one distance: that distance.
    pub(super) distance: Option<usize>,
}

impl Bar {
    /// A bar for a count, labelled with its name.
    pub(super) fn of_count(name: String, number: u64) -> Self {
        Self {
            label: name.clone(),
            name,
            value: number as f64,
            text: count(number),
            distance: None,
        }
    }
}

/// How the values of a chart become heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    /// By their logarithms; the scale begins at 1.
    Logarithmic,
    Share,
}

/// A chart of bars.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    /// What the values mean, in a sentence.
    pub(super) caption: &'a str,
    /// The name of the horizontal axis.
    pub(super) of_bars: &'a str,
    pub(super) of_values: &'a str,
    pub(super) bars: Vec<Bar>,
    pub(super) scale: Scale,
    /// A vertical line: its position, counted in bars from the left, and its text.
    pub(super) line: Option<(f64, String)>,
}

impl Chart<'_> {
    /// Writes the chart as a figure, with its values as a table that can be opened.
    pub(super) fn write(&self, html: &mut String) {
        let largest = self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        *html += &format!(
            "<figure><h3>{}</h3><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(self.title),
            escape(self.caption)
        );
        self.write_axis(html, largest);
        let width = (WIDTH - LEFT) / self.bars.len().max(FEWEST_SLOTS) as f64;
        for (number, bar) in self.bars.iter().enumerate() {
            let height = self.height(bar.value, largest);
            let x = LEFT + number as f64 * width;
            let distance = bar.distance.map_or(String::new(), |distance| {
                format!(" data-distance=\"{distance}\"")
            });
            *html += &format!(
                "<g{distance}><title>{}: {}</title><rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                escape(&bar.name),
                escape(&bar.text),
                x + width * 0.08,
                HEIGHT - BELOW - height,
                width * 0.84,
                height,
            );
            if !bar.label.is_empty() {
                *html += &format!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    x + width / 2.0,
                    HEIGHT - BELOW + 14.0,
                    escape(&bar.label)
                );
            }
            html.push_str("</g>");
        }
        if let Some((at, text)) = &self.line {
            let x = LEFT + at * width;
            let (anchor, side) = if *at > self.bars.len() as f64 / 2.0 {
                ("end", -4.0)
            } else {
                ("start", 4.0)
            };
            *html += &format!(
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{ABOVE}\" y2=\"{:.1}\"/><text class=\"mark\" x=\"{:.1}\" \
                 y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                HEIGHT - BELOW,
                x + side,
                ABOVE - 4.0,
                escape(text)
            );
        }
        *html += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></svg><figcaption>{}</figcaption>",
            WIDTH - 2.0,
            HEIGHT - 4.0,
            escape(self.of_bars),
            escape(self.caption)
        );
        self.write_table(html);
        html.push_str("</figure>\n");
    }

    /// The height of a bar.
    fn height(&self, value: f64, largest: f64) -> f64 {
        let room = HEIGHT - BELOW - ABOVE;
        let share = match self.scale {
            _ if value <= 0.0 || largest <= 0.0 => 0.0,
            Scale::Linear => value / largest,
            // The added 1 makes a value of 1 visible.
            Scale::Logarithmic => (1.0 + value.max(1.0).log10()) / (1.0 + largest.max(1.0).log10()),
            Scale::Share => value,
        };
        // Every positive value is visible.
        if share > 0.0 {
            (room * share).max(1.5)
        } else {
            0.0
        }
    }

    fn write_axis(&self, html: &mut String, largest: f64) {
        let marks: Vec<(f64, String)> = match self.scale {
            Scale::Share => [0.5, 1.0]
                .map(|share| (share, format!("{:.0} %", 100.0 * share)))
                .to_vec(),
            Scale::Linear => {
                let mark = round_down(largest);
                [mark / 2.0, mark]
                    .into_iter()
                    .filter(|mark| *mark >= 1.0)
                    .map(|mark| (mark, short(mark)))
                    .collect()
            }
            Scale::Logarithmic => {
                let decades = largest.max(1.0).log10().floor() as i32;
                let step = (decades / 3).max(1);
                (0..=decades)
                    .step_by(step as usize)
                    .map(|decade| (10_f64.powi(decade), short(10_f64.powi(decade))))
                    .collect()
            }
        };
        for (value, text) in marks {
            let y = HEIGHT - BELOW - self.height(value, largest);
            *html += &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{text}</text>",
                LEFT - 5.0,
                y + 4.0
            );
        }
    }

    fn write_table(&self, html: &mut String) {
        *html += &format!(
            "<details><summary>Values</summary><table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\">{}</th></tr></thead><tbody>",
            escape(self.of_bars),
            escape(self.of_values)
        );
        for bar in &self.bars {
            *html += &format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                escape(&bar.name),
                escape(&bar.text)
            );
        }
        html.push_str("</tbody></table></details>");
    }
}

/// The largest 1, 2 or 5 times a power of ten that is not above `value`; 0 below 1.
fn round_down(value: f64) -> f64 {
    if value < 1.0 {
        return 0.0;
    }
    let power = 10_f64.powi(value.log10().floor() as i32);
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|mark| *mark <= value)
        .unwrap_or(power)
}

/// A round number with few digits: 20k, 5M.
fn short(number: f64) -> String {
    for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if number >= unit {
            return format!("{}{name}", number / unit);
        }
    }
    format!("{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        for (value, mark, text) in [
            (1.0, 1.0, "1"),
            (7.0, 5.0, "5"),
            (4999.0, 2000.0, "2k"),
            (1e7, 1e7, "10M"),
        ] {
            assert_eq!(round_down(value), mark);
            assert_eq!(short(mark), text);
        }
    }

    #[test]
    fn bars_keep_inside_the_chart() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let chart = Chart {
                title: "t",
                caption: "<c>",
                of_bars: "b",
                of_values: "v",
                bars: [0, 1, 10, 123_456]
                    .map(|number| Bar::of_count(number.to_string(), number))
                    .to_vec(),
                scale,
                line: Some((3.5, "here".into())),
            };
            let heights = chart
                .bars
                .iter()
                .map(|bar| chart.height(bar.value, 123_456.0));
            let heights: Vec<f64> = heights.collect();
            assert!(
                heights.is_sorted() && heights[0] == 0.0 && heights[1] > 0.0,
                "{heights:?}"
            );
            assert!(heights[3] <= HEIGHT - BELOW - ABOVE);
            let mut html = String::new();
            chart.write(&mut html);
            assert!(html.contains("&lt;c&gt;") && !html.contains("<c>"));
        }
    }
}
