"""Fitting: from rows and a goal to a trained model. The estimator and the command line call it."""

from setpoint.fit import storage
from setpoint.fit.classifier import classifier_scores, fit_classifier
from setpoint.fit.labels import Labels, needs_two, read_labels
from setpoint.fit.network import Fitted, Part, Settings, device_of, fit_network, probabilities
from setpoint.fit.operating_point import choose_rule

__all__ = [
    "Fitted",
    "Part",
    "Settings",
    "device_of",
    "fit_network",
    "probabilities",
    "Labels",
    "choose_rule",
    "classifier_scores",
    "fit_classifier",
    "needs_two",
    "read_labels",
    "storage",
]
