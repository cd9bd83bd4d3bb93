"""The command line: ``setpoint tune``, ``certify``, ``decide``, ``monitor`` and the others.

A door: it reads options and files, asks the library and prints the answer. Nothing is computed
here, and nothing below this room prints.
"""

from setpoint.cli.app import main

__all__ = ["main"]
