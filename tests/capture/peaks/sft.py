"""A model tuned by TRL's SFTTrainer, all of it said by the arguments of SFTConfig and ModelConfig: sft.py --model_name_or_path NAME
--max_length N. Its tokenizer is made here, of a hundred words, and so are its texts, each as long as may be."""

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config


def main():
    arguments, model = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
    words = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 1, **{f"w{i}": i + 2 for i in range(100)}}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="</s>", pad_token="</s>")
    text = " ".join(f"w{i % 100}" for i in range(arguments.max_length + 8))
    arguments.model_init_kwargs = {"dtype": model.dtype}
    SFTTrainer(model=model.model_name_or_path, args=arguments, train_dataset=Dataset.from_dict({"text": [text] * 512}),
               processing_class=tokenizer, peft_config=get_peft_config(model)).train()


if __name__ == "__main__":
    main()
