"""What a running loss refuses when it is made."""

from __future__ import annotations

import math
from typing import Any

from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint.programs import StreamProgram


def check_options(program: StreamProgram, memory: Any, warmup: Any, accumulate: Any) -> None:
    """Refuse options that mean nothing, or that the program cannot be run with."""
    if not is_real(memory) or not 0 <= memory < math.inf:
        raise KindError(f"memory={memory!r}: a number of rows, 0 or more")
    if not is_real(warmup) or not 0 <= warmup < math.inf or warmup != int(warmup):
        raise KindError(f"warmup={warmup!r}: a whole number of steps, 0 or more")
    if not is_real(accumulate) or not 1 <= accumulate < math.inf or accumulate % 1:
        raise KindError(f"accumulate={accumulate!r}: a whole number, 1 or more")
    if accumulate > 1 and not memory:
        raise KindError(
            f"accumulate={accumulate} needs running totals: a part of a batch cannot be priced at "
            "totals that are not there yet; leave memory as it is"
        )
    if accumulate > 1 and program.together:
        raise KindError(
            f'accumulate={accumulate}: correction="soft" and pool=0 take thresholds from a '
            "whole batch; leave accumulate at 1, or correction and pool as they are"
        )
    if not program.exact:
        return
    if not memory:
        raise KindError(
            "memory=0 prices each batch at its own totals, and a table knows those of all rows; "
            "leave memory as it is"
        )
    if accumulate > 1:
        raise KindError(
            f"accumulate={accumulate}: a table of rows moves with every call; leave accumulate at "
            '1 and take larger batches, or form="eliminated", which can wait'
        )
