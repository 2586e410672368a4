"""Writes what torchtitan's examples want and is not theirs to ship: titan_data.py FOLDER. A text of frequent words for c4_test,
and tokenizers with as many tokens as Llama 3.1's, of bytes and pairs of bytes."""

import base64
import json
import random
import sys
from pathlib import Path

WORDS = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were".split()


def main():
    folder, chance = Path(sys.argv[1]), random.Random(1)
    (folder / "tests/assets/c4_test").mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"text": " ".join(chance.choices(WORDS, k=400))}) for _ in range(2000))
    (folder / "tests/assets/c4_test/data.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokens = [bytes([i]) for i in range(256)] + [bytes([i, j]) for i in range(256) for j in range(256)]
    tokens += [bytes([k >> 16, k >> 8 & 255, k & 255]) for k in range(128000 - len(tokens))]
    (folder / "tokenizer.model").write_text("".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)), encoding="utf-8")
    names = [chr(256 + i) for i in range(256)]
    vocabulary = {n: i for i, n in enumerate(names)} | {f"<{i}>": i for i in range(256, 128000)}
    special = [{"id": 128000 + i, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for i, c in enumerate(["<|begin_of_text|>", "<|end_of_text|>"])]
    hugging = folder / "assets/hf/Llama-3.1-8B"
    hugging.mkdir(parents=True, exist_ok=True)
    (hugging / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<300>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}}), encoding="utf-8")
    (hugging / "tokenizer_config.json").write_text(json.dumps({
        "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", "tokenizer_class": "PreTrainedTokenizerFast"}), encoding="utf-8")


main()
