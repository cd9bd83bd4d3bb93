"""Metrics of real predictions."""

from __future__ import annotations

from setpoint.expressions import Ratio, Spread, Total
from setpoint.expressions.rows.columns import ABSOLUTE_ERROR
from setpoint.expressions.value_intervals import NONNEGATIVE
from setpoint.metrics.definition import HIGHER, LOWER, MetricDefinition, metric

_ONLY = ("regression",)
_squared = Total(quantity="squared error")

mae = metric("mae", Ratio(Total(quantity=ABSOLUTE_ERROR), Total()), LOWER, NONNEGATIVE, (), _ONLY)
mse = metric("mse", Ratio(_squared, Total()), LOWER, NONNEGATIVE, (), _ONLY)
rmse = metric("rmse", mse**0.5, LOWER, NONNEGATIVE, (), _ONLY)
r2 = metric("r2", 1 - Ratio(_squared, Spread(), empty=1.0), HIGHER, (float("-inf"), 1.0), (), _ONLY)

_REAL = '[3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0], task="regression"'
_SK = "scikit-learn: "
ROWS = (
    MetricDefinition(
        "mae",
        mae,
        "Σ w |y − ŷ| / Σ w",
        _SK + "mean_absolute_error",
        "mean absolute error",
        call=_REAL,
        value="0.5",
    ),
    MetricDefinition(
        "mse",
        mse,
        "Σ w (y − ŷ)² / Σ w",
        _SK + "mean_squared_error",
        "mean squared error",
        call=_REAL,
        value="0.375",
    ),
    MetricDefinition(
        "rmse",
        rmse,
        "√MSE",
        _SK + "root_mean_squared_error",
        "root mean squared error",
        call=_REAL,
        value="0.6123724356957945",
    ),
    MetricDefinition(
        "r2",
        r2,
        "1 − Σ w (y − ŷ)² / Σ w (y − ȳ)²",
        _SK + "r2_score",
        "share of the spread explained; 0 where the targets do not vary",
        call=_REAL,
        value="0.9486081370449679",
    ),
)
