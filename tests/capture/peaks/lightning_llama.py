"""A Llama of Hugging Face by PyTorch Lightning: lightning_llama.py FOLDER fsdp|fsdp-recompute|ddp BATCH LENGTH."""

import sys

import lightning
import torch
from lightning.pytorch.strategies import FSDPStrategy
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

folder, way, batch, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


class Model(lightning.LightningModule):
    def configure_model(self):
        if not hasattr(self, "model"):
            self.model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
            self.model.train()

    def training_step(self, batch, i):
        return self.model(input_ids=batch, labels=batch, use_cache=False).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, i):
        return torch.arange(length) % 1000


def main():
    strategy = "ddp"
    if way != "ddp":
        more = {"activation_checkpointing_policy": {LlamaDecoderLayer}} if way == "fsdp-recompute" else {}
        strategy = FSDPStrategy(auto_wrap_policy={LlamaDecoderLayer}, **more)
    lightning.Trainer(accelerator="cuda", devices=8, num_nodes=1, max_steps=10, strategy=strategy, precision="bf16-mixed", logger=False,
                      enable_checkpointing=False).fit(Model(), torch.utils.data.DataLoader(Tokens(), batch_size=batch))


main()
