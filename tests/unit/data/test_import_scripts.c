/* Pins what files of others are that say less than they seem to: scripts that start a command through another
 * one, jobs that train no decoder on the next token, a tokenizer that is not what its class is called. */
#include "ls_test.h"

#include "import_check.h"

#define TRAINER                                                                                              \
  "--model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 2 --max_seq_length 512 --bf16 "      \
  "--output_dir out "

/* What stands in front of "--" starts the command: its own script is not the job's, nor is it python that is
 * started by itself. */
static void
a_command_behind_another_is_read (void)
{
  check ("python submit.py --num_nodes 8 --gpus 8 -- accelerate launch --num_processes 8 sft.py " TRAINER,
         "gpus=64; micro_batch=2; ?how submit.py starts this command, and on how many nodes");
  check ("uv run submit.py -- torchrun --nproc_per_node 4 --nnodes 2 sft.py " TRAINER, "gpus=8; dp_kind=ddp");
  check ("python sft.py --note -- " TRAINER, "gpus=1; micro_batch=2");
}

static void
tasks_of_a_trainer_are_told_apart (void)
{
  check_read (NULL, "accelerate launch --num_processes 8 scripts/dpo.py " TRAINER, "dpo.py: another task");
  check_read (NULL, "torchrun --nproc_per_node 8 train/internvl_chat_mpo.py " TRAINER,
              "mpo.py: another task");
  check_read (NULL, "python submit.py -- accelerate launch dpo_tune.py " TRAINER,
              "dpo_tune.py: another task");
  check_read (NULL, "torchrun train_reward_model.py " TRAINER, "train_reward_model.py: another task");
  check_read (NULL, "accelerate launch rl.py --num_generations 8 " TRAINER,
              "--num_generations: another task");
  check_read (NULL, "accelerate launch train.py --vllm_server_host $H --bf16 " TRAINER,
              "--vllm_server_host: another task");
  check_read (NULL, "accelerate launch x.py --generation_only --bf16 --model_name_or_path a",
              "--generation_only: another task");
  check_read (NULL, "accelerate launch generate.py --model_name_or_path a --max_length 8 --output_dir b",
              "generate.py: another task");
  check_read ("Hugging Face Trainer", "torchrun train_and_evaluate.py " TRAINER, "micro_batch=2");
  check_read ("Hugging Face Trainer", "torchrun adopt.py " TRAINER, "micro_batch=2");
}

/* Programs around Megatron-LM, whose options stand beside its own. */
static void
programs_around_megatron_are_told_apart (void)
{
#define GPT "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 64 --micro-batch-size 1 "
#define SLIME                                                                                                \
  "ray job submit --address=a -- python3 train_async.py --actor-num-nodes 2 --rollout-batch-size 8 " GPT
  check (SLIME "--loss-type sft_loss --actor-num-gpus-per-node 4 --tensor-model-parallel-size 2",
         "gpus=8; tp=2");
  check (SLIME "--loss-type sft_loss --colocate", "gpus=16");
  check_read (NULL, SLIME "--actor-num-gpus-per-node 4", "--rollout-batch-size: reinforcement learning");
  check (
      "#!/bin/bash\nprimus-cli direct -- train pretrain --config a.yaml --micro_batch_size 2 --num_layers 78 "
      "--pipeline_model_parallel_size 2 --mtp_num_layers None",
      "layers=78; pp=2; predict_layers; mlp; norm; dtype; ?the rest of the job; ?--config a.yaml");
  check_read (NULL, "torchrun --nproc_per_node 8 train.py --sharding_strategy=full " GPT,
              "--sharding-strategy: an option of another program than Megatron-LM");
  check_read (NULL, "deepspeed --num_gpus 4 finetune.py --batch_size 4 --dataset_percentage 10 " GPT,
              "--dataset-percentage: an option of another program");
  check ("torchrun --nproc_per_node 8 pretrain_gpt.py --num-experts 8 --moe-ffn-hidden-size 128 "
         "--first-k-dense-replace 2 --n-shared-experts 3 " GPT,
         "dense_layers=2; shared_ffn=384; expert_ffn=128");
  check ("torchrun --nproc_per_node 8 pretrain_gpt.py --swap-optimizer --noop-layers 2,3 " GPT,
         "layers=4; ?--noop-layers: layers that do nothing; ?--swap-optimizer: states");
#define MOE "torchrun --nproc_per_node 8 pretrain_gpt.py --deepspeed --num-experts 8 " GPT
  check (MOE, "expert_capacity=1; ~expert_capacity 1; expert_padding=capacity; top_k=1");
  check (MOE "--moe-train-capacity-factor 1.5", "expert_capacity=1.5");
  check (MOE "--moe-train-capacity-factor 1.5 --disable-moe-token-dropping",
         "expert_capacity; expert_padding");
  check ("torchrun --nproc_per_node 8 pretrain_gpt.py --num-experts 8 --moe-expert-capacity-factor 2 "
         "--moe-pad-expert-input-to-capacity " GPT,
         "expert_capacity=2; expert_padding=capacity");
  LsImport import;
  if (read_text ("#!/bin/bash\nsource ~/env/bin/activate\nsource ./cluster.sh\n"
                 "torchrun --nproc_per_node 8 pretrain_gpt.py " GPT,
                 &import)) {
    LS_CHECK (has_line (import.unknown, "what cluster.sh sets") && !has_line (import.unknown, "activate"));
    ls_import_clear (&import);
  }
}

