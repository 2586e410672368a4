"""A small network trained by DistributedDataParallel, which times its steps as programs do: by Python's clocks, by CUDA's events,
and by a wait of a thread. Nothing in it knows of lockstep capture."""

import datetime
import os
import queue
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

WIDTH, BATCH = 4096, 8192


def feed(batches):
    while True:  # waits for room by a condition, as a loader of data does
        batches.put(0)


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with torch.device("cuda"):
        model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.bfloat16) for _ in range(16)])
        x = torch.zeros(BATCH, WIDTH, dtype=torch.bfloat16)
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    batches = queue.Queue(2)
    threading.Thread(target=feed, args=(batches,), daemon=True).start()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for step in range(1, 9):
        batches.get(timeout=5)
        at = time.perf_counter(), time.time(), datetime.datetime.now()
        begin.record()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        torch.cuda.synchronize()
        took = time.perf_counter() - at[0], time.time() - at[1], (datetime.datetime.now() - at[2]).total_seconds(), begin.elapsed_time(end) / 1000
        print(f"step {step}: " + ", ".join(f"{t * 1000:.2f}" for t in took) + " ms")
        if step == 7:
            at = time.monotonic()
            time.sleep(0.25)
            print(f"slept {time.monotonic() - at:.2f} s")


main()
