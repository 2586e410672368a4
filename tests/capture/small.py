"""Small things that programs do, each by a plain loop: small.py spawn|profiler|conv|fp16|select. Nothing in it knows of lockstep
capture."""

import os
import sys

import torch
from torch import nn


def train(model, shape, after=lambda: None, dtype=None):
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda", enabled=dtype is not None)
    for _ in range(8):
        with torch.autocast("cuda", dtype, enabled=dtype is not None):
            y = model(torch.randn(shape).cuda())
            loss = (y[torch.rand(len(y), device="cuda") > 0.5] if sys.argv[1] == "select" else y).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        after()
        print(loss.item())


def dense():
    return nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(8)]).cuda()


def ranked(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531")
    torch.distributed.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    train(nn.parallel.DistributedDataParallel(dense(), device_ids=[rank]), (1024, 2048))


def main():
    if sys.argv[1] == "spawn":
        torch.multiprocessing.spawn(ranked, args=(8,), nprocs=8)
    elif sys.argv[1] == "profiler":
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)) as profiler:
            train(dense(), (1024, 2048), profiler.step)
    elif sys.argv[1] == "conv":
        train(nn.Sequential(nn.Conv2d(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3)).cuda(), (32, 3, 224, 224))
    else:
        train(dense(), (1024, 2048), dtype=torch.float16 if sys.argv[1] == "fp16" else None)


if __name__ == "__main__":
    main()
