"""``python -m benchmarks.portfolio``: the defaults of GoalClassifier against single strategies.

``--run FILE.jsonl`` appends one line for each (table, split, strategy, goal); what the file holds
already is not run again, and files can be joined by ``cat``. ``--report FILE.jsonl …`` prints
Markdown.

Protocol
    Tables of at most 10,000 rows; splits 0–4: 80 % of the rows are given to a strategy, 20 % are
    test rows, stratified. Goals: G1 maximize recall subject to precision >= p₀ (:data:`P0`), G2
    maximize f1, G3 maximize precision subject to recall >= 0.9, G4 minimize fnr subject to
    fpr <= 0.02. Merit = max(−1, gain − penalty · violation) on the test rows; the gain of G4 is
    1 − FNR, the penalty 5 for precision and recall, 50 for the FPR; a precision with nothing
    flagged is 0. Strategies: :mod:`benchmarks.portfolio.strategies`.
"""
