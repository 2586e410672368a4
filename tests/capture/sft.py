"""LoRA on a Qwen3 of 4 billion parameters by TRL's SFTTrainer, with packing: sft.py. Its tokenizer is made here, of a hundred words."""

from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 1, **{f"w{i}": i + 2 for i in range(100)}}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="</s>", pad_token="</s>")
texts = [" ".join(f"w{i % 100}" for i in range(300 + 7 * (k % 100))) for k in range(512)]
arguments = SFTConfig("sft-output", per_device_train_batch_size=2, max_length=4096, packing=True, max_steps=10, bf16=True, report_to=[],
                      logging_steps=1, save_strategy="no", gradient_checkpointing=True, model_init_kwargs={"dtype": "bfloat16"})
SFTTrainer(model="Qwen/Qwen3-4B", args=arguments, train_dataset=Dataset.from_dict({"text": texts}), processing_class=tokenizer,
           peft_config=LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")).train()
