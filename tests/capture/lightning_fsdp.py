"""Twelve MLPs by PyTorch Lightning's FSDP over 16 GPUs."""

import lightning
import torch
from lightning.pytorch.strategies import FSDPStrategy
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(2048, 8192), nn.Linear(8192, 2048)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Model(lightning.LightningModule):
    def configure_model(self):
        if not hasattr(self, "blocks"):
            self.blocks = nn.Sequential(*[Block() for _ in range(12)])

    def training_step(self, batch, i):
        return self.blocks(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Ones(torch.utils.data.Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, i):
        return torch.ones(1024, 2048)


trainer = lightning.Trainer(accelerator="cuda", devices=8, num_nodes=2, max_steps=10, strategy=FSDPStrategy(auto_wrap_policy={Block}),
                            precision="bf16-mixed", logger=False, enable_checkpointing=False)
trainer.fit(Model(), torch.utils.data.DataLoader(Ones(), batch_size=4))
