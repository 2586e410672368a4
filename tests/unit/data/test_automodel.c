/* Pins what configurations of NeMo AutoModel mean, in the sections of each of its years. */
#include "ls_test.h"

#include "import_check.h"

#define AUTOMODEL                                                                                            \
  "step_scheduler:\n  global_batch_size: 512\n  local_batch_size: 8\nmodel:\n"                               \
  "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config\n"                                        \
  "  config:\n    pretrained_model_name_or_path: deepseek-ai/DeepSeek-V3\n  backend:\n    attn: te\n"        \
  "dataset:\n  seq_len: 4096\n"

static void
automodel_is_read (void)
{
  check_read (
      "NeMo AutoModel",
      AUTOMODEL "distributed:\n  strategy: fsdp2\n  pp_size: 4\n  ep_size: 64\n  cp_size: 1\n"
                "  activation_checkpointing: true\n  pipeline:\n    pp_schedule: interleaved1f1b\n"
                "    pp_microbatch_size: 1\n    layers_per_stage: 2\n"
                "    round_virtual_stages_to_pp_multiple: up\nci:\n  nproc_per_node: 8\n"
                "benchmark:\n  num_nodes: 32\n",
      "layers=61; seq=4096; gpus=256; pp=4; vpp=8; layers_per_chunk=2x29,1x3; ep=64; schedule=interleaved-1f1b; micro_batch=1; "
      "global_batch=512; dp_kind=fsdp2; zero=2; recompute=full; dtype=bf16; grad_norm; grad_dtype=fp32; narrow_shards=true; "
      "software=nemo-automodel-2025; sp=false");
  check_read (
      "NeMo AutoModel",
      AUTOMODEL
      "distributed:\n  _target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager\n"
      "  tp_size: 2\n  cp_size: 2\n  dp_replicate_size: 1\n  dp_size: none\n"
      "  sequence_parallel: true\npeft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n"
      "  dim: 16\n  target_modules: [\"*.linear_qkv\", \"model.layers.*.o_proj\"]\n"
      "slurm:\n  nodes: 2\n  ntasks_per_node: 8\n",
      "tp=2; cp=2; cp_kind=ring; sp=true; gpus=16; zero=3; recompute=none; lora_rank=16; lora_modules");
  check_read ("NeMo AutoModel",
              "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 1\nmodel:\n"
              "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
              "  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\ndataset:\n  seq_len: 4096\n"
              "distributed:\n  _target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager\n"
              "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 16\n"
              "  target_modules: [\"*.linear_qkv\", \"model.layers.*.o_proj\"]\n",
              "lora_rank=16; lora_modules=q,k,v,o");
  check_read ("NeMo AutoModel", /* names of a delta net's products, whose way out is not attention's */
              "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 1\nmodel:\n"
              "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
              "  pretrained_model_name_or_path: Qwen/Qwen3.5-35B-A3B\n"
              "dataset:\n  seq_len: 4096\n"
              "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 8\n"
              "  target_modules: [\"*.in_proj_qkv\", \"*.out_proj\", \"*.q_proj\"]\n",
              "lora_rank=8; lora_modules=q,in,out");
  check_read ("NeMo AutoModel", /* likewise of a model that is in no file here */
              "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 1\nmodel:\n"
              "  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
              "  pretrained_model_name_or_path: nobody/delta\n"
              "dataset:\n  seq_len: 4096\n"
              "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 8\n"
              "  target_modules: [\"*.in_proj_qkv\", \"*.out_proj\", \"*.q_proj\"]\n",
              "lora_rank=8; lora_modules=q,in,out");
  check_read ("NeMo AutoModel", /* names of latent attention's products */
              AUTOMODEL "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 8\n"
                        "  target_modules: [\"*.q_a_proj\", \"*.q_b_proj\"]\n",
              "lora_rank=8; lora_modules=q");
  check_read ("NeMo AutoModel", AUTOMODEL "distributed:\n  tp_size: 1\nbenchmark:\n  num_nodes: 32\n",
              "gpus; global_batch=512; ?how many GPUs; ~it runs on 32 nodes");
  check_read (NULL, AUTOMODEL "distributed:\n  tp_size: 1\nflow_matching:\n  adapter_type: simple\n",
              "flow_matching: another task");
}

