"""A table with a column of free text: a goal on the text alone, and on text and columns together.

python examples/text_column.py

Free text is ignored by fit, which says so: what a text means is for an embedding of yours to say.
Here that is TF-IDF and a singular value decomposition, learned in the script from invented
messages. A sentence-transformer goes in the same place, see ``embed`` below.
"""

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.7"
BAD = (
    "still waiting for an answer|the line went dead again|nobody called me back|"
    "this is the third time I write|I was charged twice|the price went up without a word|"
    "how do I end my contract|your rival offers more for less|I am tired of this|"
    "the technician never came"
).split("|")
GOOD = (
    "thank you for the quick help|the new router works well|please update my address|"
    "how do I read the meter online|the shop was friendly|I would like a paper bill|"
    "can I add a second line|the app is easy to use|when does the office open|"
    "all is fine so far"
).split("|")


def messages(n: int, seed: int) -> pd.DataFrame:
    """Messages of customers, three columns beside them, and who left within a month (1 in 4)."""
    random = np.random.default_rng(seed)
    anger = random.normal(size=n)
    table = pd.DataFrame(
        {
            "months": random.integers(1, 120, n),
            "bill": random.gamma(4, 10, n).round(2),
            "plan": random.choice(["basic", "family", "business"], n, p=[0.5, 0.3, 0.2]),
        }
    )
    lines = []
    for share in 1 / (1 + np.exp(1 - 3 * anger)):
        few = [random.choice(BAD if random.random() < share else GOOD) for _ in range(6)]
        lines.append(". ".join(few) + ".")
    table["message"] = lines
    pull = 6 * anger - table["months"] / 30 + 2 * (table["plan"] == "basic") - 3
    table["left"] = (random.random(n) < 1 / (1 + np.exp(-pull))).astype(int)
    return table


def embedding(dimensions: int = 16):
    """Texts as numbers."""
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(dimensions, random_state=0))


def show(title: str, clf: sp.GoalClassifier, X, y) -> None:
    """The rule, the proof, what it bought, and how it fares on later rows."""
    print(f"\n=== {title}")
    print(clf.rule_)
    print(clf.certificate_)
    print(clf.comparison_)
    decided = clf.predict(X)
    print(
        f"later rows: recall {sp.recall(y, decided):.3f}, precision {sp.precision(y, decided):.3f}"
    )


rows, later, unlabelled = messages(3000, 0), messages(3000, 1), messages(2000, 2)
y, y_later = rows.pop("left"), later.pop("left")

# (a) The text alone. A pipeline is fitted anew in every fold, its vocabulary too, so nothing of a
# row is known to the model that scores it. folds=3: more rows to choose on than one part held.
model = make_pipeline(embedding(), LogisticRegression())
clf = sp.GoalClassifier(GOAL, model=model, folds=3).fit(rows["message"], y)
show("the text alone", clf, later["message"], y_later)

# (b) The text as sixteen columns beside the others, for the portfolio. Here the embedding is fixed
# beforehand, and must not come from the rows that certify: it is learned from messages without
# labels. One that was trained elsewhere is as good:
#
#     from sentence_transformers import SentenceTransformer
#     embed = SentenceTransformer("all-MiniLM-L6-v2").encode
embed = embedding().fit(unlabelled["message"]).transform


def joined(table: pd.DataFrame) -> pd.DataFrame:
    """The table with numbers in place of the text."""
    numbers = np.asarray(embed(table["message"].tolist()))
    names = [f"message {i}" for i in range(numbers.shape[1])]
    return table.drop(columns="message").join(pd.DataFrame(numbers, table.index, names))


clf = sp.GoalClassifier(GOAL, effort="quick").fit(joined(rows), y)
show("text and columns", clf, joined(later), y_later)
