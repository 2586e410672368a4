"""Experts over the ranks of a node: experts.py [even|most]. What a rank gets from each is what that one sent, to the token, and all
tokens arrive; with --expert-load even each expert has as many, 5 % apart at most, with zipf:1 the first one most."""

import os
import sys

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
rank, world = dist.get_rank(), dist.get_world_size()
tokens, width, experts, chosen = 4096, 512, 64, 8
load = sys.argv[1] if len(sys.argv) > 1 else ""
router = torch.nn.Linear(width, experts, device="cuda")
own = torch.nn.ModuleList(torch.nn.Linear(width, width, device="cuda") for _ in range(experts // world))
optimizer = torch.optim.AdamW([*router.parameters(), *own.parameters()])

for step in range(4):
    x = torch.randn(tokens, width, device="cuda")
    weights, choice = router(x).softmax(-1).topk(chosen)
    counts = torch.bincount(choice.flatten(), minlength=experts)
    assert counts.sum().item() == tokens * chosen
    sent = counts.view(world, -1)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    everything = counts.clone()
    dist.all_reduce(everything)
    mine = everything.view(world, -1)[rank]
    assert received.sum(0).tolist() == mine.tolist() and everything.sum().item() == world * tokens * chosen
    mean = world * tokens * chosen / experts
    if load == "even":
        assert max(abs(n - mean) for n in everything.tolist()) <= 0.05 * mean, everything
    elif load == "most":
        assert everything.argmax().item() == 0 and everything[0].item() > 2 * mean
    else:
        assert max(abs(n - mean) for n in everything.tolist()) > 0 and min(everything.tolist()) > 0.8 * mean
    order = choice.flatten().argsort(stable=True)
    assert choice.flatten()[order].diff().min().item() >= 0
    rows = (x[order // chosen] * weights.flatten()[order, None])
    inputs = torch.empty(int(received.sum()), width, device="cuda")
    dist.all_to_all_single(inputs, rows, received.sum(1).tolist(), sent.sum(1).tolist())
    per_expert = received.t().flatten().tolist()
    parts, starts = [], torch.tensor([0] + received.flatten().tolist()).cumsum(0).tolist()
    for i, expert in enumerate(own):
        of_it = torch.cat([inputs[starts[w * len(own) + i]:starts[w * len(own) + i + 1]] for w in range(world)])
        assert len(of_it) == sum(per_expert[i * world:(i + 1) * world]) == mine[i].item()
        parts.append(expert(of_it).sum())
    (sum(parts) + rows.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
