//! Hamming balls around short bit strings: their sizes, their members, and the members as a 64-bit
//! mask.

/// The number of `bits`-bit values within `radius` bits of any one of them.
pub(crate) fn volume(bits: u32, radius: u32) -> f64 {
    let mut choose = 1.0;
    let mut sum = 1.0;
    for i in 0..radius.min(bits) {
        choose *= f64::from(bits - i) / f64::from(i + 1);
        sum += choose;
    }
    sum
}

/// Every `bits`-bit value with at most `radius` ones. Xor with a value turns them into the ball
/// around that value.
pub(crate) fn flips(bits: u32, radius: u32) -> Vec<u32> {
    let mut flips = Vec::new();
    push_flips(bits, radius, 0, &mut flips);
    flips
}

/// As [`flips`], those with fewer ones first.
pub(crate) fn flips_by_ones(bits: u32, radius: u32) -> Vec<u32> {
    let mut flips = flips(bits, radius);
    flips.sort_unstable_by_key(|flip| (flip.count_ones(), *flip));
    flips
}

fn push_flips(bits: u32, radius: u32, chosen: u32, flips: &mut Vec<u32>) {
    flips.push(chosen);
    if radius > 0 {
        for bit in 0..bits {
            push_flips(bit, radius - 1, chosen | 1 << bit, flips);
        }
    }
}

/// How many bits select a bit of a 64-bit word.
pub(crate) const BIT_INDEX_BITS: u32 = 6;

/// Bit `j` of `WORD_BALLS[r - 1][i]` is set if the 6-bit numbers `i` and `j` differ in at most `r`
/// bits; `r` is 1 or 2.
pub(crate) const WORD_BALLS: [[u64; 64]; 2] = {
    let mut balls = [[0; 64]; 2];
    let mut bit = 0;
    while bit < 64 {
        let mut other = 0;
        while other < 64 {
            let distance = (bit ^ other as usize).count_ones();
            if distance <= 1 {
                balls[0][bit] |= 1 << other;
            }
            if distance <= 2 {
                balls[1][bit] |= 1 << other;
            }
            other += 1;
        }
        bit += 1;
    }
    balls
};

/// Every 16-bit value with exactly two ones, ascending.
pub(crate) const TWO_BIT_WORDS: [u16; 120] = {
    let mut words = [0; 120];
    let (mut at, mut upper) = (0, 0);
    while upper < 16 {
        let mut lower = 0;
        while lower < upper {
            words[at] = 1 << upper | 1 << lower;
            at += 1;
            lower += 1;
        }
        upper += 1;
    }
    words
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balls() {
        assert_eq!(volume(16, 0), 1.0);
        assert_eq!(volume(16, 2), 1.0 + 16.0 + 120.0);
        assert_eq!(volume(3, 9), 8.0);
    }

    #[test]
    fn flips_are_the_ball() {
        let mut flips = flips(10, 3);
        flips.sort_unstable();
        let ball: Vec<u32> = (0..1024u32).filter(|f| f.count_ones() <= 3).collect();
        assert_eq!(flips, ball);
    }
}
