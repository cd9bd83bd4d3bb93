"""The page itself: which recordings, in which order, under which headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.exact import page as exact
from benchmarks.implicit import page as implicit
from benchmarks.restoration import page as restoration
from benchmarks.results import papers, peers, portfolio, proof, ranking, regression, targets
from benchmarks.results.figures import table
from benchmarks.results.recording import FOLDER, Recording, read
from benchmarks.results.section import Section, missing
from benchmarks.robustness import page as robustness
from benchmarks.solver import page as solver
from benchmarks.stress import page as stress
from benchmarks.stress import several_page as stress_several

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
Make = Callable[[Recording], Section]

#: heading -> recordings below it: name -> section, title and command while it is not recorded
CHAPTERS: Mapping[str, Mapping[str, tuple[Make, str, str]]] = {
    "The default job beside single models": {
        "portfolio": (
            portfolio.portfolio,
            "The default job",
            "python -m benchmarks.portfolio --run FILE.jsonl; "
            "python -m benchmarks.results --take FILE.jsonl",
        )
    },
    "Peers side by side": {
        name: (make, title, f"python -m benchmarks.peers {name.removeprefix('peers-')}")
        for name, (make, title) in peers.SECTIONS.items()
    },
    "Thresholds that follow the scores": {
        **{
            name: (
                make,
                title,
                f"python -m benchmarks.implicit {name.removeprefix('implicit-')} --record",
            )
            for name, (make, title) in implicit.SECTIONS.items()
        },
        "ranking": (
            ranking.by_query,
            "Ranking by query",
            "python -m benchmarks.ranking --record",
        ),
    },
    "Hard metrics without approximation": {
        name: (make, title, f"python -m benchmarks.exact {name.removeprefix('exact-')} --record")
        for name, (make, title) in exact.SECTIONS.items()
    },
    "Constrained and non-smooth": solver.SECTIONS,
    "Robustness": robustness.SECTIONS,
    "Restoration": restoration.SECTIONS,
    "Regression": {
        "regression": (
            regression.regression,
            "Errors by bins of the target",
            "python -m benchmarks.regression --record",
        )
    },
    "Published tables": {
        "bridging": (
            papers.bridging,
            "“Bridging the Gap”, trained anew",
            "python -m benchmarks.bridging --json FILE.json; "
            "python -m benchmarks.results --take FILE.json",
        )
    },
    "Proof": {
        "simulated": (
            proof.power,
            "How often can it be proven?",
            "python -m benchmarks.peers simulated",
        ),
        "f1bounds": (proof.bounds, "How tight are the bounds?", "make bench"),
        "certify": (proof.speed, "What does it cost?", "make bench"),
    },
    "Speed and safety": {
        "pairs": (targets.pairs, "Losses over all pairs", "python -m benchmarks pairs --record"),
        "stress": (
            stress.section,
            "Plain loops with defaults",
            "python -m benchmarks.stress; python -m benchmarks.stress record",
        ),
        "stress-several": (
            stress_several.section,
            "Plain loops over groups, classes and labels",
            "python -m benchmarks.stress several; "
            "python -m benchmarks.stress record --out stress-several.jsonl",
        ),
        "stress-images": (
            stress.images,
            "Plain loops on images",
            "python -m benchmarks.stress images --device cuda; "
            "python -m benchmarks.stress record --out stress-images.jsonl",
        ),
        "hostile": (
            targets.hostile,
            "Training under hostile conditions",
            "python -m benchmarks hostile --record",
        ),
        "bias": (targets.bias, "Bias of small batches", "make bench"),
    },
}
MORE = {
    "Proof": "Whether PROVEN is true, abstaining under shift, and selection scores: "
    "[proof](results/proof.md).\n",
}

INTRO = """# Results

<!-- Made by `python -m benchmarks.results` from benchmarks/recorded: do not edit. -->

Each table names the command that records it; `make bench` runs the quick ones and makes this page
anew from what is recorded. ± is a standard error: over the seeds of a table, or over the tables
where it says so (splits of one table share rows, so an error over its seeds is on the small side;
"ahead" and "behind" on a table go by intervals corrected for that, Nadeau and Bengio 2003).
"""


def assemble(folder: Path = FOLDER) -> str:
    """The whole page, from the recordings of a folder."""
    chapters, findings = [], []
    for heading, entries in CHAPTERS.items():
        chapters.append(f"## {heading}\n")
        if heading in MORE:
            chapters.append(MORE[heading])
        for name, (make, title, command) in entries.items():
            recording = read(name, folder)
            section = missing(title, command) if recording is None else make(recording)
            findings += section.findings
            chapters.append(f"### {section.title}\n\n{section.text}")
    found = [read(path.stem, folder) for path in sorted(folder.glob("*.json"))]
    judged = [r for r in found if r is not None and any("verdict" in x for x in r.lines)]
    held = targets.targets(judged)
    chapters.append(f"### {held.title}\n\n{held.text}")
    head = ["question", "figure", "ours", "other", "difference", "ours is"]
    counts = [sum(word in x.verdict for x in findings) for word in ("ahead", "even", "behind")]
    summary = (
        f"## Summary\n\nOf {len(findings)} comparisons ours is ahead in {counts[0]}, even in "
        f"{counts[1]} and behind in {counts[2]}.\n\n" + table(head, [x.cells() for x in findings])
    )
    rule = (
        "\nMeans over tables ± s.e. over them; “ahead” and “behind” where Student's 95 % interval "
        "of the difference leaves out 0, with no correction for the number of lines.\n"
    )
    return "\n".join([INTRO, summary + rule, *chapters]).rstrip() + "\n"