/* Until February 2026 checkpointing and experts had sections of their own; until January 2026 rotary
 * embeddings were not fused. */
static void
earlier_sections_are_read (void)
{
  check_read ("NeMo AutoModel",
              AUTOMODEL "distributed:\n  _target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager\n"
                        "  ep_size: 64\nparallelizer:\n  _target_: parallelize_model\n"
                        "  activation_checkpointing: true\n  reshard_after_forward: true\n",
              "recompute=full; zero=3; dispatcher=deepep; kernels; -parallelizer._target_");
  check_read ("NeMo AutoModel",
              AUTOMODEL "distributed:\n  ep_size: 64\ndistributed_config:\n"
                        "  _target_: nemo_automodel.components.distributed.config.FSDP2Config\n"
                        "  sequence_parallel: false\nmoe_config:\n  activation_checkpointing: true\n"
                        "autopipeline:\n  pp_schedule: 1f1b\n",
              "recompute=full; zero=2; dispatcher=deepep; kernels");
  check_read ("NeMo AutoModel",
              AUTOMODEL "distributed:\n  ep_size: 64\n  activation_checkpointing: false\nmoe_config:\n"
                        "  activation_checkpointing: false\n",
              "recompute=none; kernels=nemo-automodel-2026");
}

#define BACKEND                                                                                              \
  "step_scheduler:\n  global_batch_size: 512\n  local_batch_size: 8\ndataset:\n  seq_len: 4096\n"            \
  "distributed:\n  ep_size: 8\nmodel:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config\n"    \
  "  config:\n    pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B\n  backend:\n"

/* What brings tokens to experts, and whether a gate that is not learned deals them out in turn. */
static void
exchanges_of_tokens_are_read (void)
{
  check_read ("NeMo AutoModel", BACKEND "    attn: te\n",
              "ep=8; dispatcher=deepep; expert_load; kernels=nemo-automodel-2026");
  check_read ("NeMo AutoModel",
              BACKEND "    dispatcher: hybridep\n    dispatcher_num_sms: 64\n    fake_balanced_gate: true\n",
              "dispatcher=hybridep; dispatch_sms=64; expert_load=round-robin");
  check_read ("NeMo AutoModel", BACKEND "    dispatcher: torch\n    fake_balanced_gate: true\n",
              "dispatcher=all-to-all; expert_load; ?dispatcher torch: a gather");
  check_read ("NeMo AutoModel", BACKEND "    dispatcher: mok\n", "dispatcher=deepep; ?mok: taken for DeepEP");
  check_read ("NeMo AutoModel", BACKEND "    enable_deepep: false\n",
              "dispatcher=all-to-all; kernels; ?dispatcher torch: a gather");
  check_read ("NeMo AutoModel", BACKEND "    fake_balanced_gate: true\n    fake_gate_noise: 0.3\n",
              "expert_load; ?fake_gate_noise: tokens are taken to fall");
  check_read ("NeMo AutoModel", BACKEND "    attn: flex\n    rope_fusion: false\n",
              "attention_kernel=fa2; kernels; ?attn flex: FlexAttention is taken");
}

