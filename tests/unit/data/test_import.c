/* Pins what launch files mean by the keys of our files: values, defaults of their programs, names of older
 * releases, what is told and not guessed, what is refused. */
#include "ls_test.h"

#include <string.h>

#include <glib/gstdio.h>

#include "import_check.h"

#define GPT                                                                                                  \
  "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 "

/* A multiple that a file says is vocab_multiple; what it has padded already is padded no more. */
static void
a_vocabulary_is_padded_as_a_file_says (void)
{
#define WORDS GPT "--tensor-model-parallel-size 2 --vocab-size 50257 --make-vocab-size-divisible-by "
  check (WORDS "64", "vocab=50257; vocab_multiple=64");
  check (WORDS "1", "vocab=50257; vocab_multiple=1");
  check (WORDS "9999999", "vocab=50257; vocab_multiple; !make-vocab-size-divisible-by");
#undef WORDS
#define PADDED GPT "--tokenizer-type GPT2BPETokenizer --tensor-model-parallel-size 2 --pad-vocab-size-to "
  check (PADDED "51200", "vocab=51200; vocab_multiple; ~vocab 51200: with its padding");
  check (PADDED "50264 --make-vocab-size-divisible-by 64", "vocab=50264; vocab_multiple=1");
  check (PADDED "100", "vocab=50257; vocab_multiple; ?pad-vocab-size-to 100: less than the 50257 words");
#undef PADDED
#define NEOX                                                                                                 \
  "pipe_parallel_size: 1\nmodel_parallel_size: 4\nnum_layers: 24\nhidden_size: 2048\n"                       \
  "num_attention_heads: 16\ntokenizer_type: GPT2BPETokenizer\n"
  check_read ("gpt-neox", NEOX "make-vocab-size-divisible-by: 16\n", "vocab=50257; vocab_multiple=16");
  check_read ("gpt-neox", NEOX "padded_vocab_size: 50260\n", "vocab=50260; vocab_multiple=1");
  check_read ("gpt-neox", NEOX "padded_vocab_size: 51200\n", "vocab=51200; vocab_multiple");
#undef NEOX
#define NANOTRON                                                                                             \
  "parallelism: {dp: 4, pp: 2, tp: 2}\nmodel:\n  model_config: {is_llama_config: true, hidden_size: 64, "    \
  "num_hidden_layers: 8, num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}\n"
  check_read ("nanotron", NANOTRON "  make_vocab_size_divisible_by: 48\n", "vocab=1000; vocab_multiple=48");
#undef NANOTRON
#define NEMO                                                                                                 \
  "trainer: {devices: 8, num_nodes: 4}\nmodel:\n  tensor_model_parallel_size: 2\n  num_layers: 32\n"         \
  "  hidden_size: 512\n  num_attention_heads: 8\n  encoder_seq_length: 1024\n  micro_batch_size: 1\n"
  check_read ("NeMo", NEMO "  override_vocab_size: 50257\n  make_vocab_size_divisible_by: 512\n",
              "vocab=50257; vocab_multiple=512");
  check_read ("NeMo", NEMO "  vocab_size: 50257\n  should_pad_vocab: false\n",
              "vocab=50257; vocab_multiple=1");
  check_read ("NeMo", NEMO "  vocab_size: 50257\n  should_pad_vocab: true\n", "vocab=50257; vocab_multiple");
#undef NEMO
}

/* What is no number, where one is expected, and several values for one are told: nothing is passed over. */
static void
values_of_another_sort_are_told (void)
{
  check (GPT "--vocab-size 50257 --pad-vocab-size-to many",
         "vocab=50257; ?pad-vocab-size-to many: expected a whole number");
  check (GPT "--recompute-granularity full --recompute-num-layers x",
         "recompute=full; ?recompute-num-layers x: expected a whole number");
  check (GPT "--rotary-percent half --tensor-model-parallel-size 2 4",
         "tp=2; ?tensor-model-parallel-size: 2 values where one is expected");
  check_read (
      "NeMo",
      "trainer: {devices: 8, num_nodes: few}\nmodel:\n  num_layers: 32\n  hidden_size: [512, 1024]\n"
      "  num_attention_heads: 8\n  encoder_seq_length: 1024\n  micro_batch_size: 1\n",
      "hidden=512; ?num_nodes few: expected a whole number; ?hidden_size: 2 values where one is expected");
}

