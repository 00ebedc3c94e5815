//! Names of elements and classes as integers, and tables that find them without comparing strings.

/// The first 16 bytes of a name in ASCII lowercase, the first byte in the lowest bits. No name is 0.
pub(super) type Key = u128;

/// The number of bytes of a name that count.
pub(super) const COUNTED: usize = 16;

/// Maps each byte to ASCII lowercase. A zero byte is not lost among those that pad a key: it becomes 0xff, which UTF-8
/// lacks.
pub(super) const LOWERCASE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).to_ascii_lowercase();
        byte += 1;
    }
    table[0] = 0xff;
    table
};

pub(super) const fn key(name: &[u8]) -> Key {
    let mut key = 0;
    let mut at = 0;
    while at < name.len() && at < COUNTED {
        key |= (LOWERCASE[name[at] as usize] as Key) << (8 * at);
        at += 1;
    }
    key
}

/// A hash table of names, made when the program is compiled.
pub(super) struct Table<const SLOTS: usize> {
    /// 0 in an empty slot.
    keys: [Key; SLOTS],
    values: [u8; SLOTS],
}

impl<const SLOTS: usize> Table<SLOTS> {
    /// A table that finds the position of each name in `names`.
    pub(super) const fn new(names: &[&str]) -> Self {
        assert!(2 * names.len() <= SLOTS && names.len() < 256);
        let mut table = Self {
            keys: [0; SLOTS],
            values: [0; SLOTS],
        };
        let mut at = 0;
        while at < names.len() {
            let name = names[at].as_bytes();
            assert!(!name.is_empty() && name.len() < COUNTED);
            let key = key(name);
            let mut slot = Self::slot(key);
            while table.keys[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            table.keys[slot] = key;
            table.values[slot] = at as u8;
            at += 1;
        }
        table
    }

    /// The position of the name with this key.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        let mut slot = Self::slot(key);
        // At least half of the slots are empty.
        loop {
            match self.keys[slot] {
                0 => return None,
                found if found == key => return Some(usize::from(self.values[slot])),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }

    const fn slot(key: Key) -> usize {
        let folded = key as u64 ^ ((key >> 64) as u64).rotate_left(29);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_find_their_names_only() {
        static TABLE: Table<8> = Table::new(&["nav", "footer", "blockquote"]);
        for (at, name) in ["NAV", "Footer", "blockQuote"].iter().enumerate() {
            assert_eq!(TABLE.find(key(name.as_bytes())), Some(at));
        }
        for name in ["", "na", "navs", "nav\0", "\0nav", "blockquoteblockquote"] {
            assert_eq!(TABLE.find(key(name.as_bytes())), None);
        }
    }
}
