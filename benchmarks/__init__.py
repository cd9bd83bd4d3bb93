"""Speed and memory of Setpoint, as ratios measured side by side: ``python -m benchmarks``.

Importing this package fixes every numerical library to one thread. It has to happen here, before
numpy or torch is imported: their thread pools read the environment once. Subprocesses inherit it.
"""

import os

for _variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ[_variable] = "1"
