"""The results page: from recorded figures to docs/results.md, ``python -m benchmarks.results``.

A benchmark records what it measured, one line a run, in ``benchmarks/recorded/``; the page is made
from those files alone, so that no number on it is typed and none is older than its recording.
"""
