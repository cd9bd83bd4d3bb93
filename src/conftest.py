"""Doors to trainers that are not installed hold no examples to run."""

from importlib.util import find_spec

DOORS = {"setpoint/huggingface.py": "transformers", "setpoint/skorch.py": "skorch"}
collect_ignore = [file for file, package in DOORS.items() if find_spec(package) is None]
