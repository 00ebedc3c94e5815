//! The containers of a page, as a tree.

/// The containers of a page. Their numbers are those of their start tags; 0 is the page itself.
#[derive(Debug)]
pub(super) struct Containers {
    /// The container around each.
    parents: Vec<u32>,
}

impl Containers {
    /// Only the page.
    pub(super) fn new() -> Self {
        Self { parents: vec![0] }
    }

    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Adds a container inside of `parent`, and returns its number.
    pub(super) fn add(&mut self, parent: u32) -> u32 {
        // No page has more than that; if one does, the rest counts as a part of the container around it.
        let Ok(number) = u32::try_from(self.parents.len()) else {
            return parent;
        };
        self.parents.push(parent);
        number
    }

    /// The container around another.
    pub(super) fn parent(&self, number: u32) -> u32 {
        self.parents[number as usize]
    }

    /// Forgets all but the page.
    pub(super) fn clear(&mut self) {
        self.parents.truncate(1);
    }

    /// The containers that have others inside.
    pub(super) fn outer(&self) -> Vec<bool> {
        let mut outer = vec![false; self.len()];
        for &parent in &self.parents[1..] {
            outer[parent as usize] = true;
        }
        outer
    }

    /// Adds the number of each container to those of all around it.
    pub(super) fn add_up(&self, numbers: &mut [u32]) {
        // A container has a larger number than the one around it.
        for inner in (1..self.len()).rev() {
            let number = numbers[inner];
            let outer = &mut numbers[self.parents[inner] as usize];
            *outer = outer.saturating_add(number);
        }
    }

    /// Marks all containers inside of marked ones.
    pub(super) fn mark_inside(&self, marks: &mut [bool]) {
        for inner in 1..self.len() {
            marks[inner] |= marks[self.parents[inner] as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_out_and_marks_go_in() {
        let mut containers = Containers::new();
        let outer = containers.add(0);
        let inner = containers.add(outer);
        let other = containers.add(0);
        assert_eq!([outer, inner, other], [1, 2, 3]);
        assert_eq!([containers.parent(inner), containers.parent(outer)], [1, 0]);
        assert_eq!(containers.outer(), [true, true, false, false]);
        let mut numbers = [1, 2, 4, 8];
        containers.add_up(&mut numbers);
        assert_eq!(numbers, [15, 6, 4, 8]);
        let mut marks = [false, true, false, false];
        containers.mark_inside(&mut marks);
        assert_eq!(marks, [false, true, true, false]);
        containers.clear();
        assert_eq!((containers.len(), containers.outer()), (1, vec![false]));
    }
}
