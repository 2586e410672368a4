"""A Llama of 1.2 billion parameters by Hugging Face's Trainer: trainer.py ddp|fsdp|zero1|zero2|zero3|zero2-offload|zero3-offload."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        tokens = torch.arange(2048) % 1000
        return {"input_ids": tokens, "labels": tokens}


def main():
    way, more = sys.argv[-1], {}  # deepspeed puts --local_rank first
    if way == "fsdp":
        more = {"fsdp": "full_shard auto_wrap", "fsdp_config": {"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}}
    elif way.startswith("zero"):
        zero = {"stage": int(way[4])}
        if way.endswith("-offload"):
            zero["offload_optimizer"] = {"device": "cpu"}
        more = {"deepspeed": {"zero_optimization": zero, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": "auto",
                              "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "train_batch_size": "auto"}}
    model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                                         num_key_value_heads=8, vocab_size=32000, max_position_embeddings=2048))
    arguments = TrainingArguments("trainer-output", per_device_train_batch_size=2, bf16=True, max_steps=20, save_strategy="no",
                                  report_to=[], logging_steps=1, **more)
    Trainer(model=model, args=arguments, train_dataset=Tokens()).train()


if __name__ == "__main__":
    main()
