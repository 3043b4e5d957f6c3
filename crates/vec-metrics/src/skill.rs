//! Skill: where a metric value stands between its floor and its ceiling (EXT-03).

/// Floor and ceiling closer than this cannot be told apart (as in the organisers' package).
const SPAN_MIN: f64 = 1e-12;

/// A denominator at or below this means "beyond the ceiling by the whole span".
const DENOMINATOR_MIN: f64 = 1e-9;

/// What a better value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Errors and distances.
    LowerIsBetter,
    /// Agreements.
    HigherIsBetter,
    /// Signed values whose target is 0: magnitudes are compared.
    TowardZero,
}

/// The two values that fix the scale of a metric on one row set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchors {
    /// Value of the floor model; its skill is 0.5.
    pub floor: f64,
    /// Best attainable value; its skill is 1.
    pub ceiling: f64,
}

/// Why a value has no skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// The value or an anchor is NaN or infinite.
    #[error("{0} is not finite")]
    NotFinite(&'static str),
    /// Floor and ceiling coincide: the row set separates nothing.
    #[error("floor and ceiling coincide, so that nothing can be ranked")]
    Degenerate,
}

/// `d_floor / (d_floor + d)` with `d_floor = |ceiling − floor|` and `d` the signed distance of
/// `value` beyond the ceiling, at most 1: floor → 0.5, ceiling or better → 1, worse → toward 0.
///
/// # Errors
/// [`SkillError`] for input that is not finite and for anchors closer than 1e-12.
pub fn skill(value: f64, anchors: Anchors, direction: Direction) -> Result<f64, SkillError> {
    let Anchors { floor, ceiling } = anchors;
    for (name, number) in [("value", value), ("floor", floor), ("ceiling", ceiling)] {
        if !number.is_finite() {
            return Err(SkillError::NotFinite(name));
        }
    }
    let (value, floor, ceiling) = match direction {
        Direction::TowardZero => (value.abs(), floor.abs(), ceiling.abs()),
        Direction::LowerIsBetter | Direction::HigherIsBetter => (value, floor, ceiling),
    };
    let span = (ceiling - floor).abs();
    if span < SPAN_MIN {
        return Err(SkillError::Degenerate);
    }
    let distance = match direction {
        Direction::HigherIsBetter => ceiling - value,
        Direction::LowerIsBetter | Direction::TowardZero => value - ceiling,
    };
    let denominator = span + distance;
    if denominator <= DENOMINATOR_MIN {
        return Ok(1.0);
    }
    Ok((span / denominator).min(1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOW: Direction = Direction::LowerIsBetter;

    #[test]
    fn anchors_are_hit_in_every_direction() {
        for (direction, floor, ceiling, beyond) in [
            (LOW, 60.0, 0.0, -1.0),
            (Direction::HigherIsBetter, 0.2, 0.9, 0.95),
            (Direction::TowardZero, -2.0, 0.5, 0.1),
        ] {
            let anchors = Anchors { floor, ceiling };
            assert_eq!(skill(floor, anchors, direction), Ok(0.5));
            assert_eq!(skill(ceiling, anchors, direction), Ok(1.0));
            assert_eq!(skill(beyond, anchors, direction), Ok(1.0));
        }
    }

    #[test]
    fn overshooting_a_target_of_zero_is_no_gain() {
        let anchors = Anchors {
            floor: 1.0,
            ceiling: 0.1,
        };
        let over = skill(-3.0, anchors, Direction::TowardZero).expect("finite");
        let under = skill(3.0, anchors, Direction::TowardZero).expect("finite");
        assert_eq!(over, under);
        assert!(over < 0.5);
    }

    #[test]
    fn no_number_and_no_span_are_failures() {
        let anchors = Anchors {
            floor: 1.0,
            ceiling: 0.0,
        };
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(
                skill(bad, anchors, LOW),
                Err(SkillError::NotFinite("value"))
            );
            let broken = Anchors {
                floor: bad,
                ..anchors
            };
            assert_eq!(skill(1.0, broken, LOW), Err(SkillError::NotFinite("floor")));
        }
        let flat = Anchors {
            floor: 0.0,
            ceiling: 0.0,
        };
        assert_eq!(skill(1.0, flat, LOW), Err(SkillError::Degenerate));
    }

    proptest! {
        #[test]
        fn skill_is_in_range_and_monotone(floor in 0.01..1e6_f64, value in 0.0..1e9_f64, more in 0.0..1e6_f64) {
            let anchors = Anchors { floor, ceiling: 0.0 };
            let better = skill(value, anchors, LOW).expect("finite");
            let worse = skill(value + more, anchors, LOW).expect("finite");
            prop_assert!(worse <= better && better <= 1.0 && worse > 0.0);
        }
    }
}
