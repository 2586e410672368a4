/* Pins what configurations and commands of XTuner v1 mean. */
#include "ls_test.h"

#include "import_check.h"

#define FRONT                                                                                                \
  "import os\nfrom xtuner.v1.config import AdamWConfig, FSDPConfig, LRConfig\n"                              \
  "from xtuner.v1.train import TrainerConfig\nDATA = os.environ[\"DATA\"]\n"
#define DENSE   FRONT "model_cfg = Qwen3Dense8BConfig()\n"
#define EXPERTS FRONT "model_cfg = Qwen3MoE30BA3Config(ep_size=4)\n"
#define DEFAULTS                                                                                                        \
  "optim = AdamWConfig(lr=6e-5, foreach=None)\nfsdp = FSDPConfig()\nloader = DataloaderConfig(pack_max_length=16384)\n" \
  "loss = CELossConfig()\n"
#define TRAINER(more)                                                                                        \
  "trainer = TrainerConfig(model_cfg=model_cfg, load_from=DATA, optim_cfg=optim, fsdp_cfg=fsdp,\n"           \
  "    dataloader_cfg=loader, dataset_cfg=[{\"a\": Data(n=1)}], lr_cfg=LRConfig(lr_type=\"cosine\"),\n"      \
  "    loss_cfg=loss, global_batch_size=16, total_epoch=1" more ")\n"

/* FSDP with fp32 shards, a sequence a micro-batch, all layers compiled and recomputed. */
static void
defaults_are_read (void)
{
  check_read (
      "XTuner v1", DENSE DEFAULTS TRAINER (),
      "layers=36; hidden=4096; head_dim=128; qk_norm=true; seq=16384; gpus; dp_kind=fsdp2; zero=3; cp=1; "
      "ep; micro_batch=1; global_batch=16; recompute=full; recompute_layers; dtype=bf16; "
      "grad_dtype=bf16; optimizer=adam; kernels; attention_kernel; lengths; "
      "software=xtuner-v1-2026; ?how many GPUs; ?lengths; ~not set in the environment: DATA; "
      "-optim_cfg.lr; -total_epoch");
  check_read ("XTuner v1",
              FRONT "model_cfg = m.Qwen3Dense4BConfig(tie_word_embeddings=False)\n" DEFAULTS
                    "loader = DataloaderConfig()\nfsdp = None\noptim = MuonConfig()\n" TRAINER (),
              "tied_embeddings=false; hidden=2560; seq=32768; zero=3; optimizer; ~seq 32768; ?Muon");
}

/* ep_size=model_cfg.ep_size is no open value. */
static void
own_degrees_are_known (void)
{
  LsImport import;
  if (!read_text (FRONT "model_cfg = Qwen3MoE30BA3Config()\n" DEFAULTS
                        "fsdp = FSDPConfig(ep_size=model_cfg.ep_size)\n" TRAINER (),
                  &import))
    return;
  LS_CHECK (!has_line (import.unknown, "ep_size"));
  LS_CHECK (!has_line (import.unknown, "load_from"));
  ls_import_clear (&import);
}

/* The last layer of a model with experts is never recomputed. */
static void
experts_are_read (void)
{
  check_read ("XTuner v1", EXPERTS DEFAULTS TRAINER (),
              "experts=128; ep=4; dispatcher; recompute=full; recompute_method=block; recompute_layers=47; "
              "?outside of experts are whole on each of 4");
  check_read (
      "XTuner v1",
      EXPERTS DEFAULTS "model_cfg.dispatcher = \"deepep\"\nmodel_cfg.mtp_config = MTPConfig(num_layers=2, "
                       "share_weights=True)\nfsdp.ep_size = model_cfg.ep_size\n" TRAINER (),
      "ep=4; dispatcher=deepep; predict_layers=2; predict_shared=true; recompute=full; recompute_layers");
  check_read ("XTuner v1",
              FRONT "model_cfg = Qwen3MoE30BA3Config()\n" DEFAULTS
                    "fsdp = FSDPConfig(ep_size=model_cfg.ep_size)\n" TRAINER (),
              "ep=1");
  check_read ("XTuner v1", EXPERTS DEFAULTS "fsdp.ep_size = 2\n" TRAINER (),
              "!ep_size 4 and fsdp_cfg.ep_size 2");
  check_read ("XTuner v1",
              EXPERTS DEFAULTS "fsdp.hsdp_sharding_size = 8\nmodel_cfg.dispatcher = \"agrs\"\n"
                               "model_cfg.expert_tp_size = 2\n" TRAINER (),
              "zero=3@8; etp=2; !hsdp_sharding_size with ep_size 4; ?dispatcher agrs: taken for all2all");
  check_read ("XTuner v1", DENSE DEFAULTS "fsdp.ep_size = 4\n" TRAINER (), "ep; ~has no experts");
}

