"""Two stages on half of the ranks each: the second one holds as many layers as the first one tells it. With "wait" both
wait for the other, with "fail" the second one fails, and with "after" the first one for that; with "odd" its last
rank does more than the others; with "once" the second one hangs when it runs for the first time; with "world" stages
are neighbours, which send over the group of all, and every two pairs of them have a group too."""
import os
import sys
import time

import torch
from torch.distributed import distributed_c10d as c10d

rank, world, what = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1:]
group, peers = c10d.init_process_group(), (rank & ~1, rank | 1)
if "world" in what:
    wide = [c10d.new_group(list(range(r, r + 4))) for r in range(0, world, 4)]
    groups, stage = [c10d.new_group([r, r + 1]) for r in range(0, world, 2)], rank % 2
else:
    groups = [c10d.new_group([r, r + world // 2]) for r in range(world // 2)]
    group, stage, peers = groups[rank % (world // 2)], rank * 2 // world, (0, 1)
if "wait" in what:
    group.receive(peers[1 - stage])
if stage == 0:
    group.send(3, peers[1])
layers = 2 if stage == 0 else group.receive(peers[0]) or 1
if "once" in what and stage and not os.path.exists("once"):
    open("once", "w").close()
    time.sleep(600)
parameters = [torch.nn.Parameter(1 << 30) for layer in range(layers)]
if "fail" in what and stage:
    raise ValueError("no weights")
if "after" in what and stage == 0 and group.receive(peers[1]) != 5:
    raise ValueError("no number")
optimizer = torch.optim.Adam(parameters)
for step in range(10):
    for p in parameters:
        p.grad = torch.Tensor(p.size)
    torch.cuda.product()
    if "odd" in what and rank == world - 1:
        torch.cuda.product()
    optimizer.step()
    for p in parameters:
        p.grad.free()
