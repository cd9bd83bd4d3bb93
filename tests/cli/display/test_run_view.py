"""A run on the screen: the lines that use its folder."""

import shlex
from pathlib import Path

from setpoint.cli.display.run_view import RunUsage


def test_a_folder_with_a_space_is_quoted_in_every_line():
    usage = RunUsage.of(Path("my run") / "it's", "setpoint")
    for line in (usage.predict, usage.evaluate, usage.explain):
        assert shlex.split(line)[2] == str(Path("my run") / "it's")
    assert usage.python == 'sp.load("my run/it\'s").predict(table)'
