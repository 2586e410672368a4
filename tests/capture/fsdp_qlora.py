"""One rank of AnswerDotAI/fsdp_qlora's train.py, in the same folder, without its spawn of the others: fsdp_qlora.py
KEY=VALUE... of its options. Llama-2 7B by its configuration, on the host, instead of its weights; a tokenizer of bytes: its
dummy text is long enough."""

import inspect
import os
import sys

from tokenizers import ByteLevelBPETokenizer
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast
from transformers.modeling_utils import no_init_weights

FOLDER = "llama-2-7b"


def without_weights(name, use_cache, torch_dtype, _attn_implementation):
    with no_init_weights():
        return AutoModelForCausalLM.from_config(LlamaConfig(use_cache=use_cache), torch_dtype=torch_dtype, attn_implementation=_attn_implementation)


def main():
    LlamaConfig(torch_dtype="bfloat16").save_pretrained(FOLDER)
    words = ByteLevelBPETokenizer()
    words.train_from_iterator(["instruction input output"], vocab_size=300, special_tokens=["</s>"])
    PreTrainedTokenizerFast(tokenizer_object=words._tokenizer, eos_token="</s>").save_pretrained(FOLDER)
    import train
    train.AutoModelForCausalLM.from_pretrained = without_weights
    options = {k: v.default for k, v in inspect.signature(train.fsdp_qlora).parameters.items()}
    for word in sys.argv[1:]:
        key, value = word.split("=")
        options[key] = type(options[key])(eval(value) if not isinstance(options[key], str) else value)
    if options["lora_target_modules"] == "all":
        options["lora_target_modules"] = ["k_proj", "q_proj", "v_proj", "up_proj", "down_proj", "gate_proj"]
    options.update(model_name=FOLDER, dataset="dummy", log_to="stdout", use_cpu_offload=False, reentrant_checkpointing=True)
    train.fsdp_main(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), options)


main()
