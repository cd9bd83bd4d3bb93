"""The single models of :mod:`benchmarks.portfolio`, at their defaults; one thread each."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def encoded(model: Any) -> Pipeline:
    """Numbers standardised, gaps filled by the median and flagged, categories one-hot."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer(
            (numbers, make_column_selector(dtype_exclude="category")),
            (categories, make_column_selector(dtype_include="category")),
        ),
        model,
    )


def linear(seed: int) -> Any:
    """Logistic regression, scikit-learn's defaults."""
    return encoded(LogisticRegression(max_iter=2000, random_state=seed))


def network(seed: int) -> Any:
    """A perceptron of 64 and 32 units."""
    return encoded(Perceptron(random_state=seed))


def lightgbm(seed: int) -> Any:
    """LightGBM, its defaults."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed)


def balanced(seed: int) -> Any:
    """scikit-learn's boosted trees with balanced class weights."""
    return HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)


MODELS = {"LR": linear, "MLP": network, "LightGBM": lightgbm, "HGB-balanced": balanced}


class Perceptron(ClassifierMixin, BaseEstimator):
    """64–32–1 with ReLU on cross-entropy, stopped early by the log loss of a tenth of the rows.

    scikit-learn's MLPClassifier stops by accuracy, which says nothing where positives are rare.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Perceptron:
        """Adam, batches of 256, at most 200 epochs, patience 15; the best epoch is kept."""
        import copy

        import torch
        from torch import nn

        self.classes_ = np.array([0, 1])
        stratify = y if np.bincount(y).min() >= 10 else None
        train, held = train_test_split(
            np.arange(len(y)), test_size=0.1, random_state=self.random_state, stratify=stratify
        )
        x, t = torch.from_numpy(np.asarray(X, np.float32)), torch.from_numpy(y.astype(np.float32))
        rng = torch.Generator().manual_seed(self.random_state)
        torch.manual_seed(self.random_state)
        net = nn.Sequential(
            nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )
        step = torch.optim.Adam(net.parameters(), 2e-3, weight_decay=1e-5)
        loss, best, kept, waited = nn.BCEWithLogitsLoss(), np.inf, net.state_dict(), 0
        for _ in range(200):
            order = train[torch.randperm(len(train), generator=rng).numpy()]
            net.train()
            for start in range(0, len(order), 256):
                batch = order[start : start + 256]
                step.zero_grad()
                loss(net(x[batch])[:, 0], t[batch]).backward()
                step.step()
            with torch.no_grad():
                now = float(loss(net(x[held])[:, 0], t[held]))
            if now < best - 1e-4:
                best, kept, waited = now, copy.deepcopy(net.state_dict()), 0
            elif (waited := waited + 1) >= 15:
                break
        net.load_state_dict(kept)
        self.net_ = net
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities (n, 2)."""
        import torch

        with torch.no_grad():
            logit = self.net_(torch.from_numpy(np.asarray(X, np.float32)))[:, 0]
        p = torch.sigmoid(logit.double()).numpy()
        return np.stack([1 - p, p], 1)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """0/1 at ½."""
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)
