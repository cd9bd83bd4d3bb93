"""Losses over all pairs: one sort against the pairs written out, and against LibAUC.

Speed
    Forward and backward of a batch of 8192 rows, a tenth of them positive, one thread, rounds
    interleaved; in each, one call that is not counted (the allocator tidies up after the case
    before) and then the mean of ten, or one call of a written-out form. Targets: at least 30 times
    as fast as the same loss written out as a matrix of pairs, the gradient within 1e-6 (of its
    largest entry) of the written-out one in float64, and faster than LibAUC's loss of the same
    kind. LibAUC runs in its own environment, so the two are compared as multiples of the
    written-out squared hinge, which both processes time.

Safety
    Runs of a small network that end finite, of five, under each hostile condition
    (``peers/hostile.py``). Ours must all end finite; LibAUC's are reported.
"""

from __future__ import annotations

import torch
from rich.console import Console

from benchmarks.harness import Check, interleave, new_table, one_thread, seconds_of, verdict
from benchmarks.harness import verdict_cell as cell
from benchmarks.peers import NOT_INSTALLED, hostile, libauc, written_out
from setpoint.methods.pair_sums import auroc_loss, average_precision_loss

ROWS = 8192
CALLS = 10
FASTER = 30.0
CLOSE = 1e-6
BASE = "written out squared hinge"


def _auroc(surrogate: str):
    return lambda logits, target: auroc_loss(logits, target, surrogate=surrogate)


#: name -> ours, written out, LibAUC's of the same kind, speed-up asked for
LOSSES = {
    "squared hinge": (
        _auroc("squared-hinge"),
        written_out.squared_hinge,
        "PairwiseAUCLoss squared_hinge",
        FASTER,
    ),
    "laplace": (_auroc("laplace"), written_out.laplace, "PairwiseAUCLoss logistic", FASTER),
    "logistic": (_auroc("logistic"), written_out.logistic, "PairwiseAUCLoss logistic", None),
    "average precision": (
        average_precision_loss,
        written_out.average_precision,
        "APLoss squared_hinge",
        FASTER,
    ),
}


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Measure speed, then safety; the rows of both."""
    del rows
    one_thread()
    peer = libauc(ROWS, repeats)
    if peer is None:
        console.print(NOT_INSTALLED)
    return _speed(console, repeats, peer) + _safety(console, peer)


def _speed(console: Console, repeats: int, peer: dict | None) -> list[dict]:
    logits, target = written_out.batch(ROWS)
    calls, cases = {}, {}
    for name, (ours, theirs, _, _) in LOSSES.items():
        for case, loss, times in ((name, ours, CALLS), (f"written out {name}", theirs, 1)):
            calls[case] = written_out.forward_backward(loss, logits, target)
            cases[case] = _mean_of(calls[case], times)
    times = interleave(cases, repeats)
    table = new_table(
        f"Losses over pairs: forward and backward of {ROWS} rows, 10 % positive, ms",
        "speed-up: over the written-out form; LibAUC: its seconds over ours, by a common base",
        ("loss",),
        ("ours", "written out", "speed-up", "gradient off by", "LibAUC", ""),
    )
    records = []
    for name, (_, theirs, rival, wanted) in LOSSES.items():
        exact = written_out.forward_backward(theirs, logits.double(), target)()
        off = float((calls[name]() - exact).abs().max() / exact.abs().max())
        share = times[name].ratio_to(times[f"written out {name}"])
        checks = [Check(off, CLOSE), Check(share, None if wanted is None else 1 / wanted)]
        lead = None
        if peer is not None:
            lead = (
                peer["seconds"][rival] / peer["seconds"][BASE] / times[name].ratio_to(times[BASE])
            )
            checks.append(Check(1 / lead, 1.0))
        word = verdict(checks)
        figures = {"rival": rival, "rival_over_ours": lead} if peer else {}
        records.append(
            {
                "loss": name,
                **times[name].figures(),
                "speed_up": 1 / share,
                "gradient_off": off,
                **figures,
                "verdict": word,
            }
        )
        table.add_row(
            name,
            f"{1e3 * times[name].median:.2f}",
            f"{1e3 * times[f'written out {name}'].median:.0f}",
            f"{1 / share:.0f}×",
            f"{off:.0e}",
            "–" if lead is None else f"{lead:.0f}×",
            cell(word),
        )
    console.print(table)
    if peer is not None:
        listed = ", ".join(f"{k} {1e3 * v:.1f}" for k, v in peer["seconds"].items())
        console.print(f"LibAUC {peer['version']}, ms in its own process: {listed}")
    return records


def _mean_of(call, times: int):
    def several() -> None:
        for _ in range(times):
            call()

    def measure() -> float:
        call()
        return seconds_of(several)() / times

    return measure


def _ours(loss):
    def setup(model: torch.nn.Module):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        return lambda logits, target, index: loss(logits, target), optimizer, []

    return setup


def _safety(console: Console, peer: dict | None) -> list[dict]:
    setups = {f"{name}, Adam": _ours(ours) for name, (ours, *_) in LOSSES.items()}
    sides = {"ours": hostile.outcomes(setups)}
    if peer is not None:
        sides["LibAUC"] = peer["training"]
    table = new_table(
        f"Training under hostile conditions: runs of {hostile.SEEDS} that end finite",
        "conditions: " + "; ".join(f"{i} {x}" for i, x in enumerate(hostile.CONDITIONS)),
        ("whose", "loss, optimizer"),
        (*(str(i) for i in range(len(hostile.CONDITIONS))), ""),
    )
    records, ends = [], set()
    for whose, found in sides.items():
        for name, conditions in found.items():
            finite = [counts.get("finite", 0) for counts in conditions.values()]
            lost = hostile.SEEDS * len(finite) - sum(finite)
            word = verdict([Check(lost, 0.0 if whose == "ours" else None)])
            table.add_row(whose, name, *map(str, finite), cell(word))
            records.append({"whose": whose, "loss": name, "ends": conditions, "verdict": word})
            ends |= {f"{name}: {end}" for x in conditions.values() for end in x if end != "finite"}
    console.print(table)
    for end in sorted(ends):
        console.print(f"  {end}", highlight=False)
    return records
