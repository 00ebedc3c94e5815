//! The tables of sources on the page: those that lose most, and those that repeat each other.

use super::escape::escaped_start;
use super::sources::{Loss, Matrix};
use crate::printing::count;

pub(super) fn write_losses(html: &mut String, losses: &[Loss]) {
    html.push_str(
        "<section><h2>Sources that lose most</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Sources that \
         lose most\"><table class=\"heat\"><thead><tr><td></td><th scope=\"col\">documents</th><th scope=\"col\">dropped</th>\
         <th scope=\"col\">share</th>",
    );
    let templates = losses.iter().any(|loss| loss.words.is_some());
    if templates {
        html.push_str("<th scope=\"col\">template</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for loss in losses {
        let share = loss.dropped as f64 / loss.documents.max(1) as f64;
        *html += &format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td style=\"--share: {share:.2}\">{:.1} %</td>",
            escaped_start(&loss.source),
            count(loss.documents),
            count(loss.dropped),
            100.0 * share
        );
        if templates {
            let share = loss.words.map_or(String::new(), |words| {
                let share = words.template as f64 / words.all.max(1) as f64;
                format!("{:.1} %", 100.0 * share)
            });
            *html += &format!("<td>{share}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    if templates {
        html.push_str("<p>Template: about how many of the words of their documents runs against the archive leave out; of those of \
             the whole domain, if the archive takes domains for sources.</p>");
    }
    html.push_str("</section>\n");
}

pub(super) fn write_matrix(html: &mut String, matrix: &Matrix) {
    html.push_str(
        "<section><h2>Sources that repeat each other</h2><p>Pairs by the source of the document of the batch (rows) and of the \
         other one (columns).</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Sources that repeat each other\">\
         <table class=\"heat\"><thead><tr><td></td>",
    );
    for name in &matrix.names {
        *html += &format!("<th scope=\"col\">{}</th>", escaped_start(name));
    }
    html.push_str("</tr></thead><tbody>");
    let largest = matrix.pairs.iter().flatten().copied().max();
    let largest = largest.unwrap_or(0).max(1) as f64;
    for (name, row) in matrix.names.iter().zip(&matrix.pairs) {
        *html += &format!("<tr><th scope=\"row\">{}</th>", escaped_start(name));
        for pairs in row {
            // The added 1 makes a single pair visible.
            let share = match pairs {
                0 => 0.0,
                pairs => (1.0 + (*pairs as f64).ln()) / (1.0 + largest.ln()),
            };
            *html += &format!("<td style=\"--share: {share:.2}\">{}</td>", count(*pairs));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    if matrix.others > 0 {
        *html += &format!(
            "<p>{} more pairs of other sources.</p>",
            count(matrix.others)
        );
    }
    html.push_str("</section>\n");
}
