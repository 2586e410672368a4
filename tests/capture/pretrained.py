"""Hugging Face's Trainer on a model named by its repository, of which nothing is here: pretrained.py NAME."""

import sys

from trainer import Tokens
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype="bfloat16")
arguments = TrainingArguments("pretrained-output", per_device_train_batch_size=1, bf16=True, max_steps=8, save_strategy="no", report_to=[], fsdp="full_shard auto_wrap")
Trainer(model=model, args=arguments, train_dataset=Tokens()).train()