/* Of the commands of a script one that converts, evaluates or learns from preferences is not its job, however
 * many options it has. */
static void
a_command_that_trains_goes_before_others (void)
{
  check (
      "#!/bin/bash\nif [ \"$1\" = convert ]; then\n  torchrun tools/hf2megads_weight_converter.py --bf16 " GPT
      "\nelse\n  torchrun --nproc_per_node 4 finetune.py " GPT "\nfi\n",
      "layers=4; gpus=4; ~of the commands 1 is passed over; ?whether this command is run");
  check ("#!/bin/bash\naccelerate launch --num_processes 8 sft.py " TRAINER
         "\naccelerate launch --num_processes 4 dpo.py --bf16 --gradient_accumulation_steps 4 " TRAINER
         "\npython merge_lora.py --model_name_or_path a --output_dir b\n",
         "gpus=8; micro_batch=2; ~of the commands 1 is passed over");
  check_read (NULL, "#!/bin/bash\ntorchrun tools/convert.py " GPT, "convert.py converts a checkpoint");
}

/* Why a script is no job that is read: by what it starts. */
static void
a_script_that_is_not_read_says_what_it_starts (void)
{
  check_read (NULL, "#!/bin/bash\npython3 -m verl.trainer.main_ppo trainer.nnodes=2\n",
              "verl.trainer.main_ppo, which learns from rewards or preferences: another task");
  check_read (NULL, "#!/bin/bash\ncolossalai run --nproc_per_node 8 bench.py -b 8 --tp 4\n",
              "nor another program that is read; it starts bench.py");
  check_read (NULL, "#!/bin/bash\nsbatch --nodes 4 scripts/train.sbatch tune\n", "train.sbatch");
  check ("#!/bin/bash\nARGS=(" GPT ")\nmake train\n",
         "layers=4; ?which command is run: none here has these options");
  check ("#!/bin/bash\nM=\"${1:-a}\"\nif [ $U -gt 2 ]; then TP=2; fi\ntorchrun pretrain_gpt.py "
         "--tensor-model-parallel-size $TP " GPT,
         "~taken as not set outside of the script: $1; ?its value is $TP, which is not said here");
}

/* floor (8 h / 3) = 1365; times 1.3, 1774: up to whole multiples. */
static void
flagscale_rounds_widths_as_llama_does (void)
{
  check (GPT "--swiglu --multiple-of 256 --apply-layernorm-rms",
         "ffn=1536; mlp=swiglu; norm=rmsnorm; software=megatron-lm-2023-08; ~in multiples of 256");
  check (GPT "--t5-swiglu", "mlp=swiglu; ffn=2048");
  check (GPT "--glu-activation geglu", "mlp=geglu; ffn=2048");
  check (GPT "--swiglu --multiple-of 256 --hidden-dim-multiplier 1.3",
         "ffn=1792; mlp=swiglu; ~in multiples of 256");
}

