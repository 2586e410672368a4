"""Tensor parallelism by symmetric memory in two stages of a pipeline: a second rank of each stage meets seven others of
its node, of which none is captured."""

import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from torch.distributed.device_mesh import init_device_mesh


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh("cuda", (2, dist.get_world_size() // 16, 8), mesh_dim_names=("pp", "dp", "tp"))
    of_node, stages = mesh["tp"].get_group(), mesh["pp"].get_group()
    weight = torch.nn.Parameter(torch.zeros(512, 512, device="cuda"))
    optimizer, sent = torch.optim.SGD([weight]), torch.zeros(1024, device="cuda")
    for _ in range(4):
        shared = symmetric.empty(1024, device="cuda")
        assert symmetric.rendezvous(shared, of_node.group_name).world_size == 8
        if mesh["pp"].get_local_rank() == 0:
            dist.send(sent, group_dst=1, group=stages)
        else:
            dist.recv(sent, group_src=0, group=stages)
        (weight @ weight).sum().backward()
        optimizer.step()


main()
