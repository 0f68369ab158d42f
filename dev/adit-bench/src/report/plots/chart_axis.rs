//! The axis of a chart: round numbers from zero to just beyond the longest bar.

use crate::figures::format_short;

/// Marks at equal distances, from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChartAxis {
    step: f64,
    marks: u32,
}

impl ChartAxis {
    /// Returns an axis that reaches `most`, with three to six marks, zero included.
    pub(super) fn for_maximum(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 {
            most
        } else {
            1.0
        };
        let unit = 10f64.powf((most / 5.0).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * unit);
        let enough = |step: &f64| most / step <= 5.0 + 1e-9;
        let step = steps.into_iter().find(enough).unwrap_or(10.0 * unit);
        Self {
            step,
            // At most five steps and a remainder.
            marks: ((most / step - 1e-9).ceil() as u32).max(1),
        }
    }

    /// Returns the last mark.
    pub(super) fn end(self) -> f64 {
        self.step * f64::from(self.marks)
    }

    /// Returns the marks with their labels, zero included.
    pub(super) fn marks(self) -> impl Iterator<Item = (f64, String)> {
        (0..=self.marks).map(move |mark| {
            let value = self.step * f64::from(mark);
            (value, self.label(value))
        })
    }

    fn label(self, value: f64) -> String {
        let whole = |places: usize| {
            let scaled = self.step * 10f64.powi(i32::try_from(places).unwrap_or(0));
            (scaled - scaled.round()).abs() < 1e-6
        };
        match (0..9).find(|places| whole(*places)).unwrap_or(9) {
            0 if value >= 1000.0 => format_short(value),
            places => format!("{value:.places$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(most: f64) -> Vec<String> {
        let axis = ChartAxis::for_maximum(most);
        assert!(axis.end() >= most * 0.999_999, "{most}: {axis:?}");
        axis.marks().map(|(_, label)| label).collect()
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(labels(2.3), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
        assert_eq!(
            labels(0.012),
            ["0.0000", "0.0025", "0.0050", "0.0075", "0.0100", "0.0125"]
        );
        assert_eq!(labels(109.0), ["0", "25", "50", "75", "100", "125"]);
        assert_eq!(
            labels(8190.0),
            ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]
        );
        assert_eq!(labels(5.0), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(labels(0.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn any_bar_has_few_marks() {
        for exponent in -30..30 {
            for factor in [1.0, 1.3, 2.0, 3.7, 5.1, 9.99] {
                let count = labels(factor * 10f64.powi(exponent)).len();
                assert!((3..=6).contains(&count), "{factor}e{exponent}: {count}");
            }
        }
        assert_eq!(
            ChartAxis::for_maximum(f64::NAN),
            ChartAxis::for_maximum(0.0)
        );
    }
}
