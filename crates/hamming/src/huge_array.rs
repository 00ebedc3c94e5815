//! Large zeroed arrays on huge pages: on small pages, nearly every random access to tables of many megabytes misses the
//! TLB.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// An array of fixed length. It is aligned to a page, or to a huge page if it is at least that
/// large.
pub struct HugeArray<T> {
    backing: Backing,
    /// The byte of the backing at which the array begins.
    offset: usize,
    length: usize,
    element: PhantomData<T>,
}

enum Backing {
    Map(MmapMut),
    /// The fallback when the system refuses a map; aligned to 8 bytes only.
    Heap(Vec<u64>),
}

impl<T: Pod> HugeArray<T> {
    /// An array of `length` zeros.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        let bytes = length * size_of::<T>();
        // The slack around the array is never touched, so it takes address space but no memory.
        let slack = if bytes < HUGE { 0 } else { HUGE };
        let (backing, offset) = match MmapMut::map_anon(bytes.max(1) + slack) {
            Ok(map) => {
                let offset = map.as_ptr().align_offset(HUGE).min(slack);
                // Advice may fail: without huge pages, the array is only slower.
                #[cfg(target_os = "linux")]
                let _ = map.advise_range(memmap2::Advice::HugePage, offset, bytes);
                (Backing::Map(map), offset)
            }
            Err(_) => (Backing::Heap(vec![0; bytes.div_ceil(8)]), 0),
        };
        Self {
            backing,
            offset,
            length,
            element: PhantomData,
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }
}

impl<T: Pod> Deref for HugeArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        let bytes: &[u8] = match &self.backing {
            Backing::Map(map) => map,
            Backing::Heap(words) => bytemuck::cast_slice(words),
        };
        &bytemuck::cast_slice(&bytes[self.offset..][..self.length * size_of::<T>()])[..self.length]
    }
}

impl<T: Pod> DerefMut for HugeArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes: &mut [u8] = match &mut self.backing {
            Backing::Map(map) => map,
            Backing::Heap(words) => bytemuck::cast_slice_mut(words),
        };
        &mut bytemuck::cast_slice_mut(&mut bytes[self.offset..][..self.length * size_of::<T>()])
            [..self.length]
    }
}

impl<T> fmt::Debug for HugeArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} of {} bytes]", self.length, size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_arrays_hold_what_they_are_given() {
        for length in [0, 1, 100, 1 << 20] {
            let mut array = HugeArray::<u32>::zeroed(length);
            assert!(array.len() == length && array.iter().all(|&value| value == 0));
            assert_eq!(array.as_ptr().align_offset(64), 0);
            for (at, value) in array.iter_mut().enumerate() {
                *value = at as u32;
            }
            assert!((0..length).all(|at| array[at] == at as u32));
            assert_eq!(array.bytes(), 4 * length);
        }
    }
}