/* Layers that are over go to the first chunks; chunks that stages do not share are rounded or refused. */
static void
chunks_share_layers (void)
{
#define PIPE  AUTOMODEL "distributed:\n  pp_size: 4\n  pipeline:\n    pp_schedule: interleaved1f1b\n"
#define ROUND "    round_virtual_stages_to_pp_multiple: "
  check_read ("NeMo AutoModel", PIPE, "vpp=2; layers_per_chunk=8x5,7x3");
  check_read ("NeMo AutoModel", PIPE "    layers_per_stage: 2\n",
              "!layers_per_stage 2: 31 chunks of 61 layers");
  check_read ("NeMo AutoModel", PIPE "    layers_per_stage: 2\n" ROUND "down\n",
              "vpp=7; layers_per_chunk=3x5,2x23");
  check_read ("NeMo AutoModel", PIPE "    layers_per_stage: 4\n", "vpp=4; layers_per_chunk=4x13,3x3");
#undef ROUND
#undef PIPE
}

/* Each local batch fills and drains a pipeline. Gradients are reduced behind each, but for models with
 * experts. */
static void
pipelines_pass_local_batches (void)
{
  check_read ("NeMo AutoModel",
              AUTOMODEL "distributed:\n  pp_size: 4\n  ep_size: 64\n  pipeline: {layers_per_stage: 2}\n",
              "pp=4; pipeline_batch=8; grad_sync=last");
  check_read ("NeMo AutoModel", AUTOMODEL "distributed:\n  pp_size: 4\n  pipeline: {layers_per_stage: 2}\n",
              "pp=4; pipeline_batch=8");
}

/* Products in 8 bits by Transformer Engine, and weights that are frozen in 4. */
static void
narrow_formats_are_read (void)
{
  check_read ("NeMo AutoModel", BACKEND "    linear: te\n    te_fp8: {recipe: mxfp8}\n",
              "dtype=fp8; fp8_recipe=mxfp8");
  check_read ("NeMo AutoModel", BACKEND "    te_fp8: {recipe: block}\n", "dtype=fp8; fp8_recipe=blockwise");
  check_read ("NeMo AutoModel", BACKEND "    te_fp8: {recipe: new}\n",
              "dtype=fp8; fp8_recipe=current; ?te_fp8.recipe new");
  check_read ("NeMo AutoModel", BACKEND "fp8: {enabled: true, recipe_name: rowwise}\n",
              "dtype=fp8; fp8_recipe=current; fp8_linear=torchao; fp8_params; ?fp8.recipe_name rowwise");
  check_read ("NeMo AutoModel", BACKEND "fp8: {enabled: true, enable_fsdp_float8_all_gather: true}\n",
              "dtype=fp8; fp8_linear=torchao; bf16_experts=true; fp8_params; ?gathered in bf16");
  check_read (
      "NeMo AutoModel",
      "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 1\nmodel:\n"
      "  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\ndataset:\n  seq_len: 4096\n"
      "distributed:\n  strategy: fsdp2\npeft:\n  _target_: nemo_automodel.components._peft.PeftConfig\n"
      "  dim: 16\n  match_all_linear: true\nquantization:\n  load_in_4bit: true\n",
      "lora_rank=16; qlora=true");
}

/* The norm is computed but in the loop of its benchmarks. */
static void
only_benchmarks_do_not_clip (void)
{
  check_read ("NeMo AutoModel",
              "recipe: BenchmarkingRecipeForNextTokenPrediction\n" AUTOMODEL "distributed:\n  tp_size: 1\n",
              "grad_norm=false");
  check_read ("NeMo AutoModel",
              AUTOMODEL "benchmark:\n  warmup_steps: 10\ndistributed:\n  tp_size: 1\n"
                        "clip_grad_norm:\n  max_norm: 1.0\n",
              "grad_norm=false");
  check_read ("NeMo AutoModel",
              "recipe: TrainFinetuneRecipeForNextTokenPrediction\n" AUTOMODEL
              "benchmark:\n  warmup_steps: 10\ndistributed:\n  tp_size: 1\n",
              "grad_norm");
}

#define DENSE                                                                                                \
  "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 1\ndataset:\n  seq_len: 4096\nmodel:\n"     \
  "  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\n"
#define POLICY "distributed:\n  strategy: fsdp2\n  mp_policy:\n    param_dtype: bfloat16\n"
#define ADAM   "optimizer:\n  _target_: torch.optim.AdamW\n"

