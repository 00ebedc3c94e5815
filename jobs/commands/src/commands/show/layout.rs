//! Lays out pairs for the terminal: two columns or, if the terminal is narrow, one text below the
//! other.

use anstyle::{AnsiColor, Style as AnsiStyle};
use engine::template::CutTexts;
use unicode_width::UnicodeWidthStr as _;

use crate::commands::pairs::Pair;
use crate::printing::{date, has_colours, heading, visible};
use crate::word_diff::{self, Part, template_start};

/// Width, in characters, if the output is no terminal.
const DEFAULT_WIDTH: usize = 100;
/// The narrowest terminal, in characters, in which two texts stand side by side.
const LEAST_WIDTH: usize = 60;
/// The separator between two columns of text.
const BETWEEN: &str = " │ ";

/// Width and colours of the output.
pub(super) struct Style {
    width: usize,
    colours: bool,
}

impl Style {
    /// The style of standard output.
    pub(super) fn of_stdout() -> Self {
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self {
            width: width.unwrap_or(DEFAULT_WIDTH),
            colours: has_colours(),
        }
    }

    /// Marks words that differ, with a colour or with brackets.
    fn mark(&self, words: &str, colour: AnsiColor) -> String {
        let style = AnsiStyle::new().bold().fg_color(Some(colour.into()));
        if self.colours {
            format!("{style}{words}{style:#}")
        } else {
            format!("[{words}]")
        }
    }
}

/// Writes a pair: a heading with its `number`, then both texts, if `texts` were looked up.
pub(super) fn write_pair(
    text: &mut String,
    number: usize,
    pair: &Pair,
    texts: Option<&CutTexts>,
    style: &Style,
) {
    let similarity = pair.similarity.map_or(String::new(), |similarity| {
        format!(", similarity {similarity:.2}")
    });
    let day = pair
        .base_day
        .map_or(String::new(), |day| format!(" ({})", date(day)));
    let title = format!(
        "{number}. {} and {}{day}: distance {}{similarity}",
        visible(&pair.new_id),
        visible(&pair.base_id),
        pair.distance
    );
    *text += &format!("{}\n", heading(&title, style.colours));
    let Some(texts) = texts else {
        return;
    };
    match texts.of_pair(pair.ids()) {
        [Some(new), Some(base)] => {
            write_sides(text, &new.content, &base.content, style);
            for (id, side) in [(&pair.new_id, new), (&pair.base_id, base)] {
                write_template(text, id, &side.template, style);
            }
        }
        [new, base] => {
            let missing = [(new, &pair.new_id), (base, &pair.base_id)].into_iter();
            for (_, id) in missing.filter(|(found, _)| found.is_none()) {
                *text += &format!("  the text of {} is not in --documents\n", visible(id));
            }
        }
    }
    text.push('\n');
}

/// Writes the template that is left out of a text, if it has one, in grey.
fn write_template(text: &mut String, id: &str, template: &str, style: &Style) {
    let Some(start) = template_start(template) else {
        return;
    };
    let line = format!("template of {}, left out: {}", visible(id), visible(&start));
    let grey = AnsiStyle::new().fg_color(Some(AnsiColor::BrightBlack.into()));
    let width = style.width.saturating_sub(2).max(10);
    for (line, _) in wrap(&[Part::Equal(line)], width, style, AnsiColor::Red) {
        let line = line.trim_end();
        *text += &if style.colours {
            format!("  {grey}{line}{grey:#}\n")
        } else {
            format!("  {line}\n")
        };
    }
}