static void
members_are_set (void)
{
  check_read (
      "XTuner v1",
      DENSE DEFAULTS
      "fsdp = FSDPConfig(recompute_ratio=0.5, reshard_after_forward=False, reduce_dtype=torch.float32,\n"
      "    param_dtype=\"torch.float16\", fp32_lm_head=True, cpu_offload=True, torch_compile=False)\n"
      "optim = AdamWConfig(foreach=False, swap_optimizer=True)\n"
      "loss = CELossConfig(mode=\"chunk\", chunk_size=2048)\n" TRAINER (", sp_size=8, new_key=3"),
      "zero=2; recompute_layers=18; dtype=fp16; grad_dtype=fp32; cp=8; cp_kind=ulysses; "
      "kernels=xtuner-v1-2026-chunk-each; ?fp32_lm_head; ?cpu_offload; ?swap_optimizer; "
      "?chunk_size 2048; ?new_key 3");
  check_read (
      "XTuner v1",
      DENSE DEFAULTS
      "fsdp.recompute_ratio = 0.0\nmodel_cfg.compile_cfg = False\nloss.mode = \"liger\"\n" TRAINER (
          ", intra_layer_micro_batch=2"),
      "recompute=none; micro_batch=2; kernels=xtuner-v1-2026-chunk; ?intra_layer_micro_batch: 2; ?liger");
  check_read ("XTuner v1",
              DENSE DEFAULTS "model_cfg.compile_cfg = {\"xtuner.v1.a.b\": {\"fullgraph\": True}}\n"
                             "loader.pack_level = \"none\"\nfsdp.tp_size = 2\n" TRAINER (),
              "kernels; ?compile_cfg; ?pack_level none; global_batch=32; "
              "?tp_size 2: XTuner cuts no weight");
  check_read ("XTuner v1", DENSE DEFAULTS "loader.pack_to_max_length = False\n" TRAINER (),
              "?pack_to_max_length off; !pack_to_max_length off with torch.compile");
  check_read ("XTuner v1", DENSE DEFAULTS TRAINER (", sp_size=int(x)"), "cp; gpus; ?sp_size: its value");
}

static void
fp8_is_read (void)
{
  check_read ("XTuner v1",
              EXPERTS DEFAULTS
              "model_cfg.float8_cfg = Float8Config(\n"
              "    scaling_granularity_gemm=ScalingGranularity.TILEWISE,\n"
              "    scaling_granularity_grouped_gemm=ScalingGranularity.TILEWISE)\n" TRAINER (),
              "dtype=fp8; fp8_recipe=deepseek; fp8_params=true; bf16_experts");
  check_read ("XTuner v1",
              EXPERTS DEFAULTS "model_cfg.float8_cfg = Float8Config(scaling_granularity_gemm="
                               "ScalingGranularity.TENSORWISE)\n" TRAINER (),
              "dtype=fp8; fp8_recipe=current; bf16_experts=true; fp8_params; ?experts in bf16");
  check_read ("XTuner v1",
              EXPERTS DEFAULTS "model_cfg.float8_cfg = Float8Config(scaling_granularity_grouped_gemm="
                               "ScalingGranularity.TILEWISE)\n" TRAINER (),
              "dtype=bf16; ?experts alone are in fp8");
}