/* Options that change memory or time are not among those that do not matter, and what is not there is missed. */
static void
nothing_that_matters_is_ignored (void)
{
#define AXOLOTL                                                                                              \
  "base_model: Qwen/Qwen2.5-1.5B\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nsequence_len: 512\n"
  check_read ("axolotl", AXOLOTL "liger_fused_linear_cross_entropy: true\nliger_rope: false\n",
              "software=hf-trainer-2024-liger; ?liger_rms_norm is off: all kernels of Liger are taken");
  check_read ("axolotl", AXOLOTL "liger_swiglu: true\nliger_rms_norm: true\n",
              "software=hf-trainer-2024-liger; ?liger_fused_linear_cross_entropy is off");
  check_read ("axolotl", AXOLOTL "liger_rope: false\nliger_rms_norm: false\n", "software=hf-trainer-2026");
  check_read ("axolotl",
              AXOLOTL
              "adapter: lora\nlora_modules_to_save: [embed_tokens]\npeft_use_dora: true\n"
              "lora_qkv_kernel: true\nlora_mlp_kernel: false\noverrides_of_model_config: {num_layers: 2}\n",
              "?lora_modules_to_save: taken to be off; ?peft_use_dora: taken; ?lora_qkv_kernel: taken; "
              "?overrides_of_model_config.num_layers 2");
  check_read (
      "NeMo AutoModel",
      "model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config, config: {_target_: a, "
      "pretrained_model_name_or_path: Qwen/Qwen3-32B, num_hidden_layers: 4}}\n"
      "step_scheduler: {local_batch_size: 1, global_batch_size: 32}\n"
      "loss_fn: {_target_: b.FusedLinearCrossEntropy}\nfreeze_config: {freeze_embeddings: true, "
      "freeze_language_model: false}\n",
      "?model.config.num_hidden_layers 4; -model.config._target_; ?FusedLinearCrossEntropy: logits are; "
      "?freeze_embeddings: all weights");
  check (GPT "--position-embedding-type sandwich", "?position-embedding-type sandwich");
  check ("bash start.sh --micro-batch-size 8 --seq-length 4096 --tensor-model-parallel-size 2",
         "tp=2; ?the rest of the job: no --hidden-size is here; dtype; mlp");
#undef AXOLOTL
}

/* What stands among words that a script leaves open is not taken as not given: a number format; nor is a
 * granularity that it leaves open none. */
static void
what_a_script_leaves_open_is_no_default (void)
{
  check (GPT "$PRECISION", "dtype; recompute=none; ?the number format: --bf16 may be among");
  check (GPT "--bf16 $PRECISION", "dtype=bf16");
  check (GPT "--fp8-format hybrid $PRECISION", "dtype=fp8");
  check (GPT, "dtype=fp32");
  check (GPT "--recompute-granularity $R", "recompute; ?how much is recomputed");
  check (GPT "--recompute-granularity $R --recompute-activations", "recompute=selective");
  check (GPT "--recompute-granularity fully", "recompute=none; ?recompute-granularity fully: taken as none");
}

/* Copies of weights are as many as an axis of data says, whatever is left to the number of devices: -1. */
static void
copies_of_sharded_weights_are_heeded (void)
{
#define MAXTEXT "base_config: base.yml\nmodel_name: llama2-7b\nper_device_batch_size: 1\n"
  static const struct {
    const char *axes, *given, *zero;
  } rows[] = { { "ici_data_parallelism: 4\nici_fsdp_parallelism: -1\n", "gpus=32", "3@8" },
               { "ici_data_parallelism: 4\nici_fsdp_parallelism: -1\nici_tensor_parallelism: 2\n", "gpus=32",
                 "3@4" },
               { "dcn_data_parallelism: -1\nici_fsdp_parallelism: 8\n", "gpus=32", "3@8" },
               { "ici_fsdp_parallelism: 8\n", "seq=2048", "3" } };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "a.yml", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *text = g_strconcat (MAXTEXT, rows[i].axes, NULL),
                    *asked = g_strconcat (path, ":", rows[i].given, NULL);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsImport import;
    if (!LS_CHECK (g_file_set_contents (path, text, -1, NULL))
        || !LS_CHECK (ls_import_load ((const char *const[]) { asked, NULL }, &import, diags)))
      continue;
    g_autofree char *zero = ls_import_strategy_value (&import, "zero");
    ls_check_impl (g_strcmp0 (zero, rows[i].zero) == 0, __FILE__, __LINE__, "%s: zero %s", rows[i].axes,
                   zero);
    ls_import_clear (&import);
  }
  g_unlink (path);
  g_rmdir (folder);
#undef MAXTEXT
}

/* Chunks of a stage follow from layers and stages, not from other degrees that a script leaves open; without
 * these they are open, and so is the schedule. What a batch script says of a node is known to it. */
