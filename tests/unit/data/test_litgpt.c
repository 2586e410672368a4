/* Pins what configurations and commands of LitGPT mean. */
#include "ls_test.h"

#include "import_check.h"

#define TUNED(model, train)                                                                                  \
  "checkpoint_dir: checkpoints/" model "\nout_dir: out\nprecision: bf16-true\n"                              \
  "data:\n  class_path: litgpt.data.Alpaca2k\n  init_args: {ignore_index: -100}\n"                           \
  "train: {" train ", epochs: 1, save_interval: 10, lr_warmup_steps: 2, max_tokens: , max_norm: }\n"         \
  "eval: {interval: 5}\nlogger_name: csv\nseed: 1\n"                                                         \
  "optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1e-4, betas: [0.9, 0.95]}}\n"
#define FULL                                                                                                 \
  TUNED ("meta-llama/Meta-Llama-3-8B", "global_batch_size: 70, micro_batch_size: 4, max_seq_length: 512")

/* Whole micro-batches of the global batch; blocks are checkpointed on several GPUs, and all is in 16 bits. */
static void
full_is_read (void)
{
  check_read (
      "LitGPT", FULL "devices: 4\nnum_nodes: 1\n",
      "layers=32; vocab=128256; seq=512; tied_embeddings=false; gpus=4; dp_kind=fsdp1; micro_batch=4; "
      "global_batch=64; recompute=full; dtype=bf16; grad_dtype=bf16; narrow_shards=true; grad_norm=false; "
      "optimizer=adam; software=litgpt-2026; ~global_batch 64: of train; ~seq 512: the most; "
      "-optimizer.init_args.lr; -data.init_args.ignore_index");
  check_read ("LitGPT", FULL "devices: 1\n",
              "gpus=1; dp_kind; recompute=none; master=none; narrow_shards; global_batch=68");
  check_read ("LitGPT",
              "precision: bf16-mixed\ndevices: 2\n" TUNED ("microsoft/phi-2", "micro_batch_size: 2"),
              "gpus=2; global_batch=16; norms=shared; seq; ?how long a sequence");
}

static void
mixed_precision_is_read (void)
{
  check_read ("LitGPT",
              "checkpoint_dir: x/Gemma-2-9b\ntrain: {micro_batch_size: 1, max_seq_length: 64}\n"
              "precision: bf16-mixed\n",
              "software=litgpt-2026-autocast; master=weights; attention=unfused; window=4096; "
              "?by a loop of the host; ~scores are capped; ~global_batch 16");
  check_read ("LitGPT",
              "checkpoint_dir: x/Llama-3.2-1B\ntrain: {micro_batch_size: 1, max_seq_length: 64}\ndevices: 8\n"
              "optimizer: AdamW8bit\n",
              "narrow_shards=false; grad_dtype=fp32; optimizer=adamw-8bit; ?weights are gathered in fp32; "
              "~precision bf16-mixed: the default");
  check_read ("LitGPT",
              "checkpoint_dir: x/Llama-3.2-1B\ntrain: {micro_batch_size: 1, max_seq_length: 64}\n"
              "precision: 32-true\n",
              "dtype=fp32; ?in TF32; software=litgpt-2026");
  check_read ("LitGPT",
              "checkpoint_dir: x/Llama-3.2-1B\ntrain: {micro_batch_size: 1}\nprecision: transformer-engine\n",
              "?precision transformer-engine");
}

static void
adapters_are_read (void)
{
  const char *rest = "quantize: bnb.nf4\nlora_r: 32\nlora_dropout: 0.05\nlora_query: true\nlora_key: false\n"
                     "lora_value: true\nlora_projection: true\nlora_mlp: true\nlora_head: true\n";
  g_autofree char *one
      = g_strconcat (TUNED ("mistralai/Mistral-7B-v0.3",
                            "global_batch_size: 8, micro_batch_size: 2, max_seq_length: 512"),
                     rest, NULL),
      *two = g_strconcat (one, "devices: 2\n", NULL);
  check_read (
      "LitGPT", one,
      "vocab=32768; gpus=1; global_batch=8; lora_rank=32; lora_modules=q,v,o,gate,up,down; qlora=true; "
      "master=none; software=litgpt-2026-lora; ?lora_dropout; ?lora_head; ~its pages stay; ~taken for NF4");
  check_read ("LitGPT", two, "!quantize bnb.nf4 on several GPUs; dp_kind=fsdp2; recompute=full");
  check_read (
      "LitGPT",
      "checkpoint_dir: x/Llama-3.2-1B\nlora_r: 4\nlora_value: false\nquantize: bnb.int8-training\n"
      "optimizer: SGD\ntrain: {micro_batch_size: 1}\n",
      "lora_rank=4; lora_modules=q; qlora; !with mixed precision; !LitGPT takes AdamW; ?taken to be in 16; "
      "?lora_dropout 0.05, the default");
  check_read (
      "LitGPT",
      "checkpoint_dir: x/Llama-3.2-1B\nlora_query: false\nlora_value: false\ntrain: {micro_batch_size: 1}\n",
      "lora_rank; ?no layer has adapters");
}

#define TRAINED                                                                                              \
  "train: {global_batch_size: 512, micro_batch_size: 4, max_tokens: 1000, max_norm: 1.0}\n"                  \
  "precision: bf16-mixed\ndata: TinyLlama\ndevices: auto\nnum_nodes: 2\n"