/* validate_args of Megatron-LM makes it selective, and refuses full recomputation without a method. */
static void
recomputation_is_what_megatron_makes_of_it (void)
{
  check (GPT "--recompute-granularity selective --recompute-modules moe", "recompute=none; recompute_parts");
  check (GPT "--recompute-granularity full --recompute-activations",
         "recompute=selective; !full beside --recompute-activations");
  check (GPT "--recompute-granularity full", "recompute=full; recompute_method=uniform; ~refuses full");
#undef GPT
}

/* Short names of options, what they mean together, and what no configuration says. */
static void
recipes_of_megatron_bridge_are_changed_by_options (void)
{
#define PERF                                                                                                 \
  "#!/bin/bash\nuv run python scripts/performance/setup_experiment.py -mr llama3_70b -ng 64 -g h100 "
  check (
      PERF "-c fp8_cs -tp 4 -pp 4 -vp 5 -mb 1 -gb 128 -gn 8 -a b",
      "gpus=64; dtype=fp8; fp8_recipe=current; fp8_params=true; grad_dtype=bf16; bf16_first; tp=4; sp=true; pp=4; vpp=5; micro_batch=1; global_batch=128; "
      "layers=80; mlp=swiglu; recompute; -gn; -a; ?what this file leaves");
  check (PERF "--num_layers 40 --recompute_num_layers 2 --use_megatron_fsdp true",
         "layers=40; hidden=8192; mlp=swiglu; recompute=full; recompute_method=block; recompute_layers=2; "
         "dp_kind=fsdp2; dtype=bf16; ~dtype bf16: the default");
  check (PERF "--recompute_modules mlp,layernorm --cuda_graph_impl local --use_tokendrop true",
         "recompute=selective; recompute_parts=norm,mlp; cuda_graphs=layer; ?--use_tokendrop true");
  check (PERF "--cuda_graph_impl local --cuda_graph_scope full_iteration", "cuda_graphs=step");
  check (PERF "--cuda_graph_impl transformer_engine --cuda_graph_scope attn,moe_router",
         "cuda_graphs=layer; ?--cuda-graph-scope attn,moe_router: a graph of all of a layer");
  check (PERF "-mr qwen3_30b_a3b --num_moe_experts 64", "experts=64; layers=48");
  check (PERF "--task peft -tp 1", "sp; lora_rank=16; ~adapters: those of the recipe");
  check ("#!/bin/bash\ntorchrun --nproc_per_node 8 run_recipe.py --recipe llama3_70b_pretrain_config "
         "model.num_layers=8 model.tensor_model_parallel_size=2",
         "gpus=8; layers=8; hidden=8192; mlp=swiglu; tp=2; sp; dtype");
#define RECIPE "#!/bin/bash\ntorchrun --nproc_per_node 8 run_recipe.py --recipe llama3_8b_pretrain_config "
  check (RECIPE "train.micro_batch_size=1 mixed_precision=bf16_with_fp8_current_scaling_mixed",
         "dtype=fp8; fp8_recipe=current; grad_dtype=fp32; fp8_params=true; bf16_first=1; bf16_last=1");
  check (RECIPE "mixed_precision=bf16_with_mxfp8_mixed", "fp8_recipe=mxfp8; fp8_params=true; bf16_first");
  check (RECIPE "mixed_precision=bf16_with_fp8_subchannel_scaling_mixed", "fp8_recipe=blockwise; fp8_params");
  check (RECIPE "ddp.use_megatron_fsdp=True ddp.overlap_grad_reduce=false peft.dim=8",
         "dp_kind=fsdp2; zero=3; ~zero 3; ?ddp.overlap_grad_reduce: not followed; ?peft.dim: not followed");
  check (RECIPE "$(echo \"$CHANGES\" | tr '\\n' ' ') model.tensor_model_parallel_size=2",
         "tp=2; layers=32; ?the script does not say");
#undef RECIPE
  check (
      "worker=$(cat <<- EOM\n  cd /opt ;\n  numactl --membind=\\$((LOCAL_RANK/4)) nsys profile -o \"x-\\$RANK\" \\\n"
      "  nice -10 \\\n  python scripts/performance/run_script.py --model_recipe_name llama3_70b --num_gpus 32 "
      "--compute_dtype fp8_cs --tensor_model_parallel_size 4 --expert_tensor_parallel_size 1 --gpu h100\nEOM\n)\necho \"$worker\" > w.sh\n"
      "torchrun --nproc-per-node=8 --nnodes=4 --no-python bash w.sh\n",
      "gpus=32; layers=80; tp=4; etp; sp=true; dtype=fp8; fp8_recipe=current; ?what this file leaves");
}

