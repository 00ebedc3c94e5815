//! What `groups` prints.

use super::components::Summary;
use super::days::{Groups, Origin};
use crate::printing::{count, date, visible};

/// The groups over all days.
pub(super) fn groups(groups: &Groups, most: usize) -> String {
    let mut text = String::new();
    let unit = if groups.is_archive { "day" } else { "file" };
    let files = match groups.days.len() {
        1 => format!("1 {unit}"),
        files => format!("{files} {unit}s"),
    };
    text += &format!(
        "{} documents in {files}: {} kept, {} duplicates of earlier days, {} duplicates within their batch\n",
        count(groups.sum(|day| day.documents)),
        count(groups.sum(|day| day.kept)),
        count(groups.sum(|day| day.of_earlier)),
        count(groups.sum(|day| day.within)),
    );
    if groups.orphans > 0 {
        text += &format!(
            "{} duplicates of nothing that is kept now: their originals were removed or superseded, or they are older contents\n",
            count(groups.orphans)
        );
    }
    let without = match groups.without_kept() {
        0 => String::new(),
        more => format!(
            "; the kept documents of {} of them are in none of these files",
            count(more)
        ),
    };
    text += &format!("{} groups{without}\n", count(groups.count()));
    text += &format!("\n{:>21}  {:>15}\n", "documents of a group", "groups");
    let mut from = 1;
    for (up_to, number) in groups.sizes() {
        let size = if from == up_to {
            count(up_to)
        } else {
            format!("{} to {}", count(from), count(up_to))
        };
        text += &format!("{size:>21}  {:>15}\n", count(number));
        from = up_to + 1;
    }
    let largest = groups.largest(most);
    if !largest.is_empty() {
        text += &format!("\n{:>15}  {:10}  kept document\n", "documents", "day");
    }
    for group in largest {
        let day = match group.origin {
            Origin::Day(day) => date(day),
            Origin::File(_) => String::new(),
        };
        text += &format!(
            "{:>15}  {day:10}  {}\n",
            count(group.documents),
            visible(group.id)
        );
    }
    text += &format!(
        "\n{:>15}  {:>15}  {:>15}  {:>15}  {:>15}  decisions\n",
        "documents", "kept", "of earlier days", "within", "largest group"
    );
    for day in &groups.days {
        text += &format!(
            "{:>15}  {:>15}  {:>15}  {:>15}  {:>15}  {}\n",
            count(day.documents),
            count(day.kept),
            count(day.of_earlier),
            count(day.within),
            count(day.largest),
            day.file
        );
    }
    text
}

/// The components of the pairs.
pub(super) fn components(summary: &Summary) -> String {
    let mut text = format!(
        "\n{} components of the pairs, {} of them with documents of several groups\n",
        count(summary.components),
        count(summary.chained)
    );
    if let Some(largest) = &summary.largest {
        text += &format!(
            "largest component: {} (documents: {}, groups: {}, documents of its largest group: {})\n",
            visible(&largest.component),
            count(largest.counts.documents),
            count(largest.counts.groups),
            count(largest.counts.largest_group)
        );
    }
    let suspicious = match summary.suspicious {
        0 => return text,
        1 => "1 component is ten times as large as its largest group".to_owned(),
        more => format!(
            "{} components are ten times as large as their largest group",
            count(more)
        ),
    };
    text += &format!(
        "warning: {suspicious}, or larger: a chain of pairs connects documents that have little in common. Drop documents by \
         decisions, not by components\n"
    );
    text
}
