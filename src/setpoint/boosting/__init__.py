"""The door to boosted trees: goals as objectives of LightGBM, XGBoost and CatBoost, and estimators.

Each library has an *objective* (gradients and hessians, by the library's own conventions), a
*metric* (the exact goal, to stop early by) and an *estimator* for scikit-learn; ``BOOSTERS`` lists
them. A library is loaded when it is first used.
"""

from setpoint.boosting.libraries import (
    BOOSTERS,
    Booster,
    GoalCatBoostClassifier,
    GoalLGBMClassifier,
    GoalXGBClassifier,
)
from setpoint.boosting.metrics import (
    CatBoostMetric,
    GoalMetric,
    LightGBMMetric,
    XGBoostMetric,
    merit,
)
from setpoint.boosting.objectives import CatBoostObjective, LightGBMObjective, XGBoostObjective

__all__ = [
    "LightGBMObjective",
    "XGBoostObjective",
    "CatBoostObjective",
    "GoalMetric",
    "LightGBMMetric",
    "XGBoostMetric",
    "CatBoostMetric",
    "merit",
    "GoalLGBMClassifier",
    "GoalXGBClassifier",
    "GoalCatBoostClassifier",
    "Booster",
    "BOOSTERS",
]
