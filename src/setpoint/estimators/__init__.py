"""Scikit-learn estimators that are trained for a goal."""

from setpoint.estimators.classifier import GoalClassifier, load
from setpoint.estimators.regressor import GoalRegressor

__all__ = ["GoalClassifier", "GoalRegressor", "load"]
