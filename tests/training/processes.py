"""Processes that train together, started from a server that has torch and the package loaded.

Starting three fresh interpreters costs more than most of what they are asked to do.
"""

import torch.multiprocessing as mp

LOADED = [
    "torch",
    "torch.distributed.fsdp",
    "torch._dynamo",  # what an optimiser's first step imports: seconds, once instead of per process
    "setpoint.losses",
    "setpoint.training.loop",
]


def run_processes(worker, *args, count):
    """Run ``worker(rank, *args)`` in ``count`` processes and wait for them."""
    mp.get_context("forkserver").set_forkserver_preload(LOADED)
    mp.start_processes(worker, args=args, nprocs=count, join=True, start_method="forkserver")
