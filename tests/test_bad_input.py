"""Bad input: each case raises our class, also the built-in one users expect, with a sentence."""

import json

import numpy as np
import pytest
import torch

import setpoint as sp

Y = [0, 1, 0, 1, 1, 0]
S = [0.1, 0.9, 0.4, 0.7, 0.6, 0.2]
P = [0, 1, 0, 1, 1, 0]
G = ["a", "b", "a", "b", "a", "b"]
GOAL = "maximize recall subject to precision >= 0.5"
NAN = float("nan")
THREE = sp.Task.multiclass(["a", "b", "c"])


def tune(y=Y, s=S, goal=GOAL, **more):
    return lambda: sp.tune(goal, y, s, **more)


def goal(text, task=None):
    return lambda: sp.check(sp.Goal.parse(text), task)


def per_group():
    return sp.tune("maximize accuracy", Y, S, group=G, kind="per-group")


def top_k():
    return sp.tune("maximize precision_at_k(3)", Y, S)


# name, call, class, built-in class, part of the sentence
CASES = [
    # scores
    ("nan score", tune(s=[0.1, NAN, 0.4, 0.7, 0.6, 0.2]), sp.DataError, ValueError, "scores hold nan at row 1"),
    ("infinite score", tune(s=[0.1, 0.9, 0.4, np.inf, 0.6, 0.2]), sp.DataError, ValueError, "scores hold inf at row 3"),
    ("nan in a tensor", tune(s=torch.tensor([0.1, NAN, 0.4, 0.7, 0.6, 0.2])), sp.DataError, ValueError, "at row 1"),
    ("boolean scores", tune(s=[True, False] * 3), sp.KindError, TypeError, "booleans, which look like decisions"),
    ("text scores", tune(s=list("abcdef")), sp.KindError, TypeError, "scores must be numbers"),
    ("one number for scores", tune(s=0.5), sp.KindError, TypeError, "scores must be an array with one entry per row"),
    ("no scores", tune(s=None), sp.KindError, TypeError, "scores must be an array"),
    ("not a probability", tune(s=[0.1, 1.9, 0.4, 0.7, 0.6, 0.2], task=sp.Task.binary(score="probability")), sp.KindError, TypeError, "1.9, which is not a probability"),
    ("a matrix of scores in a binary task", tune(s=np.ones((6, 2))), sp.DataError, ValueError, "scores must be one-dimensional; its shape is (6, 2)"),
    ("a vector of scores in a multiclass task", tune(y=list("abcabc"), task=THREE, goal="maximize accuracy"), sp.DataError, ValueError, "a matrix with one column per class"),
    ("too few columns of scores", tune(y=list("abcabc"), s=np.ones((6, 2)), task=THREE, goal="maximize accuracy"), sp.DataError, ValueError, "2 columns for 3 classes"),
    ("columns of scores without names", tune(y=list("ababab"), s=np.ones((6, 3)), task="multiclass", goal="maximize accuracy"), sp.DataError, ValueError, "say which column is which"),
    ("wrong kind at decide", lambda: sp.tune("maximize f1", Y, S, task=sp.Task.binary(score="probability")).decide([3.0]), sp.KindError, TypeError, "not a probability"),
    ("nan at decide", lambda: sp.tune("maximize f1", Y, S).decide([0.5, NAN]), sp.DataError, ValueError, "nan at row 1"),
    # rows
    ("lengths differ", tune(s=S[:5]), sp.DataError, ValueError, "y_true has 6 rows and scores has 5"),
    ("lengths of weights differ", tune(sample_weight=[1.0]), sp.DataError, ValueError, "sample_weight has 1"),
    ("lengths of groups differ", tune(group=["a"]), sp.DataError, ValueError, 'group "group" has 1'),
    ("no rows", lambda: sp.recall([], []), sp.DataError, ValueError, "y_true is empty"),
    ("ragged rows", lambda: sp.recall([[0], [1, 2]], [0, 1]), sp.DataError, ValueError, "y_true"),
    ("one class only", tune(y=[1] * 6), sp.DataError, ValueError, "y_true holds only the class 1"),
    ("one class with weight", tune(sample_weight=[0, 1, 0, 1, 1, 0]), sp.DataError, ValueError, "only the class 1"),
    ("one class in a multiclass task", tune(y=["a"] * 6, s=np.ones((6, 3)), task=THREE, goal="maximize accuracy"), sp.DataError, ValueError, "only the class 'a'"),
    ("auroc of one class", lambda: sp.auroc([1, 1], [0.1, 0.2]), sp.DataError, ValueError, "needs rows of both classes"),
    ("auroc of one class in a group", lambda: sp.metric('worst(auroc, by="group")')(Y, S, group=["b", "a", "b", "a", "a", "b"]), sp.DataError, ValueError, "where group="),
    # labels
    ("labels outside the task", lambda: sp.recall([0, 1, 2], [0, 1, 1]), sp.DataError, ValueError, "y_true holds 2 at row 2"),
    ("labels -1 and 1", lambda: sp.recall([-1, 1], [-1, 1]), sp.DataError, ValueError, "y_true holds -1 at row 0"),
    ("text labels without a positive", tune(y=["no", "yes"] * 3), sp.DataError, ValueError, "say which label is positive, for example positive=\"yes\""),
    ("a positive of another kind", tune(positive="1"), sp.DataError, ValueError, "they must be of one kind"),
    ("a gap in the labels", lambda: sp.recall([0, 1, NAN], [0, 1, 1]), sp.DataError, ValueError, "nan at row 2"),
    ("scores where decisions belong", lambda: sp.recall(Y, S), sp.DataError, ValueError, "pass scores >= threshold"),
    ("decisions where scores belong", lambda: sp.auroc(Y, np.array(P) == 1), sp.KindError, TypeError, "look like decisions"),
    ("an unknown class in the labels", lambda: sp.accuracy(list("abd"), list("abc"), task=THREE), sp.DataError, ValueError, "the label 'd' at row 2"),
    ("an unknown class in the goal", lambda: sp.recall.of("z")(list("abc"), list("abc"), task=THREE), sp.DataError, ValueError, "there is no class 'z'"),
    ("a positive in a multiclass task", lambda: sp.accuracy(list("abc"), list("abc"), task=THREE, positive="a"), sp.KindError, TypeError, "belongs to a binary task"),
    ("negative relevance", lambda: sp.ndcg(2)([1, -1], [0.1, 0.2], task="ranking"), sp.DataError, ValueError, "negative relevance"),
    ("infinite target", lambda: sp.mae([1.0, np.inf], [0.0, 0.0], task="regression"), sp.DataError, ValueError, "inf at row 1"),
    # weights
    ("negative weight", tune(sample_weight=[1, 1, -1, 1, 1, 1]), sp.DataError, ValueError, "sample_weight is -1 at row 2"),
    ("nan weight", tune(sample_weight=[1, 1, NAN, 1, 1, 1]), sp.DataError, ValueError, "sample_weight is nan at row 2"),
    ("weights that sum to zero", lambda: sp.recall(Y, P, [0] * 6), sp.DataError, ValueError, "sums to zero"),
    ("text weights", lambda: sp.recall(Y, P, list("abcdef")), sp.KindError, TypeError, "sample_weight must be numbers"),
    # goals and metrics
    ("unknown metric", goal("maximize recal"), sp.GoalSyntaxError, ValueError, "did you mean recall?"),
    ("a bound above the range", goal("maximize recall subject to precision >= 1.2"), sp.GoalError, ValueError, '"precision >= 1.2" can never hold: precision lies in [0, 1]'),
    ("a bound below the range", goal("maximize recall subject to fpr <= -0.1"), sp.GoalError, ValueError, "can never hold"),
    ("an equality outside the range", goal("maximize recall subject to mcc == 2"), sp.GoalError, ValueError, "mcc lies in [-1, 1]"),
    ("an empty bound", goal("maximize recall subject to precision <= 1.5"), sp.GoalError, ValueError, "always holds and asks for nothing"),
    ("a bound on a derived range", goal("maximize recall subject to 1 - fpr >= 1.5"), sp.GoalError, ValueError, "lies in [0, 1]"),
    ("contradictory constraints", goal("maximize f1 subject to recall >= 0.9, recall <= 0.5"), sp.GoalError, ValueError, '"recall >= 0.9" and "recall <= 0.5" contradict'),
    ("contradictory complements", goal("maximize f1 subject to specificity >= 0.9, fpr >= 0.2"), sp.GoalError, ValueError, "contradict each other"),
    ("contradictory affine forms", goal("maximize f1 subject to 1 - fnr >= 0.9, 2 * recall <= 1"), sp.GoalError, ValueError, "contradict each other"),
    ("two numbers compared", goal("maximize f1 subject to 0.5 >= 0.2"), sp.GoalError, ValueError, "compares two numbers"),
    ("one class in a multiclass goal", goal("maximize f1", "multiclass"), sp.GoalError, ValueError, "in a multiclass task say macro(f1)"),
    ("a regression metric of classes", goal("maximize recall subject to mae <= 1"), sp.GoalError, ValueError, "mae is for regression tasks, not binary"),
    ("a class metric of regression", goal("maximize f1", "regression"), sp.GoalError, ValueError, "a regression task has mae"),
    ("classes of a regression", goal("minimize worst(mae, by=\"class\")", "regression"), sp.GoalError, ValueError, "a regression task has none"),
    ("bins of classes", goal('maximize worst(recall, by="bin")'), sp.GoalError, ValueError, "which only a regression task has"),
    ("decisions of a ranking", goal("maximize f1", "ranking"), sp.GoalError, ValueError, "a ranking task has scores"),
    ("auroc in a ranking", goal("maximize auroc", "ranking"), sp.GoalError, ValueError, "not taken by query"),
    ("a multilabel metric of two classes", goal("minimize hamming_loss"), sp.GoalError, ValueError, "for multilabel tasks"),
    ("a range in Python", lambda: 0.1 <= sp.fpr <= 0.2, sp.KindError, TypeError, "neither true nor false"),
    ("a strict bound in Python", lambda: sp.fpr > 0.2, sp.KindError, TypeError, "write >="),
    ("a truth value of a metric", lambda: bool(sp.fpr), sp.KindError, TypeError, "no truth value"),
    ("a metric plus a text", lambda: sp.fpr + "a", sp.KindError, TypeError, "'a' cannot stand beside"),
    ("an infinite bound", lambda: sp.fpr <= float("inf"), sp.GoalError, ValueError, "numbers are finite"),
    ("a number as constraint", lambda: sp.maximize(sp.f1).subject_to(3), sp.KindError, TypeError, "a constraint compares a metric"),
    ("a number as goal", lambda: sp.tune(3, Y, S), sp.KindError, TypeError, "a goal is needed"),
    ("a metric without direction as goal", lambda: sp.tune(sp.positive_rate, Y, S), sp.KindError, TypeError, "a goal is needed"),
    ("a metric of scores tuned", tune(goal="maximize auroc"), sp.GoalError, ValueError, "no operating point can change it"),
    ("a metric no decision moves", tune(goal="maximize prevalence"), sp.GoalError, ValueError, "nothing to choose"),
    ("abstaining with a threshold", tune(goal="maximize coverage subject to selective_risk <= 0.1", kind="threshold"), sp.GoalError, ValueError, "about abstaining"),
    ("the wrong way round", tune(goal="minimize recall_at_precision(0.5)"), sp.GoalError, ValueError, "is the best value already; maximize it"),
    ("regression tuned", tune(y=[1.0, 2, 3, 4, 5, 6], goal="minimize mae", task="regression"), sp.GoalError, ValueError, "no operating point"),
    ("two readings at once", lambda: sp.metric("auroc + recall")(Y, P), sp.KindError, TypeError, "judges decisions and scores"),
    ("a call with a wrong option", lambda: sp.recall(Y, P, wieght=[1] * 6), sp.KindError, TypeError, "is evaluated as recall(y_true, y_pred"),
    ("a call without rows", lambda: sp.recall(), sp.GoalError, ValueError, "pass y_true and y_pred"),
    # groups, queries, k
    ("a group that is not passed", tune(goal='maximize recall subject to gap(recall, by="group") <= 0.1'), sp.DataError, ValueError, 'speaks of the column "group": pass it as group='),
    ("a group column misspelt", tune(goal='maximize recall subject to gap(recall, by="sx") <= 0.1', group={"sex": G}), sp.DataError, ValueError, "did you mean sex?"),
    ("a group value misspelt", lambda: sp.recall.on(group="bb")(Y, P, group=G), sp.DataError, ValueError, "no row has group='bb'"),
    ("a gap in the groups", tune(group=["a", None, "a", "b", "a", "b"]), sp.DataError, ValueError, "missing value at row 1"),
    ("an unknown group at decide", lambda: per_group().decide([0.5], group=["z"]), sp.DataError, ValueError, "unknown group 'z'"),
    ("no group at decide", lambda: per_group().decide([0.5]), sp.DataError, ValueError, "pass group="),
    ("a group where none is needed", lambda: sp.tune("maximize f1", Y, S).decide(S, group=G), sp.KindError, TypeError, "takes no group"),
    ("per group without groups", tune(kind="per-group"), sp.DataError, ValueError, "pass group="),
    ("per group with two columns", tune(kind="per-group", group={"sex": G, "age": G}), sp.DataError, ValueError, "say by="),
    ("a declared group without rows", tune(kind="per-group", group=G, task=sp.Task.binary(groups={"group": ("a", "b", "c")})), sp.DataError, ValueError, "no row has group='c'"),
    ("k above n", lambda: sp.precision_at_k(7)(Y, S), sp.DataError, ValueError, "k = 7 is more than the 6 rows"),
    ("k above n at decide", lambda: top_k().decide([0.5]), sp.DataError, ValueError, "k = 3 is more than the 1 rows"),
    ("no query", lambda: sp.mean_average_precision([1, 0], [0.1, 0.2], task="ranking"), sp.DataError, ValueError, "pass query="),
    ("an unknown kind of rule", tune(kind="thresold"), sp.KindError, TypeError, "did you mean threshold?"),
    ("a kind of another task", tune(kind="offsets"), sp.KindError, TypeError, "a binary task takes threshold"),
    ("an unknown task", tune(task="binry"), sp.KindError, TypeError, "did you mean binary?"),
    ("classes twice", lambda: sp.Task.multiclass(["a", "a"]), sp.KindError, TypeError, "classes must differ"),
    ("edges out of order", lambda: sp.Task.regression([1.0, 0.0]), sp.KindError, TypeError, "increasing"),
    ("flags that are no booleans", lambda: sp.coverage(Y, P, abstained=[0, 1] * 3), sp.KindError, TypeError, "abstained must be booleans"),
    ("shards of other classes", lambda: sp.macro(sp.f1).totals(["a"], ["a"], task="multiclass") + sp.macro(sp.f1).totals(["b"], ["b"], task="multiclass"), sp.DataError, ValueError, "declare"),
    # what a review tried
    ("a masked array", lambda: sp.recall(np.ma.array(Y, mask=[1, 0, 0, 0, 0, 0]), P), sp.KindError, TypeError, "masked array"),
    ("dates as scores", tune(s=np.arange(6).astype("datetime64[D]")), sp.KindError, TypeError, "scores must be numbers"),
    ("complex scores", tune(s=np.array(S) + 1j), sp.KindError, TypeError, "scores must be numbers"),
    ("numbers as text", tune(s=[str(x) for x in S]), sp.KindError, TypeError, "scores must be numbers"),
    ("bytes as labels", lambda: sp.recall([b"a", b"b"], [b"a", b"b"], positive="a"), sp.DataError, ValueError, "decode them to text"),
    ("a positive misspelt", lambda: sp.recall(["fraud", "ok"], ["ok", "ok"], positive="fruad"), sp.DataError, ValueError, 'did you mean positive="fraud"?'),
    ("mixed kinds of labels", lambda: sp.accuracy([1, "a"], [1, "a"], task="multiclass"), sp.DataError, ValueError, "mixes or holds"),
    ("text against numbers", lambda: sp.accuracy(["a", "b"], [1, 2], task="multiclass"), sp.DataError, ValueError, "different kinds"),
    ("a missing label", lambda: sp.recall(["a", None], ["a", "a"], positive="a"), sp.DataError, ValueError, "missing value at row 1"),
    ("weights that overflow", lambda: sp.recall(Y, P, [1e308] * 6), sp.DataError, ValueError, "scale the weights down"),
    ("no decisions", lambda: sp.recall(Y, None), sp.KindError, TypeError, "y_pred is None"),
    ("no scores to judge", lambda: sp.auroc(Y, None), sp.KindError, TypeError, "y_pred is None"),
    ("probabilities of two classes", tune(s=np.ones((6, 2)) / 2), sp.DataError, ValueError, "of predict_proba pass [:, 1]"),
    ("a group outside the declared", lambda: sp.gap(sp.recall, by="group")(Y, P, group=G, task=sp.Task.binary(groups={"group": ("a",)})), sp.DataError, ValueError, "the task declares a"),
    ("a group column called class", lambda: sp.gap(sp.recall, by="class")(Y, P, group={"class": G}), sp.DataError, ValueError, '"class" cannot name a group column'),
    ("a class that is not there, tuned", tune(goal='maximize recall subject to positive_rate.of("typo") <= 0.5'), sp.DataError, ValueError, "there is no class 'typo'"),
    ("weights in a ranking", lambda: sp.ndcg(2)([1, 0], [0.1, 0.2], [1, 2], task="ranking"), sp.DataError, ValueError, "takes no sample_weight"),
    ("labels of another width", lambda: sp.macro(sp.f1)([[0, 1]], [[0, 1, 1]], task="multilabel"), sp.DataError, ValueError, "y_true has 2 columns and y_pred has 3"),
    ("a percentage without its sign", goal("maximize recall subject to precision >= 70"), sp.GoalError, ValueError, "did you mean 70%?"),
    ("a constant bound out of range", goal("maximize recall subject to precision >= 1 + 1"), sp.GoalError, ValueError, "can never hold"),
    ("no exponent", lambda: sp.recall ** float("nan"), sp.GoalError, ValueError, "an exponent is a number up to 16"),
    ("a division by zero", lambda: sp.recall / 0, sp.GoalError, ValueError, "division by zero"),
    ("a class that is no label", lambda: sp.recall.of(sp.precision), sp.GoalError, ValueError, "a class is text"),
    ("no class at all", lambda: sp.recall.of(None), sp.GoalError, ValueError, "a class is text"),
    ("a fraction of k", lambda: sp.ndcg(2.5), sp.GoalError, ValueError, "k is a whole number"),
    ("an infinite k", lambda: sp.precision_at_k(float("inf")), sp.GoalError, ValueError, "k is a whole number"),
    ("a share that is text", lambda: sp.auroc(max_fpr="a"), sp.GoalError, ValueError, "max_fpr is a number"),
    ("a flag that is text", lambda: sp.auroc(standardized="no"), sp.GoalError, ValueError, "it is true or false"),
    ("classes as text", lambda: sp.Task.multiclass("abc"), sp.KindError, TypeError, "classes must be a list"),
    ("groups as a list", lambda: sp.Task.binary(groups=["a"]), sp.KindError, TypeError, "groups must map"),
    ("edges as text", lambda: sp.Task.regression(["a"]), sp.KindError, TypeError, "edges must be numbers"),
    ("check of nothing", lambda: sp.check(None), sp.KindError, TypeError, "a goal is needed"),
    ("evaluate without a rule", lambda: sp.evaluate(None, Y, S), sp.KindError, TypeError, "a DecisionRule is needed"),
    ("a curve of a number", lambda: sp.metric_curve("fpr", 3, Y, S), sp.KindError, TypeError, "two metrics"),
    ("a curve of one class", lambda: sp.roc_curve([1, 1], [0.1, 0.2]), sp.DataError, ValueError, "defined nowhere"),
    ("a plot of no constraint", lambda: sp.plot_frontier(tune()(), 5), sp.GoalError, ValueError, "the rule has 1"),
    ("a goal file that is none", lambda: sp.Goal.from_json({}), sp.FileError, ValueError, "not a goal"),
    ("micro of a ranking", lambda: sp.micro(sp.auroc), sp.GoalError, ValueError, "only totals of decisions add up"),
    ("classes of real targets", lambda: sp.macro(sp.mae)([1.0, 2.0], [1.0, 2.0], task="regression"), sp.GoalError, ValueError, "a regression task has none"),
    ("bins of classes, evaluated", lambda: sp.worst(sp.recall, by="bin")(Y, P), sp.GoalError, ValueError, "only a regression task has"),
    ("a sparse tensor", lambda: sp.f1(torch.tensor([0, 1]).to_sparse(), [0, 1]), sp.KindError, TypeError, "without plain values"),
    ("a huge number", lambda: sp.f1 * 10**400, sp.GoalError, ValueError, "too large"),
    ("a huge exponent", lambda: sp.metric("tp ** 400"), sp.GoalError, ValueError, "no number to use here"),
    ("a huge beta", lambda: sp.f_beta(1e200), sp.GoalError, ValueError, "beta is a positive number"),
    ("a seed that is text", tune(random_state="x"), sp.KindError, TypeError, "random_state is a whole number"),
    ("huge scores of classes", tune(y=list("abcabc"), s=np.full((6, 3), 1e308), task=THREE, goal="maximize accuracy"), sp.DataError, ValueError, "scale them down"),
    ("a rule file with a name that cannot be", lambda: sp.DecisionRule.load("a\0b"), sp.FileError, ValueError, "cannot read"),
    ("a rule saved under a name that cannot be", lambda: top_k().save("a\0b"), sp.FileError, ValueError, "Nothing was written"),
    ("a rule saved nowhere", lambda: top_k().save(None), sp.FileError, ValueError, "name of a file"),
    ("a plot of a number", lambda: sp.plot_curve(3), sp.KindError, TypeError, "a curve is needed"),
    ("a frontier of a number", lambda: sp.plot_frontier(3), sp.KindError, TypeError, "a DecisionRule is needed"),
    ("another k beside top-k", tune(goal="maximize precision_at_k(3) subject to recall_at_k(2) >= 0.1"), sp.GoalError, ValueError, "ranks other rows than the first 3"),
    ("groups beside top-k", tune(goal='maximize precision_at_k(3) subject to gap(precision_at_k(3), by="group") <= 0.5', group=G), sp.GoalError, ValueError, "ranks other rows"),
    # files
    ("not a rule", lambda: sp.DecisionRule.from_json({"a": 1}), sp.FileError, ValueError, "not a rule"),
    ("a damaged rule", lambda: sp.DecisionRule.from_json({"format": "setpoint rule 1"}), sp.FileError, ValueError, "damaged"),
    ("a rule with a tampered threshold", lambda: sp.DecisionRule.from_json(tune()().to_json() | {"threshold": "abc"}), sp.FileError, ValueError, "damaged"),
    ("a rule without its threshold", lambda: sp.DecisionRule.from_json(tune()().to_json() | {"threshold": None}), sp.FileError, ValueError, "damaged"),
    ("a rule with tampered rows", lambda: sp.DecisionRule.from_json(tune()().to_json() | {"rows": "x"}), sp.FileError, ValueError, "damaged"),
    ("a rule turned into another", lambda: sp.DecisionRule.from_json(tune()().to_json() | {"kind": "offsets"}), sp.FileError, ValueError, "damaged"),
    ("a rule from nowhere", lambda: sp.DecisionRule.load(None), sp.FileError, ValueError, "cannot read"),
    ("a rule of no kind", lambda: sp.DecisionRule.from_json(top_k().to_json() | {"kind": "x"}), sp.FileError, ValueError, 'unknown kind of rule "x"'),
    ("no such rule file", lambda: sp.DecisionRule.load("nowhere.json"), sp.FileError, ValueError, 'cannot read "nowhere.json"'),
    ("a folder that is not there", lambda: top_k().save("no/such/folder/rule.json"), sp.FileError, ValueError, "Nothing was written"),
    ("unknown data set", lambda: sp.datasets.load("wit"), sp.DataError, ValueError, "wilt"),
    ("a file that is not there", lambda: sp.datasets.read_table("nowhere.csv"), sp.FileError, ValueError, "nowhere.csv"),
]  # fmt: skip


def test_at_least_forty_cases_are_held():
    assert len({name for name, *_ in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize(
    ("call", "ours", "builtin", "sentence"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_bad_input_is_answered_with_a_sentence(call, ours, builtin, sentence):
    with pytest.raises(ours) as caught:
        call()
    assert isinstance(caught.value, builtin)
    assert isinstance(caught.value, sp.SetpointError)
    assert sentence in str(caught.value)


def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch):
    rule = sp.tune("maximize f1", Y, S)
    path = rule.save(tmp_path / "rule.json")
    before = path.read_text()
    monkeypatch.setattr(
        "os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left"))
    )
    with pytest.raises(sp.FileError, match="No space left"):
        rule.save(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["rule.json"]


def test_a_rule_file_is_data_only(tmp_path):
    path = sp.tune("maximize f1", Y, S).save(tmp_path / "rule.json")
    data = json.loads(path.read_text())
    data["goal"] = "maximize __import__('os').system('true')"
    path.write_text(json.dumps(data))
    with pytest.raises(sp.GoalError):
        sp.DecisionRule.load(path)