#define LLAMA                                                                                                \
  "torchrun --nproc_per_node 4 train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 --output_dir o "

/* Words of --fsdp, what PEFT's examples call adapters, a kernel of attention; what is left out of each. */
static void
words_of_a_trainer_are_heeded (void)
{
  check (LLAMA "--fsdp 'full_shard auto_wrap offload'", "zero=3; ?fsdp offload: taken to be off");
  check (LLAMA "--max_seq_length 512", "seq=512; ?max_seq_length: sequences are taken to be that long");
  check (LLAMA "--max_seq_length 512 --packing", "seq=512; ?--packing: attention may be inside documents");
  check (LLAMA "--fsdp 'full_shrad auto_wrap'", "zero=3; ?fsdp full_shrad: no word of it");
  check (LLAMA "--use_peft_lora True --use_4bit_quantization True",
         "lora_rank=64; lora_modules; qlora=true; ~lora_rank 64");
  check (LLAMA "--use_peft --lora_target_parameters a b", "lora_rank=16; ?lora_target_parameters");
  check (LLAMA "--attn_implementation flash_attention_3", "attention=flash; attention_kernel=fa3");
  check (LLAMA "--attn_implementation flash_attention_2", "attention=flash; attention_kernel=fa2");
  check (LLAMA "--attn_implementation kernels-community/flash-attn", "attention=flash; attention_kernel=fa2");
  check (LLAMA "--attn_implementation kernels-community/vllm-flash-attn3@v1",
         "attention=flash; attention_kernel=fa3");
  check (
      LLAMA "--attn_implementation flash_attention_4",
      "attention=flash; attention_kernel; window_mask=false; ?attn_implementation flash_attention_4: attention");
  check (LLAMA "--attn_implementation kernels-community/vllm-flash-attn3",
         "attention=flash; attention_kernel=fa3");
  check (
      LLAMA "--attn_implementation flex_attention",
      "attention=flash; attention_kernel; ?attn_implementation flex_attention: attention takes the time of sdpa");
  check_read ("axolotl",
              "base_model: Qwen/Qwen2.5-1.5B\nmicro_batch_size: 1\nsequence_len: 512\nfsdp_version: 2\n"
              "fsdp_config: {offload_params: true}\n",
              "dp_kind=fsdp2; ?fsdp_config.offload_params: taken to be off");
#undef LLAMA
}

/* Stages with chunks share what the first and the last leave. */
static void
ends_of_a_pipeline_have_chunks (void)
{
#define CHUNKS                                                                                               \
  "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 64 --seq-length 8 --num-attention-heads 1 --bf16 " \
  "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
  check (CHUNKS "--decoder-first-pipeline-num-layers 2", "vpp=2; layers_per_chunk=1,15,1,15");
  check (CHUNKS "--decoder-last-pipeline-num-layers 14", "vpp=2; layers_per_chunk=9,7,9,7");
  check (CHUNKS "--decoder-first-pipeline-num-layers 13",
         "layers_per_chunk; !2 chunks of a stage do not share");
#undef CHUNKS
}

#define FACTORY "model_name_or_path: Qwen/Qwen2.5-1.5B\nfinetuning_type: lora\n"

