"""Every example in the documents runs and prints what it says."""

import doctest
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_run(page):
    text = page.read_text(encoding="utf-8").replace("```", "")
    parser = doctest.DocTestParser()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = parser.get_doctest(text, {}, page.name, str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert report == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for part in page.read_text(encoding="utf-8").split("](")[1:]:
        target = part.split(")")[0].split("#")[0]
        if target and not target.startswith("http"):
            assert (page.parent / target).exists(), target
