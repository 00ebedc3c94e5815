//! Large zeroed arrays on huge pages, where the system has them: random accesses to tables of many megabytes
//! otherwise miss the address cache nearly every time.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// A zeroed array of fixed length that begins at a cache line, and at a huge page when it is as large.
pub(crate) struct Array<T> {
    backing: Backing,
    /// Where it begins in the backing, in bytes.
    offset: usize,
    length: usize,
    of: PhantomData<T>,
}

enum Backing {
    Map(MmapMut),
    /// Where no map can be had.
    Heap(Vec<u64>),
}

impl<T: Pod> Array<T> {
    pub(crate) fn zeroed(length: usize) -> Self {
        let bytes = length * size_of::<T>();
        // What is never touched before and behind it costs addresses, not memory.
        let slack = if bytes < HUGE { 0 } else { HUGE };
        let (backing, offset) = match MmapMut::map_anon(bytes.max(1) + slack) {
            Ok(map) => {
                let offset = map.as_ptr().align_offset(HUGE).min(slack);
                // Without huge pages it is slower, and as right.
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
            of: PhantomData,
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }
}

impl<T: Pod> Deref for Array<T> {
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

impl<T: Pod> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes: &mut [u8] = match &mut self.backing {
            Backing::Map(map) => map,
            Backing::Heap(words) => bytemuck::cast_slice_mut(words),
        };
        &mut bytemuck::cast_slice_mut(&mut bytes[self.offset..][..self.length * size_of::<T>()])
            [..self.length]
    }
}

impl<T> fmt::Debug for Array<T> {
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
            let mut array = Array::<u32>::zeroed(length);
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