static void
what_trains_nothing_is_refused (void)
{
  check_read (NULL, FACTORY "infer_backend: vllm\n", "infer_backend without do_train: another task");
  check_read (NULL, FACTORY "export_dir: out\n", "export_dir without do_train: another task");
  check_read (NULL, FACTORY "stage: sft\ndo_predict: true\ndo_train: false\n", "do_predict without do_train");
  check_read ("LLaMA-Factory", FACTORY "stage: sft\ndo_predict: true\ndo_train: true\n", "lora_rank=8");
  check_read ("LLaMA-Factory", FACTORY "stage: sft\ndo_predict: false\n", "lora_rank=8");
  check_read (NULL,
              "python -um examples.inference.gpt.dynamic --num-layers 2 --hidden-size 64 --seq-length 8 "
              "--num-attention-heads 1 --bf16",
              "examples.inference.gpt.dynamic generates text");
  check_read (NULL, "MODEL=\"--num-layers 2 --hidden-size 64 --seq-length 8 --grpo-group-size 2\"\n",
              "--grpo-group-size: reinforcement learning");
  check_read (NULL,
              "torchrun $CMD --num-layers 2 --hidden-size 64 --seq-length 8 --inference-dynamic-batching",
              "--inference-dynamic-batching: text is generated");
#define NEOX                                                                                                 \
  "pipe_parallel_size: 1\nmodel_parallel_size: 2\nnum_layers: 4\nhidden_size: 512\nnum_attention_heads: 8\n"
  check_read (NULL, NEOX "train_impl: dpo\n", "train_impl dpo: another task");
  check_read ("gpt-neox", NEOX "train_impl: normal\n", "tp=2");
  check_read ("gpt-neox", NEOX "use_qk_layernorm: true\n", "qk_norm=true");
  check_read ("gpt-neox", NEOX "use_qk_layernorm: false\n", "qk_norm");
#undef NEOX
}

#define AXOLOTL "base_model: Qwen/Qwen2.5-1.5B\nmicro_batch_size: 1\nsequence_len: 512\n"

/* axolotl's plugin is on without a key of its own. */
static void
a_plugin_may_change_the_loss (void)
{
  static const char plugin[] = "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n";
  g_autofree char *alone = g_strconcat (AXOLOTL, plugin, NULL),
                  *off = g_strconcat (AXOLOTL, plugin, "cut_cross_entropy: false\n", NULL);
  check_read ("axolotl", alone, "?plugins CutCrossEntropyPlugin: logits are taken to be whole");
  LsImport import;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_import_read (off, strlen (off), "job.yaml", &import, diags)))
    return;
  LS_CHECK (!has_line (import.unknown, "CutCrossEntropyPlugin"));
  ls_import_clear (&import);
}

#define AUTOMODEL                                                                                            \
  "model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"                            \
  "  pretrained_model_name_or_path: Qwen/Qwen2.5-1.5B\n"                                                     \
  "step_scheduler: {global_batch_size: 8, local_batch_size: 1}\n"                                            \
  "optimizer:\n  _target_: transformer_engine.pytorch.optimizers.fused_adam.FusedAdam\n"

static void
formats_of_an_optimizer_are_told (void)
{
  static const char told[] = "?store_param_remainders: all taken as fp32";
  check_read ("NeMo AutoModel", AUTOMODEL "  exp_avg_dtype: torch.bfloat16\n", told);
  check_read ("NeMo AutoModel", AUTOMODEL "  store_param_remainders: true\n", told);
  LsImport import;
  static const char usual[] = AUTOMODEL "  exp_avg_dtype: torch.float32\n";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_import_read (usual, strlen (usual), "job.yaml", &import, diags)))
    return;
  LS_CHECK (!has_line (import.unknown, told + 1));
  ls_import_clear (&import);
}

#define GPT "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --tokenizer-type Llama2Tokenizer "

#define HUB                                                                                                  \
  "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --tokenizer-type HuggingFaceTokenizer "       \
  "--tokenizer-model "

/* Llama2Tokenizer reads any model of SentencePiece; one of a hub has the words of its model. */
static void
a_tokenizer_is_known_by_its_file (void)
{
  check (GPT, "vocab=32000");
  check (GPT "--tokenizer-model $TOKENIZER", "vocab=32000");
  check (GPT "--tokenizer-model /data/tokenizer.model", "vocab=32000");
  check (GPT "--tokenizer-model /data/Llama-2/sp.model",
         "vocab=32000; ~vocab 32000: the vocabulary of Llama 2");
  check (GPT "--tokenizer-model $DIR/v4_alpha_1.0.model", "vocab; ?how many words --tokenizer-model has");
  check (GPT "--tokenizer-model x/v4.model --vocab-extra-ids 8 --padded-vocab-size 99584", "vocab=99584");
  check (GPT "--tokenizer-model x/v4.model --vocab-size 99574", "vocab=99574");
  check (HUB "Qwen/Qwen2.5-7B-Instruct", "vocab=152064; ~whose tokenizer Qwen/Qwen2.5-7B-Instruct is");
  check (HUB "nobody/words", "vocab");
  check (HUB "Qwen/Qwen2.5-7B-Instruct --padded-vocab-size 99584", "vocab=99584");
}

