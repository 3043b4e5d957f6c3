//! A small seeded generator for worlds (SplitMix64); the run's own generator is `vec_search`'s.

/// The generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of one seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub const fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// The same as a small count.
    pub fn small(&mut self, n: u64) -> u32 {
        u32::try_from(self.below(n)).unwrap_or(u32::MAX)
    }

    /// The same as an index.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or_default()
    }

    /// The same as milliseconds.
    pub fn ms(&mut self, n: u64) -> i64 {
        i64::try_from(self.below(n)).unwrap_or_default()
    }

    /// True in `percent` of 100 cases.
    pub const fn hits(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Uniform in `0..1`.
    pub fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.bits() >> 32).unwrap_or_default()) / 4_294_967_296.0
    }

    /// Roughly normal, variance 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}