/* Whole sequences of the model's length, unless it is said; shards are of a node. */
static void
pretraining_is_read (void)
{
  check_read ("LitGPT", "model_name: tiny-llama-1.1b\n" TRAINED,
              "layers=22; kv_heads=4; seq=2048; gpus; global_batch=512; recompute=none; grad_norm=true; "
              "software=litgpt-2026-compile; ?devices auto; zero");
  check_read ("LitGPT", "model_name: pythia-160m\n" TRAINED "devices: 8\n",
              "gpus=16; zero=3@8; linear_bias=true; rotary_dim=16; vocab=50304; ~one after the other");
  check_read ("LitGPT", "model_name: pythia-160m\ntrain: {global_batch_size: 64}\ndevices: 8\n",
              "gpus=8; zero; global_batch=64");
  check_read ("LitGPT",
              "model_name: pythia-160m\ntrain: {global_batch_size: 8, tie_embeddings: true, epochs: 2}\n",
              "tied_embeddings=true; micro_batch=4; grad_norm=true; !train.epochs; ~max_norm is 1");
}

/* Fields that a configuration leaves out are as Config has them. */
static void
dimensions_are_read (void)
{
  check_read (
      "LitGPT",
      "model_name: mine\nmodel_config: {n_layer: 8, n_embd: 512, n_head: 8, vocab_size: 50000, name: mine}\n"
      "train: {micro_batch_size: 4}\n",
      "layers=8; heads=8; kv_heads=8; ffn=2048; vocab=50176; mlp=gelu; norm=layernorm; linear_bias=true; "
      "rotary_dim=16; seq=4096; ?side by side; -model_config.name");
  check_read (
      "LitGPT",
      "model_name: mine\nmodel_config: {n_layer: 12, n_embd: 512, n_head: 4, n_query_groups: 2, "
      "head_size: 64, "
      "padded_vocab_size: 1000, block_size: 128, rotary_percentage: 1.0, parallel_residual: false, "
      "bias: false, attn_bias: true, norm_class_name: RMSNorm, mlp_class_name: LLaMAMoE, "
      "intermediate_size: 96, n_expert: 4, n_expert_per_token: 2, sliding_window_size: 32, "
      "sliding_window_indices: [1, 1, 0, 1, 1, 0], norm_qk: true, norm_qk_type: olmo2, norm_1: false, "
      "n_shared_expert: 1, final_logit_softcapping: 30.0}\n"
      "train: {micro_batch_size: 4, max_seq_length: 256}\n",
      "attention; head_dim=64; kv_heads=2; vocab=1000; qkv_bias=true; norm=rmsnorm; norms=post; qk_norm=true; "
      "qk_norm_over=all; experts=4; top_k=2; expert_ffn=96; window=32; full_every=3; logit_cap=true; "
      "rotary_dim; !above the model's block_size; ?n_shared_expert");
}

/* What LitGPT refuses, and what is not told in silence. */
static void
contradictions_are_told (void)
{
  check_read ("LitGPT", FULL "devices: 32\n", "!is less than a micro-batch");
  check_read ("LitGPT", "checkpoint_dir: x/Llama-3.2-1B\ntrain: {micro_batch_size: 1, max_norm: 1.0}\n",
              "!train.max_norm: litgpt finetune_full refuses it");
  check_read ("LitGPT", "model_name: pythia-160m\nlora_key: true\ntrain: {micro_batch_size: 1}\n",
              "!lora_key: litgpt pretrain has no adapters");
  check_read ("LitGPT", "checkpoint_dir: x/nobody-has-it\ntrain: {micro_batch_size: 1, a_new_key: 3}\n",
              "layers; ?x/nobody-has-it; ?train.a_new_key");
}

#define WRITTEN                                                                                              \
  "cat > c.yaml <<END\n" FULL "devices: 4\nEND\nlitgpt download meta-llama/Llama-3.2-1B --access_token x\n"

static void
commands_are_read (void)
{
  check_read ("LitGPT",
              WRITTEN
              "litgpt finetune_full --config c.yaml --train.micro_batch_size 2 meta-llama/Llama-3.2-1B "
              "--devices=8\n",
              "layers=16; gpus=8; micro_batch=2; global_batch=64; seq=512");
  check_read ("LitGPT", "srun -N 2 litgpt pretrain pythia-160m --devices 4 --num_nodes 2\n",
              "layers=12; gpus=8; zero=3@4; global_batch=512");
  check_read ("LitGPT", "python -m litgpt finetune checkpoints/x/Llama-3.2-1B/\n",
              "layers=16; lora_rank=8; lora_modules=q,v; gpus=1; seq; ?frozen weights are in fp32");
  check_read (NULL, "litgpt finetune_adapter_v2 x --devices 1\n", "prompts of LLaMA-Adapter");
  check_read (NULL, "litgpt finetune x --config no.yaml\n", "whose configuration no.yaml is not here");
  check_read (NULL, "echo litgpt pretrain\nlitgpt serve x --devices 2\n", "nothing here launches LitGPT");
}

LS_TEST_SUITE (LS_TEST (full_is_read), LS_TEST (mixed_precision_is_read), LS_TEST (adapters_are_read),
               LS_TEST (pretraining_is_read), LS_TEST (dimensions_are_read),
               LS_TEST (contradictions_are_told), LS_TEST (commands_are_read))
