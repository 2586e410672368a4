/* Pins what a program in Python gets of its command, as argparse of CPython 3.11 and HfArgumentParser have it, and
 * what a script that starts one means where the program lies beside it. */
#include "import_check.h"
#include "python_check.h"

#define ARGPARSE(declared, command, result)                                                                  \
  "import argparse\ndef f():\n  p = argparse.ArgumentParser('x')\n" declared                                 \
  "  args = p.parse_args(" command ")\n  return " result "\n"

static void
options_are_read (void)
{
#define OPTIONS                                                                                              \
  "  p.add_argument('--micro-batch-size', '-m', type=int, default=4)\n"                                      \
  "  p.add_argument('--lr', type=float, default='1e-3')\n  p.add_argument('--bf16', action='store_true')\n"  \
  "  p.add_argument('--no-save', action='store_false', dest='save')\n  p.add_argument('--name')\n"
  check_python (ARGPARSE (OPTIONS, "[]", "vars(args)"),
                "{\"micro_batch_size\":4,\"lr\":0.001,\"bf16\":false,\"save\":true,\"name\":null}");
  check_python (ARGPARSE (OPTIONS,
                          "['--mic=8', '--bf16', '--no-save', '--lr', '-2', '-m', '2', '--name', 'a']",
                          "vars(args)"),
                "{\"micro_batch_size\":2,\"lr\":-2,\"bf16\":true,\"save\":false,\"name\":\"a\"}");
  check_python (ARGPARSE (OPTIONS, "", "args.micro_batch_size, args.nothing"), "[4,\"<args.nothing>\"]+1");
  check_python (
      ARGPARSE ("  g = p.add_argument_group('g')\n  g.add_argument('--a', nargs='+', type=int)\n"
                "  g.add_argument('--b', action=argparse.BooleanOptionalAction, default=True)\n"
                "  g.add_argument('--c', nargs='?', const=5, type=int)\n  p.set_defaults(a=1, d=2)\n",
                "['--a', '1', '2', '--no-b', '--c']", "vars(args)"),
      "{\"a\":[1,2],\"b\":false,\"c\":5,\"d\":2}");
  check_python (
      ARGPARSE (
          "  p.add_argument('file')\n  p.add_argument('--n', type=int, action='append')\n  p.add_argument('--k', type=lambda s: 1)\n",
          "['x', '--n', '1', '--n', '2', '--k', 'y']", "args.file, args.n, args.k"),
      "[\"x\",[1,2],\"<y>\"]");
  check_python (
      "def add(p):\n  p.add_argument('--a', type=int, default=1)\n  return p\n"
      "def f():\n  p = add(ArgumentParser())\n  p = other.add_more(p)\n  if u:\n    p.add_argument('--b')\n"
      "  args, rest = p.parse_known_args(['--z', '--a', '3'])\n  args.a += 1\n  return args.a, rest, args.b\n",
      "[4,\"<the rest of the command>\",\"<args.b>\"]+1");
  check_python ("def f():\n  p = other()\n  p.add_argument('--a')\n  return p.parse_args().a\n",
                "\"<p.parse_args().a>\"+1");
}

static void
dataclasses_are_options (void)
{
  check_python (
      "@dataclass\nclass A:\n  n: int = 1\n  s: str = field(default='x', metadata={'help': 'h'})\n"
      "@dataclass\nclass B(other.C):\n  on: bool = False\n  o: Optional[int] = None\n"
      "def f():\n  p = HfArgumentParser((A, B))\n"
      "  a, b = p.parse_args_into_dataclasses(['--n', '3', '--on', '--o', '4', '--t', '5'])\n  return a, b\n",
      "[{\"()\":\"A\",\"n\":3,\"s\":\"x\"},{\"()\":\"B\",\"o\":\"<4>\",\"on\":true}]");
}

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
      "micro_batch=2; seq=512; ~declares them: --model_max_length 512, --per_device_train_batch_size 2");
  check (
      TRAIN (
          "p = argparse.ArgumentParser()\np.add_argument('--bf16', action='store_true')\n"
          "p.add_argument('--per_device_train_batch_size', type=int, default=3)\n"
          "args = p.parse_args()\nif args.bf16:\n  os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"
          "if os.environ.get('NCCL_PROTO') == 'LL':\n  os.environ['NCCL_ALGO'] = 'Ring'\n"
          "del os.environ['NCCL_PROTO']\nos.environ.setdefault('NCCL_MAX_CTAS', str(2 * args.per_device_train_batch_size))\n"),
      "micro_batch=3; launch_blocking=true; ?NCCL_ALGO Ring; ?NCCL_MAX_CTAS 6");
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
#define ENGINE(config)                                                                                             \
  TRAIN (                                                                                                          \
      "def conf(a, stage=2):\n  return {'train_micro_batch_size_per_gpu': a.batch, 'gradient_clipping': clip(),\n" \
      "    'zero_optimization': {'stage': stage}, 'bf16': {'enabled': True}}\n"                                    \
      "def main():\n  p = argparse.ArgumentParser()\n  p.add_argument('--batch', type=int, default=4)\n"           \
      "  a, _ = p.parse_known_args()\n  c = conf(a, 3)\n  c['gradient_accumulation_steps'] = 2\n"                  \
      "  engine, *_ = deepspeed.initialize(model=m(), config=" config ")\nmain()\n")
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

LS_TEST_SUITE (LS_TEST (options_are_read), LS_TEST (dataclasses_are_options),
               LS_TEST (programs_beside_a_script_are_read),
               LS_TEST (options_of_functions_and_classes_are_read),
               LS_TEST (a_dictionary_for_deepspeed_is_read), LS_TEST (a_batch_that_is_said_twice_is_told))
