"""What `litgpt finetune` of a model reads, where nothing can be downloaded: litgpt_data.py FOLDER NAME. Weights of zeros, a
tokenizer of bytes, and a text of our own, whose rows are longer than 512 tokens as the longest of Alpaca2k are."""

import json
import pathlib
import sys
from dataclasses import asdict

import torch
import yaml
from litgpt import GPT, Config
from tokenizers import ByteLevelBPETokenizer


def main():
    folder, config = pathlib.Path(sys.argv[1]), Config.from_name(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with torch.device("meta"):
        model = GPT(config)
    torch.save({k: torch.zeros(v.shape, dtype=torch.bfloat16) for k, v in model.state_dict().items()}, folder / "lit_model.pth")
    (folder / "model_config.yaml").write_text(yaml.dump(asdict(config)))
    words = ByteLevelBPETokenizer()
    words.train_from_iterator(["some text"], vocab_size=300, special_tokens=["<s>", "</s>"])
    words.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}))
    rows = [{"instruction": "some text", "input": "", "output": "some text " * 100} for _ in range(400)]
    (folder / "text.json").write_text(json.dumps(rows))


main()
