"""The door to boosted trees: goals as objectives of LightGBM, XGBoost and CatBoost, and estimators.

Each library has an *objective* (gradients and hessians, by the library's own conventions), a
*metric* (the exact goal, to stop early by) and an *estimator* for scikit-learn; ``BOOSTERS`` lists
them. A library is loaded when it is first used.
"""

from setpoint.boosting.catboost_objective import CatBoostObjective
from setpoint.boosting.library_estimators import (
    BOOSTERS,
    Booster,
    GoalCatBoostClassifier,
    GoalLGBMClassifier,
    GoalXGBClassifier,
)
from setpoint.boosting.lightgbm_objective import LightGBMObjective
from setpoint.boosting.stopping_metrics import (
    CatBoostMetric,
    GoalMetric,
    LightGBMMetric,
    XGBoostMetric,
    merit,
)
from setpoint.boosting.xgboost_objective import XGBoostObjective

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


def __dir__() -> list[str]:
    return sorted(__all__)
