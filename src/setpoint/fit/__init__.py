"""Fitting: from rows and a goal to a trained model. The estimator and the command line call it."""

from setpoint.fit import storage
from setpoint.fit.classifier import reweighted
from setpoint.fit.network import Fitted, Part, Settings, device_of, fit_network, probabilities

__all__ = [
    "Fitted",
    "Part",
    "Settings",
    "device_of",
    "fit_network",
    "probabilities",
    "reweighted",
    "storage",
]
