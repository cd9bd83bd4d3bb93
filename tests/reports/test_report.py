"""The report: what stands in it, that it comes back from its JSON, that it harms nobody."""

import json
import re
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest
from tests.reports import cases

import setpoint as sp
from setpoint.reports import Report, ScoredRows, make_report
from setpoint.reports.render.palette import PAGE_COLOURS

EVIL = '<script>alert("x")</script> $a_b$ & `c` | d'


@pytest.fixture(scope="module")
def full():
    return cases.binary()


@pytest.fixture(scope="module")
def page(full):
    return full.html()


class Page(HTMLParser):
    """Elements of a page: tags, ids, headings in order, figures with their names."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.levels, self.images = [], [], [], []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "svg" and attrs.get("role") == "img":
            self.images.append(attrs)
        if tag not in ("meta", "br", "img", "input", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def again(report):
    return Report.from_json(json.loads(json.dumps(report.to_json(), allow_nan=False)))


PLAIN = {"plan": None, "comparison": None, "diagnosis": None, "n": 1000}
NEVER = "maximize recall subject to precision >= 0.999, recall >= 0.9"
EVERY = {
    "weights": lambda: cases.binary(**{**PLAIN, "weights": True}),
    "no certify rows": lambda: cases.binary(certify=False, **PLAIN),
    "no rows": lambda: cases.binary(**{**PLAIN, "scored": ()}),
    "no constraint": lambda: cases.binary("maximize f1", certify=False, **PLAIN),
    "infeasible": lambda: cases.binary(NEVER, certify=False, **PLAIN),
    "unfinished": lambda: cases.binary(facts=cases.facts(finished=False), **PLAIN),
    "three classes": lambda: cases.several(),
    "labels": lambda: cases.several(kind="multilabel"),
}


@pytest.mark.parametrize("name", EVERY)
def test_comes_back_from_json_and_draws_the_same(name):
    report = EVERY[name]()
    back = again(report)
    assert back == report  # the record, from which alone everything is drawn
    html = back.html()
    assert back.card() == report.card()
    assert str(back) == str(report)
    assert len(html) < 1_500_000
    assert len(json.dumps(report.to_json())) < 300_000
    found = Page(html)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))


def test_curves_are_thinned_and_hold_no_rows(full):
    def longest(x):
        if isinstance(x, dict):
            return max(map(longest, x.values()), default=0)
        if isinstance(x, list):
            return max([len(x), *map(longest, x)])
        return 0

    assert longest(full.to_json()) <= 201


def test_sections_stand_in_order(page):
    words = [
        "The model keeps what was asked: of the rows it flags, at least 80% have wilted = yes.",
        "The goal",
        "Key figures on rows never used before",
        "The trade-off",
        "What the limits cost",
        "What it does, in people",
        "Who is affected",
        "The certificate",
        "What it bought over the others",
        "What more labels would buy",
        "The scores behind it",
        "Checks",
        "How the threshold was chosen",
        "How to use it",
        "Everything needed to make it again",
    ]
    assert re.findall("<h2[^>]*>(.*?)</h2>", page) == words
    assert 'class="status">PROVEN' in page
    assert "Left out of this report" not in page


def test_what_does_not_apply_is_left_out_and_said():
    page = cases.several().html()
    for gone in ("Key figures on rows never", "The scores behind it", '<h2 id="certificate"'):
        assert gone not in page
    assert "calibration: a multiclass task has no single score" in page
    assert "figures by group: no group column was given" in page
    assert "the certificate: the goal sets no limit" in page
    assert page.count('scope="row">class a') == 2  # in the confusion table and by class


def test_many_classes_are_capped():
    report = cases.several(40, 4000, goal="maximize accuracy", rule_kind="argmax")
    table = report.record["confusion"]
    assert len(table["labels"]) == 31
    assert table["left_out"] == 10
    assert np.sum(table["table"]) == 4000
    assert "10 rarest classes" in report.html()


def test_headings_tables_and_figures_can_be_heard(page):
    found = Page(page)
    assert found.levels[0] == 1
    assert all(b <= a + 1 for a, b in zip(found.levels, found.levels[1:], strict=False))
    assert [t for t, _ in found.tags].count("main") == 1
    assert len(found.images) == 9
    for attrs in found.images:
        for part in attrs["aria-labelledby"].split():
            assert part in found.ids
    for name, words in re.findall(
        r"<title id=[^>]*>(.*?)</title><desc id=[^>]*>(.*?)</desc>", page
    ):
        assert len(name) > 5
        assert len(words) > 30
    assert all("scope" in attrs for tag, attrs in found.tags if tag == "th")
    scrolling = [a for t, a in found.tags if a.get("class") == "scroll"]
    assert scrolling
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in scrolling)
    assert len({a["aria-label"] for a in scrolling}) == len(scrolling)


def test_one_file_without_scripts(page):
    found = Page(page)
    assert not {"script", "link", "iframe", "img", "object"} & {t for t, _ in found.tags}
    for _, attrs in found.tags:
        assert not any(name.startswith("on") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "@import" not in page
    assert "url(http" not in page


def test_text_of_users_is_escaped_everywhere():
    y, s = cases.rows(2000, 1)
    rule = sp.tune(cases.GOAL, y, s)
    made = cases.comparison()
    evil = type(made)(
        made.goal,
        EVIL,
        tuple(type(c)(EVIL, c.point, c.value, c.kept, c.merit) for c in made.contenders),
        tuple(type(d)(EVIL, d.value, d.low, d.high, d.merit, d.merit_low, d.merit_high)
              for d in made.differences),
        made.rows,
        made.folds,
        EVIL,
    )  # fmt: skip

    class Diagnosis:
        def lines(self):
            return [EVIL]

        def to_json(self):
            return {EVIL: EVIL}

    facts = cases.facts(
        source=EVIL,
        target=EVIL,
        positive=EVIL,
        fingerprint=EVIL,
        columns={EVIL: 3},
        parts={EVIL: (5, 1)},
        plan=(EVIL,),
        notes=(EVIL,),
        settings={EVIL: EVIL},
        versions={EVIL: EVIL},
        usage=(EVIL,),
    )
    report = make_report(
        goal=cases.GOAL,
        rule=rule,
        scored=[ScoredRows("out-of-fold", y, s, {EVIL: np.where(y, EVIL, "b")})],
        facts=facts,
        comparison=evil,
        diagnosis=Diagnosis(),
        checks=[type(cases.CHECKS[0])("SP101", EVIL, "look", EVIL)],
    )
    page = report.html()
    assert "<script" not in page.lower()
    assert page.count("&lt;script&gt;") > 20
    assert Page(page).open == []
    card = report.card()
    head, body = card.split("---\n", 2)[1:]
    front = pytest.importorskip("yaml").safe_load(head)
    assert front["model-index"][0]["name"] == EVIL
    outside = [line for line in body.splitlines() if not line.startswith("    ")]  # no code
    assert "<script" not in "\n".join(outside)
    assert again(report).html() == page


def test_a_damaged_record_is_refused(full, tmp_path):
    data = full.to_json()
    for change in (
        {"format": "setpoint report 2"},
        {"verdict": {"status": "FINE"}},
        {"checks": "none"},
        {"groups": None},
    ):
        with pytest.raises(sp.FileError):
            Report.from_json({**data, **change})
    with pytest.raises(sp.FileError):
        Report.from_json({k: v for k, v in data.items() if k != "curves"})
    broken = json.loads(json.dumps(data))
    broken["curves"]["pr"]["x"][3] = "<svg onload=alert(1)>"
    with pytest.raises(sp.FileError, match=r"PrecisionRecall\.x cannot be"):
        Report.from_json(broken)
    broken = json.loads(json.dumps(data))
    del broken["rule"]["point"]
    with pytest.raises(sp.FileError, match='damaged: RuleSummary lacks "point"'):
        Report.from_json(broken)
    broken = json.loads(json.dumps(data))
    broken["curves"]["pr"] = 3
    with pytest.raises(sp.FileError, match="damaged"):
        Report.from_json(broken)
    (tmp_path / "report.json").write_text('{"format": ')
    with pytest.raises(sp.FileError, match="is not a report"):
        Report.load(tmp_path)


def test_saved_and_loaded(full, page, tmp_path):
    folder = full.save(tmp_path / "a" / "run")
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "report.html", "report.json"]
    assert (folder / "report.html").read_text(encoding="utf-8") == page
    assert Report.load(folder) == full
    assert Report.load(folder / "report.json") == full
    (tmp_path / "file").write_text("x")
    with pytest.raises(sp.FileError, match="cannot make the folder"):
        full.save(tmp_path / "file" / "run")


def test_the_same_rows_and_the_same_json_give_the_same_page(page):
    assert again(cases.binary()).html() == page


def test_plain_text_tells_the_story(full):
    text = str(full)
    for word in (
        "PROVEN",
        "Goal",
        "Figures",
        "Certificate",
        "Referee",
        "SP102",
        "setpoint predict",
    ):
        assert word in text
    assert max(map(len, text.splitlines())) <= 100


def test_card_has_front_matter_that_yaml_reads(full):
    yaml = pytest.importorskip("yaml")
    _, head, body = full.card().split("---\n", 2)
    front = yaml.safe_load(head)
    assert front["library_name"] == "setpoint"
    assert front["pipeline_tag"] == "tabular-classification"
    result = front["model-index"][0]["results"][0]
    values = {m["type"]: m["value"] for m in result["metrics"]}
    items = {i["name"]: i["value"] for i in full.record["figures"][0]["items"]}
    assert values["precision"] == pytest.approx(items["precision"], abs=1e-6)
    for title in ("# wilted in trees.csv", "## The certificate", "## How to use it", "SP102"):
        assert title in body


def test_rules_of_other_kinds_have_reports_too():
    y, s = cases.rows(3000, 1)
    band = sp.tune("maximize coverage subject to selective_risk <= 0.03", y, s)
    report = make_report(
        goal=band.goal, rule=band, scored=[ScoredRows("out-of-fold", y, s)], facts=cases.facts()
    )
    assert "nothing decided" in report.html()
    table = report.record["confusion"]
    assert table["tp"] + table["fp"] + table["fn"] + table["tn"] + sum(table["undecided"]) == 3000
    region = {"region": np.where(np.arange(3000) % 3 == 0, "a", "b")}
    each = sp.tune(cases.GOAL, y, s, group=region, kind="per-group", by="region")
    report = make_report(
        goal=each.goal,
        rule=each,
        scored=[ScoredRows("out-of-fold", y, s, region)],
        facts=cases.facts(),
    )
    assert len(report.record["distribution"]["cuts"]) == 2
    assert "more than one threshold" in report.html()


def test_regression_is_refused():
    rule = sp.tune(cases.GOAL, *cases.rows(500, 1))
    object.__setattr__(rule.point, "task", sp.Task.regression())
    with pytest.raises(sp.KindError, match="not regression"):
        make_report(
            goal=cases.GOAL,
            rule=rule,
            scored=[ScoredRows("certify", *cases.rows(500, 2))],
            facts=cases.facts(),
        )


def test_every_colour_of_the_page_stands_in_the_palette():
    """Print alone says black, white and grey by itself."""
    folder = resources.files("setpoint.reports.render") / "templates"
    sources = {item.name: item.read_text("utf-8") for item in folder.iterdir()}
    sources["page.css"], _, printed = sources["page.css"].partition("@media print")
    assert printed
    colour = re.compile(r"(?<!&)#[0-9a-fA-F]{3,8}\b(?!\w)")
    assert colour.findall("fill: #0072b2; color: #fff") == ["#0072b2", "#fff"]
    strange = {name: colour.findall(text) for name, text in sources.items()}
    assert {name: colours for name, colours in strange.items() if colours} == {}
    used = set(re.findall(r"var\(--([\w-]+)\)", sources["page.css"]))
    assert used == set(PAGE_COLOURS)