/* By the class of its configuration, by a path of a hub, or in place; of a model that sees its decoder. */
static void
models_are_found (void)
{
  check_read (
      "XTuner v1",
      FRONT
      "model_cfg = Qwen3VLDense8BConfig(compile_cfg=False)\nmodel_cfg.text_config.num_hidden_layers = 4\n" DEFAULTS
          TRAINER (),
      "layers=4; hidden=4096; vocab=151936; kernels=xtuner-v1-2026; ?its decoder alone");
  check_read (
      "XTuner v1",
      FRONT
      "model_cfg = InternS1MiniConfig(text_config=Qwen3Dense8BConfig(hidden_size=1024, vocab_size=300))\n" DEFAULTS
          TRAINER (),
      "hidden=1024; head_dim=128; vocab=300; layers=36; ?model_cfg InternS1MiniConfig: its decoder alone");
  check_read ("XTuner v1",
              FRONT
              "model_cfg = get_model_config_from_hf(Path(\"/models/Qwen/Qwen3-14B/\"))\n" DEFAULTS TRAINER (),
              "hidden=5120; ~model Qwen/Qwen3-14B");
  check_read ("XTuner v1", FRONT "model_cfg = Qwen2Dense7BConfig(hidden_size=1792)\n" DEFAULTS TRAINER (),
              "hidden=1792; heads=28; head_dim=128");
  check_read ("XTuner v1", FRONT "model_cfg = Qwen2DenseConfig.from_hf(DATA)\n" DEFAULTS TRAINER (),
              "hidden; ?the model: no name");
  check_read (
      "XTuner v1",
      FRONT
      "model_cfg = get_model_config(\"gpt-oss-20b\")\nmodel_cfg.attention.sliding_window = 256\n"
      "model_cfg.attention.dropout = 0.1\nmodel_cfg.linear_attention.num_key_heads = 2\n" DEFAULTS TRAINER (),
      "layers=24; window=256; full_every=2; ?attention.dropout; ?linear_attention.num_key_heads");
  check_read ("XTuner v1", FRONT "model_cfg = MyConfig()\n" DEFAULTS TRAINER (),
              "hidden; ?model xtuner/MyConfig");
  check_read (
      "XTuner v1",
      FRONT
      "model_cfg = MoEConfig(vocab_size=1000, num_hidden_layers=4, hidden_size=512, intermediate_size=0,\n"
      "    attention=MLAConfig(num_attention_heads=8, head_dim=64, kv_lora_rank=128, q_lora_rank=None,\n"
      "        qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64),\n"
      "    n_routed_experts=16, n_shared_experts=2, num_experts_per_tok=2, moe_intermediate_size=256,\n"
      "    first_k_dense_replace=0, router=NoAuxRouterConfig(n_group=4, topk_group=2))\n" DEFAULTS TRAINER (),
      "mlp=swiglu; norm=rmsnorm; head_dim=96; kv_heads=8; kv_lora=128; q_lora; rope_dim=32; v_dim=64; "
      "shared_ffn=512; expert_groups=4; top_groups=2; dense_layers; qk_norm=false");
  check_read (
      "XTuner v1",
      "from xtuner.v1.model import Qwen3Dense8BConfig\nmodel = Qwen3Dense8BConfig(num_hidden_layers=3)\n",
      "layers=3; seq; ?the file sets a model alone");
}

#define WRITTEN "cat > mine.py <<'END'\n" DENSE DEFAULTS
#define START   "torchrun --nproc-per-node 8 --nnodes 2 "

/* The GPUs, and the environment, which the configuration asks too. */
static void
scripts_are_read (void)
{
  check_read (
      "XTuner v1",
      WRITTEN
      "loader.pack_max_length = int(os.environ.get(\"LENGTH\", \"1024\"))\n"
      "if os.environ.get(\"FP32\", \"0\") == \"1\":\n  fsdp.reduce_dtype = torch.float32\n" TRAINER () "END\nexport XTUNER_USE_FA3=1 LENGTH=8192\nXTUNER_ACTIVATION_OFFLOAD=1 FP32=1 "
                                                                                                       "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True XTUNER_DETERMINISTIC=true XTUNER_SM_MARGIN=8 " START
                                                                                                       "-m xtuner.v1.train.cli.sft --config ./mine.py\n",
      "gpus=16; global_batch=16; seq=8192; grad_dtype=fp32; attention_kernel=fa3; offload_activations=true; "
      "cuda_allocator=expandable; ?XTUNER_DETERMINISTIC; ?XTUNER_SM_MARGIN 8");
  check_read ("XTuner v1",
              WRITTEN TRAINER (
                  ", sp_size=4, intra_layer_micro_batch=3") "END\n" START
                                                            "xtuner/v1/train/cli/sft.py --config mine.py\n",
              "gpus=16; cp=4; !4 sequences of a copy are no multiple of intra_layer_micro_batch 3");
  check_read ("XTuner v1",
              WRITTEN "fsdp.tp_size = 3\n" TRAINER () "END\n" START
                                                      "xtuner/v1/train/cli/sft.py --config mine.py\n",
              "!16 GPUs are no multiple of sp_size 1 x tp_size 3");
  check_read ("XTuner v1",
              WRITTEN "def on(n):\n  return os.environ.get(n, \"1\").lower() in (\"1\", \"true\")\n"
                      "model_cfg.compile_cfg = on(\"COMPILE\")\nranks = os.environ[\"WORLD_SIZE\"]\n"
                      "trainer = TrainerConfig(model_cfg=model_cfg, dataloader_cfg=loader, loss_cfg=loss,\n"
                      "    global_batch_size=2 * int(ranks))\nEND\nCOMPILE=false\n" START
                      "xtuner/v1/train/cli/sft.py --config mine.py\n",
              "kernels=xtuner-v1-2026; global_batch=32; ~taken to be exported: COMPILE=false");
  check_read (
      "XTuner v1",
      "mkdir -p bases\ncat > base.py <<'END'\nfrom more import length\nfsdp = FSDPConfig(recompute_ratio=0)\n"
      "loader = DataloaderConfig(pack_max_length=length)\nEND\ncat > more.py <<'END'\n"
      "from xtuner.v1.a import b\nlength = 2 * 1024\nEND\ncat > mine.py <<'END'\n" DENSE
      "from bases.base import fsdp, loader as l\nfrom not_there import x\n"
      "trainer = TrainerConfig(model_cfg=model_cfg, fsdp_cfg=fsdp, dataloader_cfg=l)\nEND\n" START
      "xtuner/v1/train/cli/sft.py --config mine.py\n",
      "recompute=none; seq=2048");
  check_read (NULL, START "xtuner/v1/train/cli/sft.py --config not_there.py\n",
              "whose configuration not_there.py is not");
}