static void
layers_with_experts_are_lists (void)
{
#define EXPERTS GPT "--num-experts 8 --moe-layer-freq "
  check (EXPERTS "'([0,1]*12)'", "moe_every=2; dense_layers");
  check (EXPERTS "'[0]*3+[0, 0, 1]*7'", "moe_every=3; dense_layers=3");
  check (EXPERTS "[0,2]*12", "moe_every; ?--moe-layer-freq [0,2]*12");
  check (EXPERTS "'([0]*1+[1]*23)*1'", "moe_every; ?--moe-layer-freq ([0]*1");
  check (EXPERTS "[1,0,0,1]*6", "moe_every; ?--moe-layer-freq");
  check (EXPERTS "[0,1", "moe_every; ?--moe-layer-freq");
#undef EXPERTS
}

static void
gradients_that_are_added_apart_are_so (void)
{
#define APART GPT "--bf16 --no-gradient-accumulation-fusion "
  check (APART, "grad_apart=true; grad_fusion");
  check (APART "--grad-reduce-in-bf16", "grad_dtype=bf16; grad_fusion=false");
  check (APART "--use-torch-fsdp2", "dp_kind=fsdp2; grad_fusion");
  check (GPT "--bf16 --grad-reduce-in-bf16", "grad_dtype=bf16; grad_fusion");
#undef APART
#define BRIDGE                                                                                               \
  "train: {micro_batch_size: 1, global_batch_size: 8}\nmodel: {_target_: megatron.bridge.models.x.Y, "       \
  "num_layers: 4, hidden_size: 512, num_attention_heads: 8, seq_length: 64, "                                \
  "gradient_accumulation_fusion: %s}\noptimizer: {optimizer_cpu_offload: %s}\n"                              \
  "mixed_precision: {bf16: true, grad_reduce_in_fp32: false}\n"
  g_autofree char *on = g_strdup_printf (BRIDGE, "false", "true"),
                  *off = g_strdup_printf (BRIDGE, "true", "false");
  check_read ("Megatron-Bridge", on, "?optimizer_cpu_offload; grad_fusion=false");
  check_read ("Megatron-Bridge", off, "grad_fusion");
#undef BRIDGE
}

#define MAXTEXT "base_config: base.yml\nmodel_name: mixtral-8x7b\nhardware: gpu\nper_device_batch_size: 1\n"

/* Of a model that is known by its name too; sorted tokens, the default, have none. */
/* What is kept by name is no choice beside experts: the nearest is, and it is told. */
static void
products_of_experts_are_kept (void)
{
  check_read ("MaxText", MAXTEXT "remat_policy: minimal_with_context\n",
              "recompute=selective; recompute_parts=norm,activation; ?minimal_with_context: with experts");
  check_read ("MaxText", MAXTEXT "remat_policy: full\n", "recompute=full; recompute_parts");
  check_read ("MaxText", MAXTEXT "remat_policy: custom\ndecoder_layer_input: offload\nmlpwo: remat\n",
              "recompute=full; offload_activations=true; ~recompute full");
  check_read ("MaxText", MAXTEXT "remat_policy: custom\nout_proj: device\nmlpwo: offload\n",
              "recompute_parts=norm,activation; offload_activations; ?some of what stays goes to the host; "
              "?custom: with experts");
}