static void
chunks_follow_from_layers_and_stages (void)
{
#define CHUNKS GPT "--num-layers-per-virtual-pipeline-stage 3 "
  check (CHUNKS "--pipeline-model-parallel-size 4 --tensor-model-parallel-size $T",
         "pp=4; vpp=2; schedule=interleaved-1f1b; tp; ?$T");
  check (CHUNKS "--pipeline-model-parallel-size $P",
         "pp; vpp; schedule; ?3: how many chunks that is follows");
  check ("--seq-length 64 --micro-batch-size 1 --hidden-size 64 --pipeline-model-parallel-size 4 "
         "--num-layers-per-virtual-pipeline-stage 3",
         "pp=4; vpp; schedule; ?3: how many chunks that is follows from layers and stages");
  check (
      "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=4 --ntasks-per-node=1\nsrun python pretrain_gpt.py " GPT
      "--tensor-model-parallel-size $SLURM_GPUS_PER_NODE --context-parallel-size $SLURM_NNODES",
      "tp=4; cp=2; gpus=8");
#undef CHUNKS
}

static void
values_are_those_of_our_keys (void)
{
  check (
      GPT "--tensor-model-parallel-size 8 --pipeline_model_parallel_size=4 --global-batch-size 64 --bf16",
      "layers=24; hidden=1024; heads=16; seq=2048; tp=8; pp=4; micro_batch=4; global_batch=64; dtype=bf16; "
      "schedule=1f1b; zero=0; recompute=none; sp=false; cp=1; ep");
  check (GPT "--swiglu", "mlp=swiglu; ffn=2688; ~ffn 2688");
  check (GPT "--quick-geglu --activation-func-clamp-value 7.0", "mlp=quick-geglu; ffn=4096; act_limit=true");
  check (GPT "--num-experts 8 --deepspeed --moe-train-capacity-factor 1.2", "expert_capacity=1.2");
  check (GPT "--num-experts 1 --deepspeed --moe-train-capacity-factor 1.2", "expert_capacity");
  check (GPT "--mtp-num-layers 0 --mtp-use-repeated-layer", "predict_layers; predict_shared");
  check (GPT "--mtp-num-layers 1", "predict_layers=1; predict_shared");
  check (GPT "--num-key-value-heads 4", "kv_heads=4");
  check (GPT "--attention-head-type multiquery", "kv_heads=1");
  check (GPT "--attention-head-type multihead", "kv_heads=16");
  check (GPT,
         "mlp=gelu; ffn=4096; norm=layernorm; position=learned; linear_bias=true; tied_embeddings=true; "
         "dropout=true; kv_heads=16; dtype=fp32; vocab");
  check (GPT "--group-query-attention --num-query-groups 4 --kv-channels 128", "kv_heads=4; head_dim=128");
  check (GPT "--num-experts 8 --moe-layer-freq '([0]*3+[1]*21)' --disable-bias-linear",
         "experts=8; top_k=2; expert_ffn=4096; dense_layers=3; moe_every=1; ep=1");
  check (GPT "--num-experts 8 --moe-layer-freq [0,1]*12", "moe_every=2; dense_layers");
  check (GPT "--multi-latent-attention --kv-lora-rank 512 --qk-layernorm",
         "kv_lora=512; rope_dim=64; head_dim=192; v_dim=128; q_lora; qk_norm");
  check (
      GPT
      "--multi-latent-attention --q-lora-rank 96 --qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 48",
      "q_lora=96; head_dim=48; rope_dim=16; v_dim=48");
  check (GPT
         "--num-experts 8 --moe-router-num-groups 4 --moe-router-group-topk 2 --squared-relu --add-qkv-bias "
         "--expert-model-parallel-size 4 --overlap-moe-expert-parallel-comm --delay-wgrad-compute",
         "expert_groups=4; top_groups=2; mlp=relu2; qkv_bias=true; ep_overlap=1; delay_wgrad=1");
  check (GPT "--activation-func-fp8-input-store --enable-optimizer-post-validation",
         "fp8_act_store=true; post_validation=true");
  check (GPT "--multi-latent-attention --kv-channels 96 --num-query-groups 4", "kv_heads=16; head_dim=192");
  check (
      "python pretrain_t5.py --hidden-size 768 --num-attention-heads 12 --micro-batch-size 4 --encoder-num-layers 12 "
      "--decoder-num-layers 6 --encoder-seq-length 512 --decoder-seq-length 128 --vocab-file f --vocab-extra-ids 100",
      "layers=18; encoder_layers=12; seq=512; decoder_seq=128; vocab=30622; linear_bias=false; position=none; "
      "?biases and positions");
  check ("python pretrain_t5.py " GPT "--disable-bias-linear --position-embedding-type none",
         "layers=48; encoder_layers=24; decoder_seq; seq=2048");
  check ("python train.py " GPT "--language-model-type mistral_7b --decoder-seq-length 4096",
         "layers=24; encoder_layers; linear_bias=true; seq=4096");
  check (GPT "--recompute-granularity full --recompute-method block --recompute-num-layers 0",
         "recompute=none");
  check (GPT "--position-embedding-type rope --rotary-percent 0.25 --no-rope-freq 4",
         "rotary_dim=16; unrotated_every=4");
  check (GPT "--position-embedding-type rope --rotary-percent 1.0 --no-rope-freq [0,1]*12",
         "rotary_dim; unrotated_every; ?--no-rope-freq [0,1]*12");
  check (GPT "--window-size '(127,0)' --window-attn-skip-freq 4", "window=128; full_every=4");
  check (GPT "--window-size -1,-1 --window-attn-skip-freq 4", "window; full_every; ?--window-size -1,-1");
  check (GPT "--bf16 --fp8-format hybrid --first-last-layers-bf16 --num-layers-at-end-in-bf16 3",
         "bf16_first=1; bf16_last=3");
  check (GPT "--bf16 --fp8-format hybrid --num-layers-at-end-in-bf16 3", "bf16_first; bf16_last");
  check (GPT "--normalization Layernorm2 --cp-comm-type a2a", "norm=layernorm; ?Layernorm2; cp_kind");
  check (GPT "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2",
         "vpp=3; p2p=overlapped");
  check (GPT "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*5|t*7|t*7|t*5L'",
         "vpp=2; layers_per_chunk=5,7x2,5");
  check (GPT "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(tt|)*6m|L'",
         "?--pipeline-model-parallel-layout; layers_per_chunk");
  check (GPT "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Ett|(ttt|)*6,t*4,L'",
         "vpp=2; layers_per_chunk=2,3x6,4");
  check (GPT "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3",
         "layers_per_chunk=3,7x3");
  check (GPT "--recompute-granularity selective --recompute-modules core_attn layernorm mlp moe mhc",
         "recompute=selective; recompute_parts=core,norm,mlp; ?--recompute-modules mhc");
  check (GPT "--num-experts 8 --moe-shared-expert-intermediate-size 512 --expert-model-parallel-size 4 "
             "--moe-shared-expert-overlap --recompute-granularity selective --recompute-modules moe mlp",
         "experts=8; shared_ffn=512; ep=4; shared_overlap=true; recompute_parts=moe");
  check (GPT "--num-experts 8 --moe-shared-expert-intermediate-size 512 --moe-shared-expert-overlap "
             "--recompute-granularity selective --recompute-modules shared_experts",
         "shared_ffn=512; recompute_parts=shared");
  check (GPT "--bf16 --fp8-format hybrid", "dtype=fp8; fp8_recipe=delayed; ~fp8_recipe; grad_dtype=fp32");
  check (GPT "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "zero=2; dp_kind=fsdp2");
  check (GPT "--tokenizer-type GPT2BPETokenizer", "vocab=50257; ~GPT-2");
  check ("python pretrain_gpt.py " GPT "--vocab-file a.json", "vocab=50257; gpus=1; global_batch=4");
}

/* Letters of a pattern are layers of one half; its bars cut the pipeline. */
static void
mixers_are_read (void)
{
  check (GPT "--hybrid-layer-pattern 'M-M*|ME-M/*E/*E' --num-experts 8 --disable-bias-linear "
             "--pipeline-model-parallel-size 2 --mtp-use-repeated-layer",
         "layer_pattern=mdmamedm; mixer=mamba2; mixer_heads=32; mixer_groups=8; mixer_state=128; "
         "predict_layers=2; predict_pattern=ae; predict_shared=true; layers_per_chunk=4x2");
  check (GPT "--hybrid-override-pattern MMM --mamba-num-heads 16 --mamba-state-dim 64",
         "layers=3; layer_pattern=m; mixer_heads=16; mixer_state=64");
  check (GPT "--is-hybrid-model --num-layers 8 --hybrid-attention-ratio 0.25 --hybrid-mlp-ratio 0.5",
         "layer_pattern=mdadmadd");
  check (GPT "--hybrid-layer-pattern MXM", "?which layers have Mamba; mixer; layers=24");
  check ("python train_other.py " GPT "--hybrid-layer-pattern M-", "mixer=mamba2; ?the letters of");
  check (
      GPT "--experimental-attention-variant gated_delta_net --linear-attention-freq 4 "
          "--linear-num-value-heads 32 --linear-num-key-heads 16 --linear-key-head-dim 128 "
          "--attention-output-gate",
      "layer_pattern=MMMA; mixer=delta; mixer_heads=32; mixer_groups=16; mixer_state=128; attention_gate=true");
  check (GPT "--language-model-type qwen2.5_7B", "layers=24; ?images");
}

/* A line of options counts whatever is on it, and so does a variable. */
static void
lists_of_options_are_read_whole (void)
{
  check (GPT "\n--bf16 --use-distributed-optimizer\n--pipeline-model-parallel-size 2\n"
             "--num-layers-per-virtual-pipeline-stage 4\n--swiglu\n",
         "dtype=bf16; zero=1; vpp=3; mlp=swiglu");
  check ("A='" GPT "'\nB=(--bf16)\nC=\"--swiglu\"\n", "layers=24; dtype=bf16; mlp=swiglu");
  check ("python pretrain_gpt.py " GPT "\n  --bf16\n", "?is a \\ missing; dtype=fp32");
  check (GPT "--num-query-groups 4", "kv_heads=16; ~--num-query-groups has no effect");
}

/* Each release has its own words for one thing. */
static void
names_of_older_releases_are_known (void)
{
  check ("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --batch-size 8 "
         "--model-parallel-size 2 --checkpoint-activations",
         "software=megatron-lm-2021-04; tp=2; micro_batch=8; recompute=full; attention=unfused");
  check (GPT "--activations-checkpoint-method uniform --DDP-impl torch",
         "recompute=full; recompute_method=uniform; dp_kind=ddp; software=megatron-lm-2022-05; "
         "~those of May 2022 (--activations-checkpoint-method)");
  check (GPT "--moe-expert-parallel-size 4 --num-experts 1", "ep; experts");
  check (GPT "--deepspeed --zero-stage 2",
         "dp_kind=deepspeed; zero=2; software=megatron-deepspeed-2022; p2p");
  check (GPT "--deepspeed --zero-stage 1 --pipeline-model-parallel-size 2 --bf16",
         "p2p=deepspeed; attention=unfused; ~Megatron-DeepSpeed");
  check (GPT "--deepspeed", "?ZeRO stage; zero");
}

/* All releases that have every option, of which the last is taken; none may have. */
static void
releases_are_a_range (void)
{
  check (GPT, "software=megatron; ~its options are those of April 2021 to core 0.15");
  check (GPT "--DDP-impl local",
         "software=megatron-lm-2023-08; ~its options are those of April 2021 to August 2023 (--DDP-impl)");
  check (GPT "--use-flash-attn --DDP-impl local",
         "software=megatron-lm-2023-08; ~August 2023 (--use-flash-attn)");
  check (GPT "--num-experts 8 --moe-token-dispatcher-type alltoall",
         "software=megatron; ~core 0.6 of 2024 (--moe-token-dispatcher-type) to core 0.15 of 2025");
  check (GPT "--use-custom-fsdp",
         "software=megatron-core-0.13; ~those of core 0.12 of 2025 (--use-custom-fsdp) to core 0.13 of 2025");
  check (
      GPT "--checkpoint-activations --swiglu",
      "software=megatron-lm-2021-04; ~has both --swiglu (August 2023 on) and --checkpoint-activations (up to "
      "April 2021)");
}

static void
ranks_are_those_of_the_launcher (void)
{
  check ("G=8\nN=2\ntorchrun --nproc_per_node $G --nnodes $N pretrain_gpt.py " GPT
         "--tensor-model-parallel-size 2\n",
         "gpus=16; global_batch=32; ~global_batch 32");
  check ("#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\nsrun bash -c \"python pretrain_gpt.py " GPT "\"\n",
         "gpus=32");
  check ("#SBATCH --nodes=4\nGPUS=4\nsrun bash -c \"torchrun --nnodes $SLURM_NNODES --nproc-per-node $GPUS "
         "pretrain_gpt.py " GPT "\"\n",
         "gpus=16");
  check ("mpirun -np 32 python pretrain_gpt.py " GPT, "gpus=32");
  check ("torchrun --nnodes $N pretrain_gpt.py " GPT, "gpus; ?how many GPUs");
}

/* Nothing is guessed in silence. */
static void
what_is_not_known_is_told (void)
{
  check (GPT "--no-rope-fusion --manual-gc --optimizer adam", "~--no-rope-fusion; -manual-gc; cuda_graphs");
  check (GPT "--optimizer lamb --enable-cuda-graph", "?--optimizer lamb; cuda_graphs=layer");
  check (GPT "--optimizer sgd", "optimizer=sgd-momentum");
  check (GPT "--optimizer sgd --sgd-momentum 0", "optimizer=sgd");
  check (
      GPT
      "--optimizer dist_muon --tensor-model-parallel-size 2 --muon-tp-mode distributed --muon-num-ns-steps 6",
      "optimizer=muon; optimizer_cut=tensors; zero=1; optimizer_tp=distributed; ?--muon-num-ns-steps 6");
  check (GPT "--optimizer muon --muon-tp-mode duplicated", "optimizer=muon; zero=0; optimizer_tp");
  check (GPT "--bf16 --use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype fp8 "
             "--exp-avg-sq-dtype bf16",
         "master=remainder; moment_dtype=fp8; variance_dtype=bf16");
  check (GPT "--bf16 --use-distributed-optimizer --use-precision-aware-optimizer --main-params-dtype fp16",
         "master=fp16; moment_dtype");
  check (GPT "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather --use-precision-aware-optimizer "
             "--main-grads-dtype bf16 --accumulate-allreduce-grads-in-fp32",
         "fp8_params=true; ?--reuse-grad-buf-for-mxfp8-param-ag; ?--main-grads-dtype bf16");
  check (GPT "--num-experts 8 --disable-bias-linear", "~without --moe-grouped-gemm");
  check (GPT "--never-heard-of 3 --lr 1 --seed 2", "?--never-heard-of 3; ---lr; ---seed");
  check ("A='" GPT "'\npython pretrain_gpt.py $A --tensor-model-parallel-size $TP\n", "tp; ?$TP");
  check ("python pretrain_gpt.py " GPT "\"$@\" ${MORE}\n", "?$@; ?${MORE}");
  check ("if [ $1 = a ]; then python pretrain_gpt.py " GPT "; fi\n", "?whether this command is run");
  check ("python pretrain_bert.py " GPT, "?pretrain_bert.py");
  check (". setup.sh\npython pretrain_gpt.py " GPT, "?setup.sh");
}

static void
contradictions_are_told (void)
{
  check ("torchrun --nproc_per_node 8 pretrain_gpt.py " GPT
         "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2",
         "!8 GPUs do not hold tp 8 x pp 2; gpus");
  check (GPT "--bf16 --fp16", "!--bf16 and --fp16");
  check (GPT "--num-layers-per-virtual-pipeline-stage 4", "!6 chunks of a stage, and no pipeline; vpp");
  check (GPT "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 5",
         "!does not divide");
  check (GPT "--context-parallel-size eight", "!--context-parallel-size: \"eight\" is no value for cp");
  check (GPT "--use-distributed-optimizer --overlap-param-gather --tensor-model-parallel-size",
         "!--tensor-model-parallel-size: a value is missing; !--overlap-param-gather without");
  check ("torchrun --nproc_per_node 8 pretrain_gpt.py " GPT "--global-batch-size 36", "!batch of 36");
}

/* A test of Megatron-LM, by itself and with golden values. */
static void
tests_of_megatron_are_read (void)
{
  static const char args[]
      = "TEST_TYPE: release\nMODEL_ARGS:\n  --num-layers: 24\n  --hidden-size: 1024\n"
        "  --num-attention-heads: 16\n  --seq-length: 2048\n  --micro-batch-size: 4\n"
        "  --use-distributed-optimizer: true\n  --sequence-parallel: false\n  --bf16: true\n",
      golden[] = "{\"iteration-time\": {\"values\": {\"1\": 9, \"5\": \"nan\", \"10\": 3, \"15\": 2,"
                 "\"20\": 4}}, \"mem-max-allocated-bytes\": {\"values\": {\"1\": 5e9, \"5\": 6e9}}}";
  check (args, "layers=24; hidden=1024; zero=1; sp=false; dtype=bf16; ?how many GPUs; gpus");
  g_autofree char *folder = g_dir_make_tmp ("megatron-XXXXXX", NULL),
                  *config = g_build_filename (folder, "config.yaml", NULL),
                  *values = g_build_filename (folder, "golden.json", NULL);
  g_file_set_contents (config, args, -1, NULL);
  g_file_set_contents (values, golden, -1, NULL);
  const char *const paths[] = { config, values, ":gpus=8", NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport import;
  if (LS_CHECK (ls_import_load (paths, &import, diags))) {
    LS_CHECK_DOUBLE (import.measured.step_s, ==, 4);
    LS_CHECK_DOUBLE (import.measured.allocated_bytes, ==, 6e9);
    LS_CHECK_INT (import.strategy.global_batch, ==, 32);
    ls_import_clear (&import);
  }
  g_unlink (config);
  g_unlink (values);
  g_rmdir (folder);
}

/* --- logs ----------------------------------------------------------------------------------------- */

#define DUMP                                                                                                 \
  "0: ------------------------ arguments ------------------------\n"                                         \
  "0:   bf16 ............................................ True\n"                                            \
  "0:   fp16 ............................................ False\n"                                           \
  "0:   global_batch_size ............................... 64\n"                                              \
  "0:   hidden_size ..................................... 1024\n"                                            \
  "0:   a_name_that_is_so_long_that_no_dot_has_room_here  True\n"                                            \
  "0:   micro_batch_size ................................ 2\n"                                               \
  "0:   num_attention_heads ............................. 16\n"                                              \
  "0:   num_layers ...................................... 24\n"                                              \
  "0:   recompute_granularity ........................... None\n"                                            \
  "0:   seq_length ...................................... 2048\n"                                            \
  "0:   sequence_parallel ............................... True\n"                                            \
  "0:   tensor_model_parallel_size ...................... 2\n"                                               \
  "0:   world_size ...................................... 16\n"                                              \
  "0: -------------------- end of arguments ---------------------\n"                                         \
  " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)\n"
#define STEP(ms, batch)                                                                                      \
  " iteration 1/ 9 | elapsed time per iteration (ms): " ms " | global batch size: " batch " | lm loss: 1 |\n"

#define MEMORY                                                                                               \
  "[Rank 3] (after 1 iterations) memory (MB) | allocated: 1.0 | max allocated: 2048.0 | "                    \
  "reserved: 1.0 | max reserved: 4096.0\n"

/* A dump has each argument, by the name of where it is kept, whether it is heeded or not. */
static void
what_a_dump_has_is_heeded_where_it_is_on (void)
{
  static const char head[] = "------------------------ arguments ------------------------\n"
                             "  num_layers ...................................... 24\n"
                             "  moe_router_topk ................................. 2\n"
                             "  kv_lora_rank .................................... 32\n"
                             "  num_layers_at_end_in_bf16 ....................... 1\n"
                             "  num_experts ..................................... None\n"
                             "  bf16 ............................................ True\n"
                             "  fp8_recipe ...................................... tensorwise\n",
                    tail[] = "-------------------- end of arguments ---------------------\n";
  g_autofree char *with
      = g_strconcat (head, "  fp8 ............................................. hybrid\n", tail, NULL),
      *without = g_strconcat (head, "  fp8 ............................................. None\n", tail, NULL);
  check (with, "dtype=fp8; fp8_recipe=current; top_k; kv_lora; bf16_last");
  check (without, "dtype=bf16; fp8_recipe; top_k; kv_lora; bf16_last");
}

/* The first line, and the steps of a batch that grew, tell nothing of the job's step. */
static void
a_log_is_job_and_measurement (void)
{
  LsImport import;
  static const char text[] = DUMP STEP ("9000.0", "64") STEP ("500.0", "32") STEP ("1100.0", "64")
      STEP ("1000.0", "64") STEP ("1010.0", "64") STEP ("1020.0", "64") MEMORY;
  if (!read_text (text, &import))
    return;
  static const char *const expected[] = { "layers=24",
                                          "tp=2",
                                          "gpus=16",
                                          "sp=true",
                                          "vocab=50257",
                                          "dtype=bf16",
                                          "recompute=none",
                                          "global_batch=64",
                                          "?a_name_that_is_so_long" };
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    check_one (&import, expected[i], "a log");
  LS_CHECK_NEAR (import.measured.step_s, 1.015, 1e-12);
  LS_CHECK_INT (import.measured.n_lines, ==, 6);
  LS_CHECK_NEAR (import.measured.allocated_bytes, 2048.0 * 1048576, 1e-12);
  LS_CHECK_NEAR (import.measured.reserved_bytes, 4096.0 * 1048576, 1e-12);
  ls_import_clear (&import);
}

static void
a_log_of_another_batch_is_refused (void)
{
  LsImport import;
  if (!read_text (DUMP STEP ("1.0", "32") STEP ("1.0", "32"), &import))
    return;
  check_one (&import, "!global batch of 32", "a log");
  ls_import_clear (&import);
}

#define HUGE_MODEL                                                                                           \
  "  tensor_model_parallel_size: 2147483648\n  pipeline_model_parallel_size: 2147483648\n"                   \
  "  context_parallel_size: 4\n"
#define TITAN "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"

/* Degrees and batches that no machine has, whose product no number holds; what is given behind the name; what
 * a line says then, as of check_one(): they are no crash. */
static const struct {
  const char *name, *given, *text, *expected;
} files[] = {
  { "a.json", "gpus=1",
    "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 32, "
    "\"gradient_accumulation_steps\": 576460752303423488}",
    "!train_batch_size 64 is no multiple of" },
  { "b.json", "gpus=32", "{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 576460752303423488}",
    "micro_batch" },
  { "c.yaml", "layers=8",
    "trainer: {devices: 8}\nmodel:\n  num_layers: 8\n  hidden_size: 64\n  num_attention_heads: 4\n"
    "  optim: {name: distributed_fused_adam}\n" HUGE_MODEL,
    "!tensor_model_parallel_size" },
  { "d.toml", "gpus=8",
    TITAN "tensor_parallel_degree = 1048576\npipeline_parallel_degree = 1048576\n"
          "context_parallel_degree = 1048576\ndata_parallel_replicate_degree = 16\n",
    "!8 GPUs are not tp 1048576" },
  { "f.toml", "gpus=8,global_batch=8",
    TITAN "pipeline_parallel_degree = 2\nnum_pp_microbatches = 2147483648\n[training]\n"
          "num_tokens_per_microbatch_per_dp_rank = 2147483648\nseq_len = 1\n",
    "!a batch of 8 is no multiple of" },
  { "g.yml", "gpus=8",
    "base_config: base.yml\nbase_emb_dim: 64\nper_device_batch_size: 1\nici_data_parallelism: 2\n"
    "ici_fsdp_parallelism: -1\nici_tensor_parallelism: 65536\nici_tensor_transpose_parallelism: 65536\n"
    "ici_tensor_sequence_parallelism: 65536\nici_context_parallelism: 65536\n",
    "!is no value for tp" },
  { "h.sh", "seq=2048",
    "export DGXNNODES=2\nexport DGXNGPU=8\nexport MINIBS=4\nexport MODEL_SIZE=405b\n"
    "export TENSOR_MODEL_PARALLEL=4194304\nexport PIPELINE_MODEL_PARALLEL=2097152\n"
    "export CONTEXT_PARALLEL=2097152\nexport MICRO_BATCH_SIZE=1\n",
    "!is no value for tp" },
  { "j.sh", "gpus=2",
    "#SBATCH --nodes=2\ntorchrun --nproc_per_node=1 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --seq-length 2048 --tensor-model-parallel-size 8 --micro-batch-size 1 "
    "--global-batch-size 128\n",
    "!2 GPUs do not hold tp 8" },
};

static void
no_product_is_zero (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-huge-XXXXXX", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *path = g_build_filename (folder, files[i].name, NULL),
                    *asked = g_strconcat (path, ":", files[i].given, NULL);
    const char *const paths[] = { asked, NULL };
    LsImport import;
    LS_CHECK (g_file_set_contents (path, files[i].text, -1, NULL));
    bool ok = ls_import_load (paths, &import, diags);
    g_autofree char *said = ls_diag_list_format (diags);
    ls_check_impl (ok, __FILE__, __LINE__, "%s: %s", files[i].name, said);
    if (ok)
      check_one (&import, files[i].expected, files[i].name);
    if (ok)
      ls_import_clear (&import);
    remove (path);
  }
  remove (folder);
}

LS_TEST_SUITE (LS_TEST (values_are_those_of_our_keys), LS_TEST (a_vocabulary_is_padded_as_a_file_says),
               LS_TEST (values_of_another_sort_are_told), LS_TEST (nothing_that_matters_is_ignored),
               LS_TEST (copies_of_sharded_weights_are_heeded), LS_TEST (chunks_follow_from_layers_and_stages),
               LS_TEST (what_a_script_leaves_open_is_no_default), LS_TEST (mixers_are_read),
               LS_TEST (lists_of_options_are_read_whole), LS_TEST (names_of_older_releases_are_known),
               LS_TEST (releases_are_a_range), LS_TEST (ranks_are_those_of_the_launcher),
               LS_TEST (what_is_not_known_is_told), LS_TEST (tests_of_megatron_are_read),
               LS_TEST (contradictions_are_told), LS_TEST (what_a_dump_has_is_heeded_where_it_is_on),
               LS_TEST (a_log_is_job_and_measurement), LS_TEST (a_log_of_another_batch_is_refused),
               LS_TEST (no_product_is_zero))
