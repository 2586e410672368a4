"""Tensor parallelism by symmetric memory in four stages of a pipeline: the second rank of one stage that is captured meets
seven others of its node, which are not."""

import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from torch.distributed.device_mesh import init_device_mesh


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh("cuda", (4, dist.get_world_size() // 32, 8), mesh_dim_names=("pp", "dp", "tp"))
    of_node, stages = mesh["tp"].get_group(), mesh["pp"].get_group()
    weight = torch.nn.Parameter(torch.zeros(512, 512, device="cuda"))
    optimizer, sent = torch.optim.SGD([weight]), torch.zeros(1024, device="cuda")
    for _ in range(4):
        shared = symmetric.empty(1024, device="cuda")
        assert symmetric.rendezvous(shared, of_node.group_name).world_size == 8
        stage = mesh["pp"].get_local_rank()
        if stage > 0:
            dist.recv(sent, group_src=stage - 1, group=stages)
        if stage < 3:
            dist.send(sent, group_dst=stage + 1, group=stages)
        (weight @ weight).sum().backward()
        optimizer.step()


main()
