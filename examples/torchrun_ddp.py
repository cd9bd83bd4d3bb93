"""A goal on several processes: every rank sees its rows, the loss sees the totals of all.

    torchrun --standalone --nproc_per_node 2 examples/torchrun_ddp.py
    torchrun --standalone --nproc_per_node 2 examples/torchrun_ddp.py --fsdp

The gradients that DistributedDataParallel and fully_shard average are those of the whole batch, so
the number of processes does not change what is learned.
"""

import sys

import torch
import torch.distributed as dist
from data import network, rows
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import setpoint as sp

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")

x, y = (t.to(device) for t in rows())
model = network().double().to(device)
loss = sp.GoalLoss("maximize f1", method="soft-set").double().to(device)
wrapped = fully_shard(model) if "--fsdp" in sys.argv else DistributedDataParallel(model)
optimiser = torch.optim.SGD(model.parameters(), 0.5)

for step in range(50):
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(step))[:255]
    mine = order.to(device)[rank::world]  # the shares may differ in size
    optimiser.zero_grad()
    loss(wrapped(x[mine].double()), y[mine]).backward()
    optimiser.step()

size = sum(p.full_tensor().square().sum() if "--fsdp" in sys.argv else p.square().sum()
           for p in model.parameters()).sqrt()  # fmt: skip
if rank == 0:
    print(f"processes {world}, norm of the weights {size.item():.9f}, {loss.recover()}")
dist.destroy_process_group()
