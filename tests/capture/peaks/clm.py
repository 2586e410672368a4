"""A causal model by Hugging Face's Trainer, all of it said by the arguments: clm.py --config_name FOLDER --block_size N and those of
TrainingArguments. What it learns from are numbers."""

from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Job:
    config_name: str
    block_size: int


class Tokens(torch.utils.data.Dataset):
    def __init__(self, length):
        self.tokens = torch.arange(length) % 1000

    def __len__(self):
        return 8192

    def __getitem__(self, i):
        return {"input_ids": self.tokens, "labels": self.tokens}


def main():
    job, arguments = HfArgumentParser((Job, TrainingArguments)).parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(job.config_name))
    Trainer(model=model, args=arguments, train_dataset=Tokens(job.block_size)).train()


if __name__ == "__main__":
    main()
