"""A Transformer of eight blocks whose MLPs are DeepSpeed's experts, 16 of them over 8 ranks, with a capacity: deepspeed_moe.py."""

import deepspeed
import torch
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer

WIDTH, WORDS, BATCH, LENGTH = 2048, 32000, 4, 2048


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 16, batch_first=True)
        expert = torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH))
        self.experts = MoE(WIDTH, expert, num_experts=16, ep_size=8, k=1, capacity_factor=1.25)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y, loss, counts = self.experts(x)
        assert counts.sum().item() == BATCH * LENGTH
        return x + y, loss


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Linear(WIDTH, WORDS)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(8))

    def forward(self, tokens):
        x, balance = self.embedding(tokens), 0
        for block in self.blocks:
            x, loss = block(x)
            balance = balance + loss
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1).float(), tokens.flatten()) + 0.01 * balance


model = Model()
groups = split_params_into_different_moe_groups_for_optimizer({"params": list(model.parameters()), "name": "parameters"})
engine, *_ = deepspeed.initialize(model=model, model_parameters=groups, config={
    "train_micro_batch_size_per_gpu": BATCH, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "gradient_clipping": 1.0})
for _ in range(5):
    engine.backward(engine(torch.randint(0, WORDS, (BATCH, LENGTH), device=engine.device)))
    engine.step()
