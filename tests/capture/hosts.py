"""Three ranks, all captured, over groups on the host and on the GPU: each has what each sent. A router's choices are counted."""

import os

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
rank, world = dist.get_rank(), dist.get_world_size()
for device, group in ("cpu", dist.new_group(backend="gloo")), ("cuda", dist.new_group(backend="nccl")):
    total = torch.tensor([rank + 1.0], device=device)
    dist.all_reduce(total, group=group)
    largest = torch.tensor([rank], device=device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    assert (total.item(), largest.item()) == (6, 2)
    objects, text = [None] * world, [f"from {rank}" * 400_000]  # as long as a tokenizer
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * 2_000_000 * rank}, group=group)
    dist.broadcast_object_list(text, src=1, group=group)
    assert [len(o["text"]) for o in objects] == [0, 2_000_000, 4_000_000] and text == ["from 1" * 400_000]
    parts = [torch.zeros(1, device=device) for _ in range(world)]
    dist.all_gather(parts, torch.tensor([float(rank)], device=device), group=group)
    assert [p.item() for p in parts] == [0, 1, 2]
    if rank < 2:  # each posts its receive before it sends
        received = torch.zeros(1, device=device)
        work = dist.irecv(received, 1 - rank, group=group)
        dist.isend(torch.tensor([5.0 + rank], device=device), 1 - rank, group=group)
        work.wait()
        assert received.item() == 6 - rank

tokens, experts, chosen = 4096, 16, 2
if hasattr(torch.library, "get_kernel"):
    choice = torch.topk(torch.randn(tokens, experts, device="cuda").softmax(-1), chosen)[1]
    counts = torch.bincount(choice.flatten(), minlength=experts)
    assert counts.sum().item() == tokens * chosen and counts.min().item() > 0.8 * tokens * chosen / experts
    kept = torch.arange(10, device="cuda")
    assert kept[kept % 3 == 0].tolist() == [0, 3, 6, 9]
    kept[2:4].zero_()
    assert kept.tolist() == [0, 1, 0, 0, 4, 5, 6, 7, 8, 9] and not kept.zero_().any().item()

weight = torch.nn.Parameter(torch.zeros(1024, 1024, device="cuda"))
optimizer = torch.optim.SGD([weight])
for _ in range(4):
    (weight @ weight).sum().backward()
    optimizer.step()
