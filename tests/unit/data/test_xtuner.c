/* Pins what configurations of XTuner mean. */
#include "ls_test.h"

#include "import_check.h"

#define FRONT                                                                                                \
  "import torch\nfrom xtuner.model import SupervisedFinetune\nmax_length = 2048\n"                           \
  "pack_to_max_length = True\nuse_varlen_attn = False\nsequence_parallel_size = 1\n"                         \
  "accumulative_counts = 8\naccumulative_counts *= sequence_parallel_size\nmy_data = \"here\"\n"             \
  "if use_varlen_attn:\n    x = 3\nlora = None\n"
#define LLM                                                                                                  \
  "llm = dict(type=AutoModelForCausalLM.from_pretrained, trust_remote_code=True,\n"                          \
  "    pretrained_model_name_or_path=\"Qwen/Qwen2.5-7B\")\n"
#define MODEL "model = dict(type=SupervisedFinetune, use_varlen_attn=use_varlen_attn, llm=llm, lora=lora)\n"
#define REST                                                                                                 \
  "train_dataloader = dict(batch_size=2, num_workers=1, dataset=dict(a_key=1))\n"                            \
  "optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=AdamW, lr=2e-4),\n"                        \
  "    clip_grad=dict(max_norm=1, error_if_nonfinite=False),\n"                                              \
  "    accumulative_counts=accumulative_counts, loss_scale=\"dynamic\", dtype=\"float16\")\n"
#define FULL FRONT LLM MODEL REST

/* As a Trainer of Hugging Face has it, checkpointed; on how many GPUs, and by whom, a command says. */
static void
configurations_are_read (void)
{
  check_read ("XTuner", FULL,
              "layers=28; seq=2048; gpus; micro_batch=2; global_batch; recompute=full; dtype=fp16; "
              "attention_kernel=fa2; optimizer=adam; software=hf-trainer-2024; lengths; ?how many GPUs; "
              "?whether DeepSpeed shards; ~weights bf16; -optim_wrapper.optimizer.lr");
  check_read (
      "XTuner",
      FRONT "llm = dict(attn_implementation=\"sdpa\", torch_dtype=torch.float16, "
            "pretrained_model_name_or_path=\"Qwen/Qwen2.5-7B\")\n" REST
            "model = dict(type=SupervisedFinetune, use_activation_checkpointing=False, llm=llm)\n"
            "pack_to_max_length = False\nuse_varlen_attn = True\n"
            "optim_wrapper = dict(type=OptimWrapper, optimizer=dict(type=PagedAdamW8bit), a_new_key=3)\n",
      "recompute=none; dtype=fp16; optimizer=adamw-8bit; ?lengths; grad_norm=false; attention_kernel; "
      "?optim_wrapper.a_new_key; ~its pages stay");
}

static void
adapters_are_read (void)
{
  check_read (
      "XTuner",
      FRONT "quantized = dict(type=BitsAndBytesConfig, load_in_4bit=True, load_in_8bit=False)\n"
            "llm = dict(pretrained_model_name_or_path=\"Qwen/Qwen2.5-7B\", quantization_config=quantized)\n"
            "lora = dict(type=LoraConfig, r=64, lora_alpha=16, lora_dropout=0.1, bias=\"none\")\n" MODEL REST,
      "lora_rank=64; lora_modules; qlora=true; master=weights; ?norms and head are made fp32; "
      "?lora_dropout");
  check_read ("XTuner",
              FRONT "llm = dict(pretrained_model_name_or_path=\"Qwen/Qwen2.5-7B\", "
                    "quantization_config=dict(load_in_8bit=True))\nlora = dict(type=LoraConfig, "
                    "target_modules=[\"q_proj\", \"v_proj\"], modules_to_save=[\"lm_head\"])\n" MODEL REST,
              "lora_rank=8; lora_modules=q,v; qlora; ?frozen weights are made fp32; ?load_in_8bit; "
              "?modules_to_save");
}

/* What is spread and not known is named, with the file and the line: settings may hide in it. */
static void
spreads_of_what_is_not_known_are_named (void)
{
  check_read (
      "XTuner", FULL "visualizer = dict(**common)\nloops = dict(a=1, *hooks)\n",
      "layers=28; ?job.yaml does besides is not followed: job.yaml:20 \"**common)\", job.yaml:21 \"*hooks)\"");
  LsImport import;
  if (!read_text (FULL "common = dict(b=2)\nextra = [1]\nx = dict(**common, c=3)\ny = f(*extra)\n", &import))
    return;
  LS_CHECK (!has_line (import.unknown, "besides"));
  ls_import_clear (&import);
}

#define WRITTEN "cat > mine.py <<END\n" FULL "END\n"

/* The GPUs, DeepSpeed by a name, and changes of what the file says. */
static void
commands_are_read (void)
{
  check_read (
      "XTuner", WRITTEN "NPROC_PER_NODE=8 xtuner train mine --deepspeed deepspeed_zero2\n",
      "gpus=8; dp_kind=deepspeed; zero=2; dp_overlap=true; dtype=bf16; micro_batch=2; global_batch=128; "
      "grad_norm=true; software=deepspeed; ~dtype bf16");
  check_read ("XTuner",
              WRITTEN
              "NPROC_PER_NODE=8 xtuner train --deepspeed deepspeed_zero3_offload ./mine.py --cfg-options "
              "train_dataloader.batch_size=4 sequence_parallel_size=2\n",
              "zero=3; offload=parameters; cp=2; cp_kind=ulysses; micro_batch=4; global_batch=128");
  check_read ("XTuner",
              "cat > mine.py <<END\n" FULL "optim_wrapper = dict(accumulative_counts=2)\nEND\n"
              "NPROC_PER_NODE=8 xtuner train mine --deepspeed deepspeed_zero1\n",
              "zero=1; grad_norm=true; global_batch=32");
  check_read ("XTuner", WRITTEN "xtuner train mine.py\n", "gpus=1; dp_kind=none; global_batch=16; ~1 GPU");
  check_read ("XTuner", WRITTEN "xtuner train mine.py --cfg-options sequence_parallel_size=2\n",
              "!sequence_parallel_size without --deepspeed");
  check_read (NULL, "xtuner train not_there --deepspeed deepspeed_zero1\n",
              "whose configuration not_there.py is not");
}

static void
other_tasks_are_refused (void)
{
  check_read (NULL, FRONT LLM "model = dict(type=DPO, llm=llm)\n" REST, "model.type DPO: another task");
  check_read (NULL, FULL "framework = \"huggingface\"\n", "framework huggingface");
}

LS_TEST_SUITE (LS_TEST (configurations_are_read), LS_TEST (adapters_are_read), LS_TEST (commands_are_read),
               LS_TEST (other_tasks_are_refused), LS_TEST (spreads_of_what_is_not_known_are_named))
