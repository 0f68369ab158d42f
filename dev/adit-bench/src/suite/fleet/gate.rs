//! A gate: a measured figure with its bound.

use crate::figures::{AT_MOST, Figures, Metric, Quantity, whole_figure};

/// A measured figure with its bound.
pub(super) struct Gate {
    pub(super) name: String,
    quantity: Quantity,
    measured: f64,
    bound: Option<f64>,
}

impl Gate {
    pub(super) fn new(
        name: impl Into<String>,
        quantity: Quantity,
        measured: f64,
        bound: f64,
    ) -> Self {
        Self {
            name: name.into(),
            quantity,
            measured,
            bound: Some(bound),
        }
    }

    /// Creates a figure without a bound.
    pub(super) fn free(name: impl Into<String>, quantity: Quantity, measured: f64) -> Self {
        Self {
            name: name.into(),
            quantity,
            measured,
            bound: None,
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let mut figures = vec![whole_figure(self.quantity, self.measured)];
        figures.extend(self.bound.map(|bound| {
            let (quantity, part) = (self.quantity, AT_MOST);
            (Metric { quantity, part }, bound)
        }));
        figures
    }
}
