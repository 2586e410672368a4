"""Four stages of a pipeline by 1F1B, with more blocks the later the stage. Nothing in it knows of lockstep capture."""

import os

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

WIDTH, STAGES = 2048, 4


class Blocks(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)) for _ in range(n))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    mesh = dist.device_mesh.init_device_mesh("cuda", (STAGES, dist.get_world_size() // STAGES), mesh_dim_names=("pp", "dp"))
    number = mesh["pp"].get_local_rank()
    stage = PipelineStage(Blocks(4 + number).cuda(), number, STAGES, torch.device("cuda"), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, 8, loss_fn=lambda out, target: (out - target).square().mean())
    optimizer = torch.optim.AdamW(stage.submod.parameters())
    for _ in range(4):
        batch = torch.randn(8 * 4, 1024, WIDTH, device="cuda")
        if number == 0:
            schedule.step(batch)
        else:
            schedule.step(**{"target": batch} if number == STAGES - 1 else {})
        torch.nn.utils.clip_grad_norm_(stage.submod.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


main()
