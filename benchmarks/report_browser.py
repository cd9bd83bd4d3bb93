"""Open a report in headless Chromium, as wide as a desk and as a phone, and see that it is sound.

    python -m benchmarks.report_browser run/report.html docs/

Needs selenium, a Chromium with its driver, and axe-core (``npm install axe-core``; its file is
given by ``--axe`` or the environment variable ``AXE_CORE``). Writes report-desktop.png and
report-phone.png into the folder, and fails with a list of what is wrong: console errors, anything
wider than the window, figures that are not drawn, tables cut off, violations found by axe.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from pathlib import Path

WIDTHS = {"desktop": (1280, 900, 1), "phone": (390, 844, 2)}
TALLEST = 16_000  # of a page that Chromium still draws at twice its size

_LAYOUT = """
const wide = document.documentElement.clientWidth;
const svgs = [...document.querySelectorAll('figure svg')];
const inside = e => e.closest('.scroll, pre');
return {
  overflow: document.documentElement.scrollWidth - wide,
  wide: [...document.querySelectorAll('body *')].filter(e => !inside(e) && !e.closest('svg')
    && e.getBoundingClientRect().right > wide + 1).map(e => e.outerHTML.slice(0, 90)),
  boxes: [...document.querySelectorAll('.scroll, pre')].filter(
    e => e.getBoundingClientRect().right > wide + 1).length,
  figures: svgs.length,
  undrawn: svgs.filter(s => { const b = s.getBoundingClientRect(), g = s.getBBox();
    return b.width < 50 || b.height < 50 || g.width < 50 || s.querySelectorAll('path').length < 3; }
    ).length,
  outside: svgs.flatMap(s => { const b = s.getBoundingClientRect();
    return [...s.querySelectorAll('text')].filter(t => { const r = t.getBoundingClientRect();
      return r.left < b.left - 2 || r.right > b.right + 2; }).map(t => t.textContent); }),
  small: Math.min(...svgs.flatMap(s => [...s.querySelectorAll('text')].map(
    t => t.getBoundingClientRect().height))),
  twice: (ids => ids.filter((x, i) => ids.indexOf(x) !== i))(
    [...document.querySelectorAll('[id]')].map(e => e.id)),
  height: document.documentElement.scrollHeight,
};
"""
_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations', 'incomplete']}).then(
  r => done({violations: r.violations, passes: r.passes.length, incomplete: r.incomplete}),
  e => done({error: String(e)}));
"""


def driver(browser: str | None, driver_path: str | None):
    """Headless Chromium, or a sentence about what is missing."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        sys.exit("report_browser needs selenium: pip install selenium")
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    if browser:
        options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        return webdriver.Chrome(options=options, service=Service(driver_path))
    except Exception as error:  # whatever selenium raises, the cause is the same
        sys.exit(f"report_browser cannot start Chromium (chromium, chromium-driver): {error}")


def look(chrome, page: Path, axe: str, name: str, out: Path, tallest: int) -> list[str]:
    """Open the page at one width; what is wrong, in sentences."""
    wide, tall, scale = WIDTHS[name]
    size = {"width": wide, "height": tall, "deviceScaleFactor": scale, "mobile": name == "phone"}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chrome.get(page.resolve().as_uri())
    seen = chrome.execute_script(_LAYOUT)
    wrong = [f"console: {e['message']}" for e in chrome.get_log("browser") if e["level"] != "INFO"]
    if seen["overflow"] > 0 or seen["wide"] or seen["boxes"]:
        wrong.append(f"wider than the window by {seen['overflow']}: {seen['wide'][:3]}")
    if seen["undrawn"] or not seen["figures"]:
        wrong.append(f"{seen['undrawn']} of {seen['figures']} figures are not drawn")
    if seen["outside"]:
        wrong.append(f"text beyond its figure: {seen['outside'][:5]}")
    if seen["twice"]:
        wrong.append(f"ids that stand twice: {seen['twice'][:5]}")
    chrome.execute_script(axe)
    found = chrome.execute_async_script(_AXE)
    if "error" in found:
        sys.exit(f"axe could not run: {found['error']}")
    wrong += [
        f"axe: {v['id']} ({v['impact']}): {v['help']}; {v['nodes'][0]['html'][:120]}"
        for v in found["violations"]
    ]
    unsure = {v["id"]: [n["html"][:60] for n in v["nodes"][:3]] for v in found["incomplete"]}
    print(
        f"{name}: {wide} px, {seen['figures']} figures drawn, least text in them "
        f"{seen['small']:.1f} px high, {seen['height']:,} px tall; axe: {found['passes']} rules "
        f"passed, {len(found['violations'])} violated, for a person to judge: {unsure or 'none'}"
    )
    shot(chrome, out / f"report-{name}.png", wide, min(seen["height"], tallest or TALLEST))
    return [f"{name}: {line}" for line in wrong]


def shot(chrome, path: Path, wide: int, tall: int) -> None:
    """The whole page as a picture."""
    clip = {"x": 0, "y": 0, "width": wide, "height": tall, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    data = chrome.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    path.write_bytes(base64.b64decode(data))


def printed(chrome, path: Path) -> None:
    """The page on paper."""
    made = chrome.execute_cdp_cmd("Page.printToPDF", {"printBackground": False, "paperWidth": 8.27,
                                                      "paperHeight": 11.69})  # fmt: skip
    path.write_bytes(base64.b64decode(made["data"]))


def main() -> None:
    """Read the arguments, look at both widths, tell what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("out", type=Path, help="the folder of the pictures")
    parser.add_argument("--axe", default=os.environ.get("AXE_CORE"), help="axe.min.js")
    parser.add_argument("--browser", default=os.environ.get("CHROMIUM"))
    parser.add_argument("--driver", default=os.environ.get("CHROMEDRIVER"))
    parser.add_argument("--tall", type=int, default=3600, help="pixels pictured; 0 for the page")
    parser.add_argument("--pdf", type=Path, help="print the page into this file as well")
    given = parser.parse_args()
    if not given.report.is_file():
        sys.exit(f'there is no report "{given.report}"; make one with setpoint fit')
    if not given.axe or not Path(given.axe).is_file():
        sys.exit("report_browser needs axe-core: npm install axe-core, then --axe …/axe.min.js")
    given.out.mkdir(parents=True, exist_ok=True)
    axe = Path(given.axe).read_text(encoding="utf-8")
    chrome = driver(given.browser, given.driver)
    rest = (given.report, axe)
    try:
        wrong = [w for name in WIDTHS for w in look(chrome, *rest, name, given.out, given.tall)]
        if given.pdf:
            printed(chrome, given.pdf)
    finally:
        chrome.quit()
    if wrong:
        sys.exit("\n".join(wrong))
    print(json.dumps({"report": given.report.name, "wrong": 0}))


if __name__ == "__main__":
    main()