static void
a_capacity_of_experts_is_heeded (void)
{
  check_read (
      "MaxText", MAXTEXT "sparse_matmul: false\ncapacity_factor: 1.25\n",
      "experts=8; expert_capacity=1.25; expert_padding=capacity; ?capacity_factor: there products with masks");
  check_read ("MaxText", MAXTEXT "megablox: false\ncapacity_factor: 2\n",
              "expert_capacity=2; expert_padding=capacity");
  check_read ("MaxText", MAXTEXT "megablox: false\nsparse_matmul: true\ncapacity_factor: 2\n",
              "expert_capacity; ~capacity_factor: it has no effect with sparse_matmul");
  check_read ("MaxText", MAXTEXT "capacity_factor: 2\n",
              "expert_capacity; ~capacity_factor: it has no effect");
  check_read ("MaxText", MAXTEXT "sparse_matmul: false\n",
              "expert_capacity; ?sparse_matmul is off, and capacity_factor not given");
  check_read ("MaxText", MAXTEXT, "expert_capacity; experts=8");
}

/* logical_axis_rules of MaxText shard weights over expert too, but for those of experts. */
static void
copies_of_sharded_experts_are_told (void)
{
  check_read ("MaxText",
              MAXTEXT "dcn_data_parallelism: 2\nici_fsdp_parallelism: 4\nici_expert_parallelism: 8\n",
              "gpus=64; ep=8; zero=3; ?copies of 32 shards, of experts over fsdp");
  check_read ("MaxText",
              MAXTEXT "dcn_data_parallelism: -1\nici_fsdp_parallelism: 1\nici_expert_parallelism: 8\n",
              "ep=8; zero=3; ?copies of 8 shards");
  check_read ("MaxText",
              MAXTEXT "dcn_data_parallelism: 1\nici_fsdp_parallelism: 1\nici_expert_parallelism: 8\n",
              "gpus=8; ep=8; zero=3");
  check_read ("MaxText", MAXTEXT "dcn_data_parallelism: 2\nici_fsdp_parallelism: 4\n",
              "gpus=8; ep=1; zero=3@4");
}

/* What the software has by default is that of triton. */
static void
attention_of_llm_foundry_has_its_copies (void)
{
#define MPT(model, impl)                                                                                     \
  "max_seq_len: 64\ntrain_loader: {name: text}\nglobal_train_batch_size: 8\n"                                \
  "device_train_microbatch_size: 1\nmodel: {name: " model ", attn_config: {attn_impl: " impl "}}\n"
  check_read ("llm-foundry", MPT ("mpt_causal_lm", "flash"), "attention_kernel=fa2; qkv_layout=unpadded");
  check_read ("llm-foundry", MPT ("mpt_causal_lm", "triton"), "attention_kernel=triton; qkv_layout");
  check_read ("llm-foundry", MPT ("mpt_causal_lm", "torch"), "attention=unfused; qkv_layout=joint");
  check_read ("llm-foundry",
              "max_seq_len: 64\ntrain_loader: {name: text}\nmodel: {name: hf_causal_lm, "
              "pretrained_model_name_or_path: a/b, use_flash_attention_2: true}\n",
              "attention_kernel=fa2; qkv_layout");
#undef MPT
#define LLAMA                                                                                                \
  "max_seq_len: 64\ntrain_loader: {name: text}\nmodel: {name: hf_causal_lm, "                                \
  "pretrained_model_name_or_path: Qwen/Qwen2.5-1.5B, peft_config: {"
  check_read ("llm-foundry", LLAMA "peft_type: LORA, r: 64, target_modules: [q_proj, v_proj]}}\n",
              "lora_rank=64; lora_modules=q,v");
  check_read ("llm-foundry", LLAMA "peft_type: LORA, r: 8, target_modules: [\"*\"]}}\n", "lora_rank=8");
  check_read ("llm-foundry", LLAMA "peft_type: LORA, r: 8, target_modules: [\"*q_proj\", \"*.v_proj\"]}}\n",
              "lora_rank=8; lora_modules=q,v");
  check_read ("llm-foundry", LLAMA "peft_type: LORA, use_dora: true, target_modules: [Wqkv, out_proj]}}\n",
              "lora_rank=8; lora_modules=q,k,v,o; ?use_dora");
  check_read ("llm-foundry", LLAMA "peft_type: IA3}}\n", "lora_rank; ?peft_type IA3: all weights");
#undef LLAMA
}

