//! Our own seeded random numbers, so that the same seed always gives the same bytes.
//!
//! Why not a crate: a dependency may change its generator in a minor release, and every stored figure would change.
//! `SplitMix64` (Steele, Lea, Flood 2014) is ten lines and passes BigCrush, more than latency samples need. Never
//! used for secrets.

/// A stream of random numbers; two streams with different salts are independent.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream `salt` of the run `seed`.
    pub fn new(seed: u64, salt: u64) -> Self {
        let mut rng = Self(seed ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03));
        rng.next_u64();
        rng
    }

    /// Sixty-four uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `[low, high)`.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in logarithm: as likely in `[1, 2)` as in `[100, 200)`.
    pub fn log_range(&mut self, low: f64, high: f64) -> f64 {
        (self.range(low.ln(), high.ln())).exp()
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.next_u64() % choices.len() as u64) as usize]
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A log-normal factor with median 1.
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        // Box-Muller; `1 - unit` is never zero, so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.unit();
        (sigma * radius * angle.cos()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of SplitMix64 for seed 1234567, from the reference implementation.
        let mut rng = Rng(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn log_normal_has_median_one() {
        let mut rng = Rng::new(1, 1);
        let below = (0..10_000).filter(|_| rng.log_normal(0.5) < 1.0).count();
        assert!((4_800..5_200).contains(&below), "{below}");
    }
}
