/* Pins what a program in Python gets of its command, and what a script that starts one means where
 * the program lies beside it. */
#include "import_check.h"

/* The program lies beside the script, which writes it here. */
#define TRAIN(program)                                                                                       \
  "cat > train.py <<'EOF'\nimport os\n" program "EOF\n"                                                      \
  "export NCCL_PROTO=LL\n"                                                                                   \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir out --bf16\n"

static void
programs_beside_a_script_are_read (void)
{
  check (
      TRAIN (
          "@dataclass\nclass T(transformers.TrainingArguments):\n  per_device_train_batch_size: int = 2\n"
          "  model_max_length: int = 512\n  note: str = 'x'\n"
          "def train():\n  parser = HfArgumentParser((M, T))\n  m, t = parser.parse_args_into_dataclasses()\n"
          "  while True:\n    step()\n"
          "if __name__ == '__main__':\n  train()\n"),
      "micro_batch=2; seq=512; ~declares them: --per_device_train_batch_size 2, --model_max_length 512");
  check (TRAIN ("p = argparse.ArgumentParser()\np.add_argument('--bf16', action='store_true')\n"
                "p.add_argument('--per_device_train_batch_size', type=int, default=3)\n"
                "args = p.parse_args()\nif args.bf16:\n  os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"
                "if os.environ.get('NCCL_PROTO') == 'LL':\n  os.environ['NCCL_ALGO'] = 'Ring'\n"
                "os.environ.setdefault('NCCL_MAX_CTAS', str(2 * 3))\n"),
         "micro_batch=3; ?CUDA_LAUNCH_BLOCKING: its value is; ?NCCL_ALGO: its value is; ?NCCL_MAX_CTAS 6");
  check (TRAIN ("x = (\n"), "micro_batch=8");
  check (TRAIN ("def train(:\n  x = = 1\ntrain()\n"), "micro_batch=8");
}

/* Packages make options of a function's parameters, of decorators and of a class. What is not known of one that
 * matters is told, and so are packages that are not followed. */
static void
options_of_functions_and_classes_are_read (void)
{
  check (
      TRAIN (
          "def train(base: str = 'a', *, max_seq_length: int = 256, per_device_train_batch_size=3):\n  pass\n"
          "if __name__ == '__main__':\n  fire.Fire(train)\n"),
      "micro_batch=3; seq=256");
  check (
      TRAIN ("def train(base: str = 'a', max_seq_length: int = 256, per_device_train_batch_size=3):\n  pass\n"
             "if __name__ == '__main__':\n  fire.Fire(train)\n"),
      "micro_batch=3; seq=256; ~as train.py declares them: --max_seq_length 256");
  check (
      TRAIN (
          "@click.command()\n@click.option('-s', '--max-seq-length', default=512)\n"
          "@click.option('--per_device_train_batch_size', default=size())\ndef main(**a):\n  pass\nmain()\n"),
      "seq=512; ?--per_device_train_batch_size: what train.py declares it to be is not followed");
  check (TRAIN ("@dataclass\nclass C:\n  max_seq_length: int = 128\nmain(tyro.cli(C))\n"), "seq=128");
  check (TRAIN ("import hydra\n@hydra.main(config_path='c')\ndef main(c):\n  pass\nmain()\n"),
         "?what train.py takes where the command says nothing: it reads options by hydra");
  check (
      TRAIN ("def get():\n  p = argparse.ArgumentParser()\n  p.add_argument('--max_seq_length', default=64)\n"
             "  return p.parse_args()\nother.run(get())\n"),
      "seq=64");
}

/* What a program hands to deepspeed.initialize is DeepSpeed's configuration; what of it is not known is open, and
 * so is all where it is made in ways that are not followed. */
static void
a_dictionary_for_deepspeed_is_read (void)
{
#define ENGINE(config)                                                                                       \
  TRAIN ("def conf(stage=2):\n  return {'train_micro_batch_size_per_gpu': 4, 'gradient_clipping': clip(),\n" \
         "    'zero_optimization': {'stage': stage}, 'bf16': {'enabled': True}}\n"                           \
         "c = conf(3)\nc['gradient_accumulation_steps'] = 2\n"                                               \
         "def main():\n  engine, *_ = deepspeed.initialize(model=m(), config=" config ")\nmain()\n")
  check (ENGINE ("c"),
         "dp_kind=deepspeed; zero=3; micro_batch=4; global_batch=64; dtype=bf16; grad_norm; "
         "?gradient_clipping: its value is $clip; ~what train.py hands to deepspeed.initialize");
  check (ENGINE ("load(c)"),
         "dp_kind=deepspeed; zero; ?zero_optimization.stage: its value is the script of Python");
  check (
      TRAIN (
          "def main():\n  deepspeed.initialize(model=m(), config_params={'zero_optimization': {'stage': 1}})\n"),
      "dp_kind=deepspeed; zero=1");
  check (TRAIN ("def f():\n  deepspeed.other(config={'zero_optimization': {'stage': 1}})\n"), "dp_kind=ddp");
#undef ENGINE
}

/* A Trainer stops at it; DeepSpeed takes its own. */
static void
a_batch_that_is_said_twice_is_told (void)
{
#define COMMAND(batch)                                                                                       \
  "cat > ds.json <<E\n{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": {\"stage\": 2}}\nE\n"   \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir out --bf16 "     \
  "--deepspeed ds.json --per_device_train_batch_size " batch "\n"
  check (COMMAND ("2"),
         "micro_batch=4; ?train_micro_batch_size_per_gpu 4: it is taken, and "
         "per_device_train_batch_size says 2");
  LsImport import;
  if (!read_text (COMMAND ("4"), &import))
    return;
  LS_CHECK (!has_line (import.unknown, "it is taken"));
  ls_import_clear (&import);
#undef COMMAND
}

LS_TEST_SUITE (LS_TEST (programs_beside_a_script_are_read),
               LS_TEST (options_of_functions_and_classes_are_read),
               LS_TEST (a_dictionary_for_deepspeed_is_read), LS_TEST (a_batch_that_is_said_twice_is_told))
