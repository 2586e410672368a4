/* Pins what scripts of nanochat mean: a model and a batch that follow from its depth. */
#include "ls_test.h"

#include "import_check.h"

#define TORCHRUN "torchrun --standalone --nproc_per_node=8 -m scripts.base_train -- "

static void
all_follows_from_the_depth (void)
{
  check_read ("nanochat", TORCHRUN "--depth=24 --device-batch-size=16 --run=a",
              "layers=24; hidden=1536; heads=12; kv_heads=12; head_dim=128; ffn=6144; vocab=32768; seq=2048; "
              "layer_window=513x3,0,513x3,0,513x3,0,513x3,0,513x3,0,513x3,0; mlp=relu2; qk_norm=true; "
              "logit_cap=true; gpus=8; micro_batch=16; global_batch=512; zero=1; dp_kind=megatron; "
              "optimizer=muon-nanochat; dtype=bf16; grad_dtype=fp32; software=nanochat-2026; "
              "~--total-batch-size 1048576 tokens; ?12 tables with 604 million parameters; -run");
  check_read ("nanochat", TORCHRUN "--depth=12", "hidden=768; heads=6; micro_batch=32; global_batch=256");
  check_read ("nanochat", TORCHRUN "--depth=13 --aspect-ratio 50", "hidden=768; heads=6; layers=13");
  check_read ("nanochat", TORCHRUN, "layers=20; hidden=1280; ~layers 20: the default of nanochat");
}

/* The last layer sees the whole sequence, whatever the pattern; other lengths have other windows. */
static void
windows_are_read (void)
{
  check_read ("nanochat", TORCHRUN "--depth=4 --window-pattern=SL", "layer_window=513,0,513,0");
  check_read ("nanochat", TORCHRUN "--depth=3 --window-pattern=s --max-seq-len=1000",
              "layer_window=257x2,0; seq=1000; !are no multiple of");
  check_read ("nanochat", TORCHRUN "--depth=4 --window-pattern L", "layer_window; layers=4");
  check_read ("nanochat", TORCHRUN "--depth=4 --window-pattern=SX", "layer_window; !--window-pattern SX");
}

static void
batches_and_formats_are_read (void)
{
  check_read ("nanochat", TORCHRUN "--depth=4 --total-batch-size=1048576", "global_batch=512");
  check_read ("nanochat", TORCHRUN "--depth=4 --total-batch-size=500000", "!nanochat refuses it");
  check_read ("nanochat", "python -m scripts.base_train --depth=4 --max-seq-len=512 --total-batch-size=16384",
              "gpus=1; dp_kind=none; zero; global_batch=32");
  check_read ("nanochat", TORCHRUN "--depth=4 --fp8",
              "dtype=fp8; fp8_recipe=current; fp8_linear=torchao; ?the head, which is in fp8 too");
  check_read ("nanochat", TORCHRUN "--depth=4 --fp8 --fp8-recipe=rowwise", "!knows tensorwise alone");
  check_read ("nanochat", "export NANOCHAT_DTYPE=float32\n" TORCHRUN "--depth=4", "dtype=fp32");
  check_read (NULL, TORCHRUN "--device-type=cpu", "--device-type cpu");
}

LS_TEST_SUITE (LS_TEST (all_follows_from_the_depth), LS_TEST (windows_are_read),
               LS_TEST (batches_and_formats_are_read))