static void
arguments_are_read (void)
{
  check_read (
      "XTuner v1",
      START "xtuner/v1/train/cli/sft.py --load-from Qwen/Qwen3-8B --chat_template qwen3 --dataset d.jsonl\n",
      "hidden=4096; seq=4096; gpus=16; global_batch=16; kernels=xtuner-v1-2026-compile-chunk-each; "
      "optimizer=adam; ~global_batch 16; ---dataset");
  check_read (
      "XTuner v1",
      START "-m xtuner.v1.train.cli.sft --model-cfg qwen3-moe-30BA3 --chat-template qwen3 --dataset d "
            "--fsdp-config.no-torch-compile --fsdp-config.ep-size 8 --fsdp-config.recompute-ratio 0.25 "
            "--loss-config.mode eager --num-workers 4 --global-batch-size 32 --optim Muon --other 3\n",
      "experts=128; ep=8; recompute_layers=12; kernels=xtuner-v1-2026-each; seq=32768; global_batch=32; "
      "?--other 3; ?Muon");
  check_read ("XTuner v1",
              "cat > m.py <<END\nfrom xtuner.v1.model import Qwen3Dense8BConfig\n"
              "model = Qwen3Dense8BConfig(num_hidden_layers=3)\nEND\n" START
              "xtuner/v1/train/cli/sft.py --model-cfg m.py --dataset d\n",
              "layers=3; hidden=4096");
  check_read (NULL, START "xtuner/v1/train/cli/sft.py --model-cfg m.py --dataset d\n",
              "whose configuration m.py is not");
}

/* What another function makes is not taken for what is usual. */
static void
other_parts_are_told (void)
{
  check_read ("XTuner v1",
              DENSE DEFAULTS "fsdp = my.make(8)\nloader = ldr\nloss = GRPOLossConfig()\n" TRAINER (),
              "seq; ?fsdp_cfg is no FSDPConfig; ?dataloader_cfg is no DataloaderConfig; "
              "?loss_cfg is no CELossConfig; ?pack_max_length: its value");
  check_read ("XTuner v1", DENSE DEFAULTS "optim = make_optim()\n" TRAINER (), "?optim_cfg");
  check_read (
      "XTuner v1",
      DENSE DEFAULTS
      "model_cfg.float8_cfg = get_fp8()\nmodel_cfg.attention = make()\nmodel_cfg.compile_cfg = on(\"COMPILE\")\n"
      "fsdp.recompute_ratio = ratio(2)\nloader.pack_max_length = ceil(1, 2)\n" TRAINER (
          ", sp_size=min(8, n), intra_layer_micro_batch=a.b(1)"),
      "seq; cp; micro_batch; recompute; gpus; dtype=bf16; qk_norm=true; "
      "?model_cfg.attention; ?model_cfg.float8_cfg; ?what get_fp8(...) stands for; "
      "?compile_cfg: its value is on(...); ?recompute_ratio: its value; ?pack_max_length: its value; "
      "?sp_size: its value is min(8, n); ?intra_layer_micro_batch: its value");
}

static void
other_tasks_are_refused (void)
{
  check_read (NULL, FRONT "trainer = RLColocateTrainerConfig(train=1)\n",
              "trainer RLColocateTrainerConfig: another task");
  check_read (NULL, FRONT "def main():\n  trainer = Trainer(model_cfg=1)\n", "nothing of the name trainer");
  check_read (NULL, FRONT "trainer = TrainerConfig(\n", "a bracket does not end");
}

LS_TEST_SUITE (LS_TEST (defaults_are_read), LS_TEST (own_degrees_are_known), LS_TEST (experts_are_read),
               LS_TEST (members_are_set), LS_TEST (fp8_is_read), LS_TEST (models_are_found),
               LS_TEST (scripts_are_read), LS_TEST (arguments_are_read), LS_TEST (other_parts_are_told),
               LS_TEST (other_tasks_are_refused))
