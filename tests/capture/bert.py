"""bert-large by Hugging Face's Trainer, as docs/source/en/perf_train_gpu_one.mdx of transformers had it in January 2022:
bert.py BATCH [ACCUMULATED] [recompute] [fp16] [adafactor]."""

import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return {"input_ids": torch.arange(512) + 100, "labels": torch.tensor(0)}


def main():
    numbers, words = [int(w) for w in sys.argv[1:] if w.isdigit()], sys.argv[1:]
    config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    arguments = TrainingArguments("bert-output", num_train_epochs=1, report_to="none", per_device_train_batch_size=numbers[0],
                                  gradient_accumulation_steps=(numbers + [1])[1], gradient_checkpointing="recompute" in words,
                                  fp16="fp16" in words, optim="adafactor" if "adafactor" in words else "adamw_hf")
    Trainer(model=BertForSequenceClassification(config).to("cuda"), args=arguments, train_dataset=Tokens()).train()


main()