fn write_sides(text: &mut String, new: &str, base: &str, style: &Style) {
    let sides = word_diff::compare(new, base);
    let beside = style.width >= LEAST_WIDTH;
    let width = if beside {
        (style.width - 2 - BETWEEN.width()) / 2
    } else {
        style.width.saturating_sub(2).max(10)
    };
    let left = wrap(&sides.left, width, style, AnsiColor::Red);
    let right = wrap(&sides.right, width, style, AnsiColor::Green);
    if !beside {
        for (line, _) in left.iter().chain([&(String::new(), 0)]).chain(&right) {
            *text += &format!("{}\n", format!("  {line}").trim_end());
        }
        return;
    }
    let none = (String::new(), 0);
    for at in 0..left.len().max(right.len()) {
        let (one, columns) = left.get(at).unwrap_or(&none);
        let (other, _) = right.get(at).unwrap_or(&none);
        let fill = " ".repeat(width - columns.min(&width));
        let line = format!("  {one}{fill}{BETWEEN}{other}");
        *text += &format!("{}\n", line.trim_end());
    }
}

/// Breaks one side into lines; returns each with its width in characters.
fn wrap(parts: &[Part], width: usize, style: &Style, colour: AnsiColor) -> Vec<(String, usize)> {
    let mut lines = Lines {
        width,
        lines: Vec::new(),
        line: String::new(),
        columns: 0,
    };
    for part in parts {
        match part {
            Part::Equal(words) => words
                .split_inclusive(' ')
                .for_each(|word| lines.push(word, str::to_owned)),
            Part::Differing(words) => {
                for word in words.split_inclusive(' ') {
                    lines.push(word, |word| style.mark(word, colour));
                }
            }
            Part::Hidden(words) => lines.push(&format!(" … {words} equal words … "), str::to_owned),
        }
    }
    lines.finish()
}

/// Lines that are filled word by word.
struct Lines {
    width: usize,
    lines: Vec<(String, usize)>,
    line: String,
    columns: usize,
}

impl Lines {
    /// Adds a word, on a new line if it does not fit; a word that fits no line is cut.
    fn push(&mut self, word: &str, marked: impl Fn(&str) -> String) {
        // Brackets around words that differ take columns, too.
        let own = marked(word);
        let brackets = if own.starts_with('[') && own.len() == word.len() + 2 {
            2
        } else {
            0
        };
        let columns = word.trim_end().width() + brackets;
        if self.columns > 0 && self.columns + columns > self.width {
            self.end_line();
        }
        if columns <= self.width {
            self.line.push_str(&own);
            self.columns += word.width() + brackets;
            return;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let room = self.width.saturating_sub(brackets).max(2);
            let mut end = 0;
            for (at, c) in rest.char_indices() {
                let next = at + c.len_utf8();
                if rest[..next].width() > room && end > 0 {
                    break;
                }
                end = next;
            }
            let (piece, behind) = rest.split_at(end);
            self.line.push_str(&marked(piece));
            self.columns += piece.width() + brackets;
            rest = behind;
            if !rest.is_empty() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        self.lines
            .push((std::mem::take(&mut self.line), self.columns));
        self.columns = 0;
    }

    fn finish(mut self) -> Vec<(String, usize)> {
        if self.columns > 0 {
            self.end_line();
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_its_column() {
        for width in [10, 24, 61, 100] {
            let mut text = String::new();
            let new = "a page 近似文書近似文書近似文書 with averyveryverylongwordthatfitsnocolumnofanyterminal in it";
            let plain = Style {
                width,
                colours: false,
            };
            write_sides(&mut text, new, "another page with words in it", &plain);
            for line in text.lines() {
                assert!(line.width() <= width.max(12), "{width}: {line:?}");
            }
            assert!(text.contains('[') && text.contains("page"), "{text}");
        }
    }

    #[test]
    fn words_that_differ_are_marked() {
        let marked = |colours| {
            let mut text = String::new();
            let style = Style { width: 80, colours };
            write_sides(&mut text, "one two three", "one 2 three", &style);
            text
        };
        let text = marked(false);
        assert!(
            text.starts_with("  one [two] three") && text.contains(" │ one [2] three\n"),
            "{text}"
        );
        let text = marked(true);
        assert!(text.contains("\u{1b}[1m\u{1b}[31mtwo\u{1b}[0m"), "{text:?}");
    }
}
