"""Palette of a report: the colours of its page and of its drawings, each named once."""

from __future__ import annotations

# Okabe & Ito's colours, told apart with any colour vision
BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
ORANGE = "#e69f00"
PURPLE = "#a4487e"
SKY = "#56b4e9"

# Text and lines in grey-blue
INK = "#1c2733"
QUIET = "#4d5b68"
GRID = "#dde3e8"
SHADE = "#8a97a3"  #: the side of a drawing where a limit is broken; drawn almost clear

#: variable of the style sheet -> colour; a tint is the ground under its colour
PAGE_COLOURS = {
    "ink": INK,
    "quiet": QUIET,
    "line": GRID,
    "paper": "#ffffff",
    "ground": "#f3f5f7",
    "link": "#00548a",
    "blue": BLUE,
    "tint": "#e8f1f7",
    "interval": "#8fc1de",
    "hit": "#6d93ab",
    "edge": "#7b8894",
    "wrong": "#b24a00",
    "wrong-tint": "#d98a55",
    "good": "#0a6046",
    "good-tint": "#e6f4ef",
    "open": "#6f4a00",
    "open-tint": "#fdf4df",
    "bad": "#94300a",
    "bad-tint": "#fcebe3",
    "plain": "#36495a",
    "plain-tint": "#eaeff3",
    "code": "#f0f4f7",
    "code-ground": "#16212c",
}


def css_variables() -> str:
    """The colours of the page as variables of its style sheet."""
    lines = [f"  --{name}: {colour};" for name, colour in PAGE_COLOURS.items()]
    return "\n".join([":root {", *lines, "}"])
