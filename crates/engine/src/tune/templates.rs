//! Texts made from one template.

use std::collections::BTreeSet;

/// The most replaced words of two texts that differ only in a name: the name, and a number or
/// another form of the name.
const MAX_REPLACED: usize = 2;

/// Whether `a` and `b` have the same words in the same places, except for one or two that `b`
/// replaces by another word wherever they occur. Then they are pages of one template about two
/// things, not revisions of one page.
pub(super) fn differ_in_a_name(a: &str, b: &str) -> bool {
    let mut replaced = BTreeSet::new();
    let (mut a, mut b) = (a.split_whitespace(), b.split_whitespace());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return !replaced.is_empty(),
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => {
                replaced.insert((x, y));
                if replaced.len() > MAX_REPLACED {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::differ_in_a_name;

    #[test]
    fn names_and_revisions() {
        let page = |name: &str| format!("The {name} command. Run {name} to see what {name} does.");
        assert!(differ_in_a_name(&page("stop"), &page("start")));
        assert!(!differ_in_a_name(&page("stop"), &page("stop")));
        assert!(!differ_in_a_name(
            &page("stop"),
            &(page("stop") + " Added.")
        ));
        assert!(!differ_in_a_name("a b c d", "x y z d"));
    }
}
