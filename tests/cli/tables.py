"""Tables to fit on, a goal that they meet, and the options of a quick fit."""

import numpy as np
import pandas as pd

GOAL = "maximize recall subject to precision >= 0.6"
QUICK = ("--effort", "quick", "--model", "trees")
#: Nothing of the machine the tests run on may decide colours or widths.
CLEAN = {"COLUMNS": "80", "FORCE_COLOR": None, "NO_COLOR": None, "GITHUB_ACTIONS": None}


def people(n=400, seed=0):
    """Rows with numbers, texts, gaps and dates; the label follows the amount."""
    rng = np.random.default_rng(seed)
    amount = rng.normal(size=n)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    return pd.DataFrame(
        {
            "account": [f"k{i:05d}" for i in rng.permutation(n)],
            "amount": amount.round(3),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "sex": rng.choice(["f", "m"], n),
            "day": days.strftime("%Y-%m-%d"),
            "fraud": (amount + rng.normal(0, 0.4, n) > 0.5).astype(int),
        }
    )
