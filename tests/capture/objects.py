"""Objects of all ranks are gathered, small ones and of more than a MiB together: each rank sends what this one does. A collective
of a program that waits for seconds is not too late: no time passes on the GPU meanwhile."""

import datetime
import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=1))
dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=1), dist.new_group())
dist.all_reduce(torch.zeros(1 << 28, device="cuda"), async_op=True)
time.sleep(4)
for size in (10, 100_000):
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, {"rank": dist.get_rank(), "text": "x" * size})
    assert all(g == gathered[0] for g in gathered) and len(gathered[0]["text"]) == size
    dist.gather_object(size, gathered if dist.get_rank() == 0 else None)
    assert dist.get_rank() or gathered == [size] * len(gathered)
    dist.broadcast_object_list([size, "x" * size] if dist.get_rank() == 0 else [None, None])
weight = torch.nn.Parameter(torch.zeros(1024, 1024, device="cuda"))
optimizer = torch.optim.SGD([weight])
for _ in range(4):
    (weight @ weight).sum().backward()
    optimizer.step()
