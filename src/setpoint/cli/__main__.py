"""``python -m setpoint.cli``: the same as the command ``setpoint``."""

from setpoint.cli.app import main

if __name__ == "__main__":
    main()
