//! MT19937 exactly as CPython's `random.Random(int)` (O-OPR-1): seeding by `init_by_array` over
//! the 32-bit digits of the integer, `random()` from 53 bits of two words.
//!
//! The generator is part of the run's state; every draw's index and value are in its event.

use vec_types::SearchSeed;

const WORDS: usize = 624;
const MIDDLE: usize = 397;
const MATRIX_A: u32 = 0x9908_b0df;
const UPPER_MASK: u32 = 0x8000_0000;
const LOWER_MASK: u32 = 0x7fff_ffff;

/// The generator: 624 words and the position of the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mt19937 {
    words: Vec<u32>,
    next: usize,
}

impl Mt19937 {
    /// `random.Random(seed)` of CPython for 0 ≤ seed < 2^32.
    #[must_use]
    pub fn new(seed: SearchSeed) -> Self {
        let mut generator = Self {
            words: initial_words(19_650_218),
            next: WORDS,
        };
        generator.mix_key(&[seed.0]);
        generator
    }

    /// CPython's `init_by_array`; `key` is not empty.
    fn mix_key(&mut self, key: &[u32]) {
        let words = &mut self.words;
        let (mut i, mut j) = (1, 0);
        for _ in 0..WORDS.max(key.len()) {
            let mixed = spread(words[i - 1]).wrapping_mul(1_664_525);
            words[i] = (words[i] ^ mixed)
                .wrapping_add(key[j])
                .wrapping_add(low_word(j));
            (i, j) = (step(words, i), (j + 1) % key.len());
        }
        for _ in 1..WORDS {
            let mixed = spread(words[i - 1]).wrapping_mul(1_566_083_941);
            words[i] = (words[i] ^ mixed).wrapping_sub(low_word(i));
            i = step(words, i);
        }
        words[0] = UPPER_MASK;
    }

    /// The next double in 0..1 with 53 random bits, as `random.random()`.
    pub fn random(&mut self) -> f64 {
        let high = f64::from(self.word() >> 5);
        let low = f64::from(self.word() >> 6);
        (high * 67_108_864.0 + low) * (1.0 / 9_007_199_254_740_992.0)
    }

    fn word(&mut self) -> u32 {
        if self.next >= WORDS {
            self.refill();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn refill(&mut self) {
        for k in 0..WORDS {
            let joined = (self.words[k] & UPPER_MASK) | (self.words[(k + 1) % WORDS] & LOWER_MASK);
            let odd = if joined & 1 == 1 { MATRIX_A } else { 0 };
            self.words[k] = self.words[(k + MIDDLE) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }
}

fn initial_words(seed: u32) -> Vec<u32> {
    let mut words = vec![seed; WORDS];
    for i in 1..WORDS {
        words[i] = spread(words[i - 1])
            .wrapping_mul(1_812_433_253)
            .wrapping_add(low_word(i));
    }
    words
}

const fn spread(word: u32) -> u32 {
    word ^ (word >> 30)
}

/// Next index; at the end the last word is carried to the front, as the reference does.
fn step(words: &mut [u32], i: usize) -> usize {
    if i + 1 < WORDS {
        return i + 1;
    }
    words[0] = words[WORDS - 1];
    1
}

// Indices are below 624.
fn low_word(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    // python3 -c "import random; r = random.Random(SEED); print([r.random() for _ in range(N)])"
    const VECTORS: &[(u32, &[f64])] = &[
        (
            0,
            &[
                0.8444218515250481,
                0.7579544029403025,
                0.420571580830845,
                0.25891675029296335,
                0.5112747213686085,
            ],
        ),
        (
            1,
            &[
                0.13436424411240122,
                0.8474337369372327,
                0.763774618976614,
                0.2550690257394217,
                0.49543508709194095,
            ],
        ),
        (
            7,
            &[
                0.32383276483316237,
                0.15084917392450192,
                0.6509344730398537,
                0.07243628666754276,
                0.5358820043066892,
            ],
        ),
        (
            42,
            &[
                0.6394267984578837,
                0.025010755222666936,
                0.27502931836911926,
                0.22321073814882275,
                0.7364712141640124,
            ],
        ),
        (
            2147483648,
            &[
                0.3387958510019964,
                0.5050619906087787,
                0.8891460738572615,
                0.16291786458805446,
                0.11228650894144054,
            ],
        ),
        (
            4294967295,
            &[
                0.6353574441341173,
                0.20319993954407756,
                0.6073666030347188,
                0.29133552762158776,
                0.3400278163075766,
            ],
        ),
    ];

    #[test]
    fn equals_cpython_bit_for_bit() {
        for (seed, expected) in VECTORS {
            let mut generator = Mt19937::new(SearchSeed(*seed));
            for (index, value) in expected.iter().enumerate() {
                let found = generator.random();
                assert_eq!(found.to_bits(), value.to_bits(), "seed {seed} draw {index}");
            }
        }
    }

    // The state is refilled every 312 draws: the values at those borders.
    const FAR: &[(u32, usize, f64)] = &[
        (0, 311, 0.39380795178170946),
        (0, 312, 0.5190037287013293),
        (0, 1000, 0.9466893945947962),
        (42, 623, 0.11955474125505283),
        (42, 9999, 0.07291190181420792),
        (4294967295, 5000, 0.5706371666464699),
    ];

    #[test]
    fn equals_cpython_across_refills() {
        for (seed, index, value) in FAR {
            let mut generator = Mt19937::new(SearchSeed(*seed));
            let found = (0..=*index).map(|_| generator.random()).last();
            assert_eq!(
                found.map(f64::to_bits),
                Some(value.to_bits()),
                "{seed} {index}"
            );
        }
    }
}