/* What is stored, in what it is reduced, and what Transformer Engine's Adam keeps beside it. */
static void
formats_are_those_of_the_policy (void)
{
  check_read ("NeMo AutoModel", DENSE "  torch_dtype: float32\n" POLICY "    reduce_dtype: bfloat16\n" ADAM,
              "dtype=bf16; grad_dtype=bf16; narrow_shards; ~shards fp32");
  check_read ("NeMo AutoModel", DENSE "  torch_dtype: bf16\n" POLICY "    output_dtype: float32\n" ADAM,
              "dtype=bf16; grad_dtype=fp32; narrow_shards=true; ?output_dtype float32");
  check_read ("NeMo AutoModel",
              DENSE POLICY
              "optimizer:\n  _target_: transformer_engine.pytorch.optimizers.fused_adam.FusedAdam\n",
              "narrow_shards; grad_dtype=fp32; optimizer=adam; ?FusedAdam with weights stored in bf16");
  check_read ("NeMo AutoModel", DENSE "  torch_dtype: float32\ndistributed:\n  strategy: ddp\n" ADAM,
              "dtype=fp32; master; dp_kind=ddp");
  check_read ("NeMo AutoModel", DENSE "distributed:\n  strategy: ddp\n" ADAM,
              "dtype=bf16; master=none; dp_kind=ddp");
  check_read ("NeMo AutoModel", DENSE POLICY "    reduce_dtype: int\n  enable_compile: true\n" ADAM,
              "grad_dtype=fp32; ?reduce_dtype int: taken for fp32; ?distributed.enable_compile");
}

/* Without a pipeline the last micro-batch alone reduces; layers stay gathered where it says so. */
static void
shards_are_gathered_and_reduced_as_said (void)
{
  check_read ("NeMo AutoModel", DENSE POLICY ADAM, "grad_sync=last; zero=3");
  check_read ("NeMo AutoModel", DENSE "distributed:\n  defer_fsdp_grad_sync: false\n" ADAM, "grad_sync=each");
  check_read ("NeMo AutoModel", DENSE "distributed:\n  reshard_after_forward: false\n" ADAM, "zero=2");
  check_read ("NeMo AutoModel", DENSE "distributed:\n  tp_size: 2\n" ADAM, "tp=2; sp=false");
  check_read ("NeMo AutoModel", DENSE "distributed:\n  tp_size: 2\n  sequence_parallel: true\n" ADAM,
              "tp=2; sp=true; ~sequence parallelism wherever");
  check_read ("NeMo AutoModel",
              AUTOMODEL "distributed:\n  ep_size: 8\n  moe:\n    lm_head_precision: float32\n",
              "zero=2; ?lm_head_precision");
}

/* Adapters beside products in fp8 are not simulated under FSDP. */
static void
adapters_have_products_in_16_bits (void)
{
#define LORA "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 16\n"
  check_read ("NeMo AutoModel", DENSE "fp8:\n  enabled: true\n" LORA,
              "lora_rank=16; dtype=bf16; fp8_recipe; fp8_linear; fp8_params; ?fp8.enabled: products beside");
  check_read ("NeMo AutoModel", DENSE "fp8:\n  enabled: true\n", "lora_rank; dtype=fp8; fp8_linear=torchao");
}

LS_TEST_SUITE (LS_TEST (adapters_have_products_in_16_bits), LS_TEST (only_benchmarks_do_not_clip),
               LS_TEST (formats_are_those_of_the_policy), LS_TEST (shards_are_gathered_and_reduced_as_said),
               LS_TEST (narrow_formats_are_read), LS_TEST (automodel_is_read),
               LS_TEST (earlier_sections_are_read), LS_TEST (exchanges_of_tokens_are_read),
               LS_TEST (chunks_share_layers), LS_TEST (pipelines_pass_local_batches))