/* As many lines as real ones have, each of which holds those before it. */
static void
long_lists_of_data_are_read (void)
{
  GString *text = g_string_new ("D=\"\"\n");
  for (int i = 0; i < 300; i++)
    g_string_append_printf (text, "D=\"${D} 855056046544 ${ROOT}/en_fineweb-rescored_score_%04d_document\"\n",
                            i);
  g_string_append (text, "torchrun --nproc_per_node 8 pretrain_gpt.py " GPT "--data-path $D\n");
  check (text->str, "gpus=8; layers=24");
  g_string_free (text, TRUE);
}

static void
axes_that_are_not_read_are_told (void)
{
  g_autofree char *many = g_strnfill (199, 'x'),
                  *long_text
      = g_strconcat ("torchrun sft.py " TRAINER "--odd ", many, "\303\244\303\244", NULL),
                  *cut = g_strconcat ("?--odd ", many, "...", NULL);
  check (long_text, cut);
  check ("accelerate launch --num_processes 8 --parallelism_config_sp_size 2 --parallelism_config_tp_size 2 "
         "sft.py " TRAINER,
         "tp=2; ?parallelism_config_sp_size 2");
  check_read ("nanotron",
              "parallelism: {dp: 4, pp: 2, tp: 2}\ndoremi: {domain_names: [a]}\nmodel:\n"
              "  model_config: {is_llama_config: true, hidden_size: 64, num_hidden_layers: 8, "
              "num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}\n",
              "tp=2; ?doremi.domain_names");
}

/* nanotron's processes are as many as its degrees make. */
static void
a_script_of_nanotron_names_its_file (void)
{
#define STARTS(n, file)                                                                                      \
  "cat > c.yaml <<EOF\nmodel:\n  model_config: {hidden_size: 64, num_hidden_layers: 8, "                     \
  "num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}\n"                                      \
  "tokens: {sequence_length: 128, micro_batch_size: 2, batch_accumulation_per_replica: 3}\n"                 \
  "parallelism: {dp: 2, pp: 2, tp: 2}\nEOF\ntorchrun --nproc_per_node " n                                    \
  " run_train.py --config-file " file
  check_read ("nanotron", STARTS ("8", "c.yaml"), "layers=8; gpus=8; tp=2; global_batch=12");
  check_read ("nanotron", STARTS ("4", "c.yaml"), "!starts 4 processes, degrees in the file make 8");
  check_read (NULL, STARTS ("8", "other.yaml"), "whose configuration other.yaml is not here");
  check_read (NULL, STARTS ("8", ""), "a script of nanotron, whose configuration is not here");
  check_read (NULL, "tune run full --config", "a script of torchtune, whose configuration is not here");
  check_read (NULL, "cat > d.yaml <<EOF\na: 1\nEOF\ntorchrun train.py --config-file d.yaml",
              "it is no configuration of nanotron");
#undef STARTS
}

LS_TEST_SUITE (LS_TEST (a_plugin_may_change_the_loss), LS_TEST (formats_of_an_optimizer_are_told),
               LS_TEST (a_command_behind_another_is_read), LS_TEST (tasks_of_a_trainer_are_told_apart),
               LS_TEST (a_command_that_trains_goes_before_others),
               LS_TEST (a_script_that_is_not_read_says_what_it_starts),
               LS_TEST (programs_around_megatron_are_told_apart),
               LS_TEST (recipes_of_megatron_bridge_are_changed_by_options),
               LS_TEST (what_trains_nothing_is_refused), LS_TEST (a_tokenizer_is_known_by_its_file),
               LS_TEST (layers_with_experts_are_lists), LS_TEST (gradients_that_are_added_apart_are_so),
               LS_TEST (products_of_experts_are_kept), LS_TEST (a_capacity_of_experts_is_heeded),
               LS_TEST (copies_of_sharded_experts_are_told),
               LS_TEST (attention_of_llm_foundry_has_its_copies), LS_TEST (long_lists_of_data_are_read),
               LS_TEST (axes_that_are_not_read_are_told), LS_TEST (words_of_a_trainer_are_heeded),
               LS_TEST (ends_of_a_pipeline_have_chunks), LS_TEST (flagscale_rounds_widths_as_llama_does),
               LS_TEST (recomputation_is_what_megatron_makes_of_it),
               LS_TEST (a_script_of_nanotron_names_its_file))
