//! Lists of parts, as people write them.

/// Numbers of parts as `--part` takes them: `0..4,7`.
pub fn part_list<'a>(parts: impl IntoIterator<Item = &'a u32>) -> String {
    let mut parts: Vec<u32> = parts.into_iter().copied().collect();
    parts.sort_unstable();
    parts.dedup();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for part in parts {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == part => *last = part,
            _ => runs.push((part, part)),
        }
    }
    let text = |(first, last): (u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}..{last}"),
    };
    let runs: Vec<String> = runs.into_iter().map(text).collect();
    runs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_are_short() {
        assert_eq!(part_list(&[7, 3, 0, 1, 2, 9, 10]), "0..3,7,9,10");
        assert_eq!(part_list(&[]), "");
    }
}
