/* Pins what recipes of Megatron-Bridge in Python mean: a function that takes another and sets members of it. */
#include "ls_test.h"

#include <glib/gstdio.h>

#include "import_check.h"

#define FROM "from megatron.bridge.training.config import ConfigContainer\n"
#define BASE                                                                                                 \
  "def base() -> ConfigContainer:\n"                                                                         \
  "    \"\"\"A recipe.\"\"\"\n"                                                                              \
  "    cfg = ConfigContainer(model=None, train=TrainingConfig(global_batch_size=32, micro_batch_size=2),\n"  \
  "        ddp=DistributedDataParallelConfig(check_for_nan_in_grad=True, grad_reduce_in_fp32=True,\n"        \
  "            overlap_grad_reduce=True, overlap_param_gather=True, use_distributed_optimizer=True),\n"      \
  "        dataset=GPTDatasetConfig(seq_length=4096), mixed_precision=\"bf16_mixed\")\n"                     \
  "    cfg.model = AutoBridge.from_hf_pretrained(\"meta-llama/Meta-Llama-3-8B\").to_megatron_provider()\n"   \
  "    return cfg\n\n"

/* Of several functions the one that is asked for, with what stands in none of its own. */
static void
a_recipe_takes_another (void)
{
  check_read ("Megatron-Bridge", FROM BASE, "layers=32; tp=1; global_batch=32; ?how many GPUs");
  check_read (NULL, FROM BASE "def llama3_8b_pretrain_8gpu_h100_bf16_config():\n    return base()\n",
              "it has several recipes: base, llama3_8b_pretrain_8gpu_h100_bf16_config");
  check_read (
      "Megatron-Bridge",
      FROM "def llama3_70b_pretrain_64gpu_h100_fp8cs_config():\n"
           "    cfg = llama3_70b_pretrain_config()\n"
           "    cfg.mixed_precision = _perf_precision(\"fp8_cs\")\n"
           "    cfg.model.tensor_model_parallel_size = 4\n"
           "    cfg.model.sequence_parallel = True\n"
           "    cfg.train.micro_batch_size = 1\n"
           "    _finish(cfg)\n"
           "    return cfg\n",
      "gpus=64; layers=80; tp=4; sp=true; micro_batch=1; dtype=fp8; fp8_recipe=current; fp8_params=true; "
      "grad_dtype=bf16; bf16_first; ~gpus 64; ?llama3_70b_pretrain_config, which; "
      "?:8 \"_finish(cfg)\"; ?what this file leaves");
  check_read (NULL, FROM "def f():\n    return odd(1)\n", "no recipe of a training job");
}

/* Functions that set members of what is handed to them, by names that imports give, with usual values. */
static void
functions_change_a_recipe (void)
{
  check_read (
      "Megatron-Bridge",
      FROM "from a import (\n    lost as small,\n)\n"
           "def _finish(cfg: ConfigContainer, n: int = 4, *, odd=None) -> None:\n"
           "    cfg.ddp.check_for_nan_in_grad = False\n"
           "    _inner(cfg)\n"
           "    cfg.model.pipeline_model_parallel_size = n\n"
           "def _inner(cfg):\n    cfg.model.tensor_model_parallel_size = 2\n"
           "def _sized(cfg, n):\n    cfg.train.global_batch_size = n\n    return cfg\n"
           "def base(odd):\n    cfg = ConfigContainer(train=TrainingConfig(micro_batch_size=1),\n"
           "        ddp=DDP(check_for_nan_in_grad=True, use_distributed_optimizer=True),\n"
           "        mixed_precision=bf16_mixed(), model=M)\n    return cfg\n"
           "def llama3_8b_pretrain_16gpu_h100_bf16_config():\n"
           "    cfg = _sized(base(3), 64)\n"
           "    _finish(cfg, n=2)\n"
           "    cfg.env_vars = {\"A\": 1, \"NVTE_NORM_FWD_USE_CUDNN\": 1, \"NVTE_NORM_BWD_USE_CUDNN\": 1}\n"
           "    return cfg\n",
      "gpus=16; layers=32; pp=2; micro_batch=1; global_batch=64; grad_check=false; dtype=bf16; "
      "kernels=megatron-core+transformer-engine-cudnn-norms; tp=2");
}

/* Beside the folders of the file that is given, through a file between; another that has a function of the same
 * name; what is no recipe is not looked for. */
static void
files_of_recipes_find_what_they_import (void)
{
  static const char *const files[][2] = {
    { "m/perf_recipes/h100/a.py",
      FROM "from m.recipes.h100.a import job_16gpu_config as _usual\n"
           "from m.perf_recipes._common import finish\nfrom m.training.x import lost\n"
           "def job_16gpu_config():\n    cfg = _usual()\n    finish(cfg)\n"
           "    lost(cfg)\n    return cfg\n" },
    { "m/recipes/h100/a.py",
      "from m.recipes.common import base\ndef job_16gpu_config():\n    cfg = base()\n"
      "    cfg.train.global_batch_size = 64\n    return cfg\n" },
    { "m/recipes/common/__init__.py", BASE },
    { "m/perf_recipes/_common.py", "def finish(cfg):\n    cfg.train.micro_batch_size = 4\n" },
    { "m/training/x.py", "def lost(cfg):\n    cfg.train.micro_batch_size = 1\n    return cfg\n" },
  };
  g_autofree char *top = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    char *path = g_build_filename (top, files[i][0], NULL);
    g_autofree char *folder = g_path_get_dirname (path);
    LS_CHECK_INT (g_mkdir_with_parents (folder, 0700), ==, 0);
    LS_CHECK (g_file_set_contents (path, files[i][1], -1, NULL));
    g_ptr_array_add (paths, path);
  }
  const char *const given[] = { paths->pdata[0], NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImported import;
  bool ok = ls_import_load (given, NULL, &import, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  ls_check_impl (ok, __FILE__, __LINE__, "%s", said);
  if (!ok)
    return;
  static const char *const expected[] = { "gpus=16", "layers=32", "global_batch=64", "micro_batch=4" };
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    check_one (&import, expected[i], "a.py");
  LS_CHECK_INT (import.files->len, ==, 4);
  ls_import_clear (&import);
}

/* A file that is named from within a checkout imports from above the folder where one is. */
static void
files_of_recipes_are_found_from_within (void)
{
  g_autofree char *top = g_dir_make_tmp ("lockstep-XXXXXX", NULL), *cwd = g_get_current_dir (),
                  *folder = g_build_filename (top, "m", "recipes", "llama", NULL),
                  *own = g_build_filename (folder, "a.py", NULL),
                  *other = g_build_filename (top, "m", "recipes", "common.py", NULL);
  LS_CHECK_INT (g_mkdir_with_parents (folder, 0700), ==, 0);
  LS_CHECK (g_file_set_contents (other, BASE, -1, NULL));
  LS_CHECK (g_file_set_contents (own,
                                 FROM "from m.recipes.common import base\n"
                                      "def job_16gpu_config():\n    return base()\n",
                                 -1, NULL));
  LS_CHECK_INT (g_chdir (folder), ==, 0);
  const char *const given[] = { "a.py", NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImported import;
  bool ok = ls_import_load (given, NULL, &import, diags);
  LS_CHECK_INT (g_chdir (cwd), ==, 0);
  g_autofree char *said = ls_diag_list_format (diags);
  ls_check_impl (ok, __FILE__, __LINE__, "%s", said);
  if (!ok)
    return;
  check_one (&import, "layers=32", "a.py");
  LS_CHECK_STR (import.files->pdata[0], "a.py");
  ls_import_clear (&import);
}

/* A checkout says its version: the file of that release, or of the last one before it, else of the first. */
static void
a_checkout_says_its_release (void)
{
  static const char *const cases[][3] = { { "0", "4", "software=megatron-bridge-26.04" },
                                          { "0", "5", "software=megatron-bridge-26.06" },
                                          { "0", "99", "software=megatron-bridge-26.08" },
                                          { "0", "1", "software=megatron-bridge-26.02" },
                                          { "x", "4", "software=nemo-2025" } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *top = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                    *folder = g_build_filename (top, "src", "megatron", "bridge", NULL),
                    *own = g_build_filename (folder, "a.py", NULL),
                    *info = g_build_filename (folder, "package_info.py", NULL),
                    *text = g_strdup_printf ("\nMAJOR = %s\nMINOR = %s\n", cases[i][0], cases[i][1]);
    LS_CHECK_INT (g_mkdir_with_parents (folder, 0700), ==, 0);
    LS_CHECK (g_file_set_contents (info, text, -1, NULL) && g_file_set_contents (own, FROM BASE, -1, NULL));
    const char *const given[] = { own, NULL };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsImported import;
    if (!LS_CHECK (ls_import_load (given, NULL, &import, diags)))
      return;
    check_one (&import, cases[i][2], "a.py");
    ls_import_clear (&import);
  }
}

/* Members that are set behind what makes the model of a hub's name, which the recipe's name does not say. */
static void
a_model_of_a_hub_is_changed (void)
{
#define MAKE             "AutoBridge.from_hf_pretrained(\"Qwen/Qwen3-8B\").to_megatron_provider()\n"
#define CHANGE(model)    "    " model ".num_layers = 8\n    " model ".tensor_model_parallel_size = 2\n"
#define CONTAINER(model) "ConfigContainer(train=TrainingConfig(global_batch_size=32), model=" model ")\n"
  static const char *const texts[] = {
    FROM "def mine():\n    cfg = " CONTAINER ("None") "    cfg.model = " MAKE CHANGE (
        "cfg.model") "    return cfg\n",
    FROM "def mine():\n    model = " MAKE CHANGE ("model") "    return " CONTAINER ("model"),
    FROM "def mine():\n    bridge = AutoBridge.from_hf_pretrained(\"Qwen/Qwen3-8B\")\n"
         "    cfg = " CONTAINER ("bridge.to_megatron_provider()") CHANGE ("cfg.model") "    return cfg\n",
  };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    check_read ("Megatron-Bridge", texts[i], "layers=8; hidden=4096; ffn=12288; tp=2; global_batch=32");
}

/* A recipe of releases up to 0.3: what is usual for a model, as parameters of a function for all of its family. */
static void
a_recipe_hands_parameters_on (void)
{
  check_read ("Megatron-Bridge",
              FROM
              "def llama3_8b_pretrain_config(**user_kwargs: Unpack[Common]) -> ConfigContainer:\n"
              "    usual: Common = {\"tensor_model_parallel_size\": 2, \"hf_path\": HUB}\n"
              "    return _common(**{**usual, **user_kwargs})\n"
              "def _common(hf_path: str, tensor_model_parallel_size: int = 1, global_batch_size: int = 64):\n"
              "    model = AutoBridge.from_hf_pretrained(hf_path).to_megatron_provider()\n"
              "    model.tensor_model_parallel_size = tensor_model_parallel_size\n"
              "    return ConfigContainer(model=model, tokenizer=TokenizerConfig(vocab_size=32000),\n"
              "        train=TrainingConfig(global_batch_size=global_batch_size))\n"
              "HUB = \"meta-llama/Meta-Llama-3-8B\"\n",
              "layers=32; vocab=128256; tp=2; global_batch=64");
}

/* An optimizer and a schedule that one function makes: of a file that is here, and of one that is not, where
 * what is set on the optimizer holds and what it is besides is told. */
static void
an_optimizer_of_a_pair_is_changed (void)
{
#define STATES                                                                                               \
  "    opt, sched = adam_with_cosine(lr=1e-3)\n"                                                             \
  "    opt.use_precision_aware_optimizer = True\n    opt.exp_avg_dtype = torch.bfloat16\n"                   \
  "    opt.exp_avg_sq_dtype = torch.bfloat16\n"
#define WHOLE(optimizer)                                                                                     \
  "ConfigContainer(train=TrainingConfig(global_batch_size=32), model=llama3_8b(), optimizer=" optimizer ")\n"
  static const char *const texts[] = {
    FROM "def mine():\n" STATES "    return " WHOLE ("opt"),
    FROM "def mine():\n    cfg = " WHOLE ("None") STATES "    cfg.optimizer = opt\n    return cfg\n",
  };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autofree char *known = g_strconcat ("def adam_with_cosine(lr):\n"
                                          "    return OptimizerConfig(optimizer=\"adam\", "
                                          "use_distributed_optimizer=True), Schedule(lr=lr)\n",
                                          texts[i], NULL);
    check_read (
        "Megatron-Bridge", texts[i],
        "optimizer; moment_dtype=bf16; variance_dtype=bf16; ?\"opt, sched = adam_with_cosine(lr=1e-3)\"");
    check_read ("Megatron-Bridge", known, "zero=1; optimizer=adam; moment_dtype=bf16; variance_dtype=bf16");
  }
#undef STATES
#undef WHOLE
}

#define EXPERTS(name)                                                                                        \
  "def " name "() -> ConfigContainer:\n"                                                                     \
  "    cfg = ConfigContainer(train=TrainingConfig(global_batch_size=32, micro_batch_size=2), model=None)\n"  \
  "    cfg.model = AutoBridge.from_hf_pretrained(\"Qwen/Qwen3-30B-A3B\").to_megatron_provider()\n"           \
  "    cfg.model.expert_model_parallel_size = 8\n"                                                           \
  "    cfg.model.moe_token_dispatcher_type = \"alltoall\"\n"                                                 \
  "    cfg.model.moe_flex_dispatcher_backend = \"deepep\"\n"

/* Of a model whose dimensions are elsewhere what is said of experts holds; of one that has none it does not. */
static void
experts_of_a_model_that_is_not_here_are_believed (void)
{
#define OF(name)                                                                                             \
  FROM "def " name "() -> ConfigContainer:\n"                                                                \
       "    cfg = ConfigContainer(train=TrainingConfig(global_batch_size=32), model=Provider())\n"           \
       "    cfg.model.expert_model_parallel_size = 8\n"                                                      \
       "    cfg.model.expert_tensor_parallel_size = 1\n"                                                     \
       "    cfg.model.recompute_granularity = \"selective\"\n    cfg.model.recompute_modules = [\"moe\"]\n"  \
       "    cfg.model.mtp_num_layers = 2\n    cfg.model.mtp_hybrid_override_pattern = \"*E\"\n"              \
       "    cfg.model.mtp_use_repeated_layer = True\n"                                                       \
       "    cfg.model.moe_token_dispatcher_type = \"flex\"\n"                                                \
       "    cfg.model.moe_flex_dispatcher_backend = \"hybridep\"\n    return cfg\n"
  check_read ("Megatron-Bridge", OF ("unheard_of_pretrain_config"),
              "layers; ep=8; etp=1; dispatcher=hybridep; predict_layers=2; predict_pattern=ae; "
              "predict_shared=true; recompute_parts=moe");
  check_read ("Megatron-Bridge", OF ("llama3_8b_pretrain_config"),
              "layers=32; ep; etp; dispatcher; recompute_parts; ~ep 1: the model has no");
#undef OF
}

/* A backend is named in vain where nothing makes it the dispatcher: a function of the program that is called
 * with a part of the recipe, or the scripts that run performance recipes. */
static void
a_backend_is_the_dispatcher_where_it_is_applied (void)
{
  check_read ("Megatron-Bridge", FROM EXPERTS ("qwen3_30b_a3b_pretrain_config") "    return cfg\n",
              "ep=8; dispatcher");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS (
          "qwen3_30b_a3b_pretrain_config") "    apply_flex_dispatcher_backend(cfg.model, cfg.model.moe_flex_dispatcher_backend)\n"
                                           "    return cfg\n",
      "ep=8; dispatcher=deepep");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS (
          "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config") "    cfg.model.moe_hybridep_num_sms = 24\n"
                                                           "    cfg.model.moe_flex_dispatcher_backend = \"hybridep\"\n"
                                                           "    return cfg\n",
      "gpus=16; dispatcher=hybridep; dispatch_sms=24");
  check_read ("Megatron-Bridge",
              FROM EXPERTS ("qwen3_30b_a3b_pretrain_8gpu_b200_bf16_config") "    return cfg\n",
              "gpus=8; dispatcher=deepep; kernels=megatron-core-unfused-router");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS ("qwen3_30b_a3b_pretrain_8gpu_b200_bf16_config") "    cfg.model.moe_router_fusion = True\n"
                                                                    "    return cfg\n",
      "gpus=8; kernels");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS (
          "qwen3_30b_a3b_pretrain_8gpu_b200_bf16_config") "    cfg.model.moe_router_fusion = True\n"
                                                          "    cfg.model.fused_single_qkv_rope = True\n"
                                                          "    return cfg\n",
      "gpus=8; kernels=megatron-core-fused-rope");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS (
          "qwen3_30b_a3b_pretrain_8gpu_b200_bf16_config") "    cfg.model.moe_router_fusion = True\n"
                                                          "    cfg.model.moe_paged_stash = True\n"
                                                          "    cfg.model.cross_entropy_fusion_impl = \"te\"\n"
                                                          "    return cfg\n",
      "kernels=megatron-core+megatron-core-te-loss");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS (
          "qwen3_30b_a3b_pretrain_8gpu_b200_bf16_config") "    cfg.model.use_transformer_engine_op_fuser = True\n"
                                                          "    cfg.model.moe_paged_stash = True\n"
                                                          "    cfg.model.cross_entropy_fusion_impl = \"te\"\n"
                                                          "    cfg.model.fused_single_qkv_rope = True\n"
                                                          "    cfg.model.cross_entropy_loss_fusion = False\n"
                                                          "    cfg.model.cuda_graph_impl = \"full_iteration\"\n"
                                                          "    cfg.model.cuda_graph_scope = []\n"
                                                          "    return cfg\n",
      "kernels=megatron-core-op-fuser+megatron-core-unfused-router+megatron-core-paged-stash+"
      "megatron-core-fused-rope; cuda_graphs=step");
  check_read ("Megatron-Bridge",
              FROM EXPERTS ("qwen3_30b_a3b_pretrain_8gpu_gb200_bf16_config") "    return cfg\n",
              "gpus=8; dispatcher; ~go by all-to-all");
  check_read (
      "Megatron-Bridge",
      FROM EXPERTS (
          "qwen3_30b_a3b_pretrain_8gpu_gb300_bf16_config") "    apply_flex_dispatcher_backend(cfg.model, \"deepep\")\n"
                                                           "    return cfg\n",
      "gpus=8; dispatcher; ~go by all-to-all");
}

/* What overlaps exchanges of experts, what goes to the host, and which graphs there are. */
static void
what_recipes_set_is_heeded (void)
{
  check_read (
      "Megatron-Bridge",
      FROM "def qwen3_30b_a3b_pretrain_8gpu_gb200_fp8mx_config():\n"
           "    cfg = qwen3_30b_a3b_pretrain_config()\n"
           "    cfg.mixed_precision = bf16_with_mxfp8_mixed()\n"
           "    cfg.model.expert_model_parallel_size = 8\n"
           "    cfg.train.micro_batch_size = 4\n"
           "    cfg.tokenizer.vocab_size = 32000\n    cfg.tokenizer.use_tokenizer_vocab_size = False\n"
           "    cfg.model.cuda_graph_impl = \"local\"\n"
           "    cfg.model.cuda_graph_scope = \"full_iteration\"\n"
           "    cfg.comm_overlap = CommOverlapConfig(overlap_moe_expert_parallel_comm=True,\n"
           "                                         delay_wgrad_compute=True)\n"
           "    return cfg\n",
      "vocab=151936; ep=8; ep_overlap=1; delay_wgrad=1; cuda_graphs=step; fp8_recipe=mxfp8; fp8_params=true; grad_dtype=fp32");
  check_read (
      "Megatron-Bridge",
      FROM "def llama3_70b_pretrain_64gpu_gb200_fp8cs_config():\n"
           "    cfg = llama3_70b_pretrain_config()\n"
           "    cfg.mixed_precision = bf16_with_fp8_current_scaling_mixed()\n"
           "    cfg.train.micro_batch_size = 2\n"
           "    cfg.model.cpu_offloading = True\n"
           "    cfg.tokenizer.vocab_size = USUAL_SIZE\n"
           "    cfg.model.cpu_offloading_weights = False\n"
           "    cfg.model.cpu_offloading_num_layers = 40\n"
           "    return cfg\n",
      "vocab=128256; ?tokenizer.vocab_size USUAL_SIZE: no file; offload_activations=true; offload_layers=40; bf16_first=1; bf16_last=1");
}

/* What a precision leaves off is off, whatever the model says. */
static void
a_precision_overwrites_what_the_model_says (void)
{
  check_read ("Megatron-Bridge",
              "from megatron.bridge.training.config import ConfigContainer\n"
              "def own() -> ConfigContainer:\n"
              "    cfg = ConfigContainer(model=None, train=TrainingConfig(global_batch_size=32,\n"
              "        micro_batch_size=2), dataset=GPTDatasetConfig(seq_length=4096))\n"
              "    cfg.model = GPTModelProvider(num_layers=2, hidden_size=64, num_attention_heads=4,\n"
              "        vocab_size=128, first_last_layers_bf16=True, fp8=\"e4m3\")\n"
              "    cfg.mixed_precision = bf16_with_fp8_delayed_scaling_mixed()\n"
              "    return cfg\n",
              "layers=2; dtype=fp8; fp8_recipe=delayed; fp8_params=true; bf16_first; bf16_last");
}

/* What a function that is not here gives is not as if nothing was said; adapters and layouts neither. */
static void
calls_are_open (void)
{
  check_read (
      "Megatron-Bridge",
      FROM
      "def llama3_8b_peft_config():\n"
      "    cfg = ConfigContainer(train=TrainingConfig(micro_batch_size=1), mixed_precision=bf16_mixed(),\n"
      "        model=LlamaProvider(num_layers=4))\n"
      "    cfg.model.tensor_model_parallel_size = 2 // 1\n"
      "    cfg.train.global_batch_size = batch_of(64)\n"
      "    cfg.model.pipeline_model_parallel_layout = layout(4, 1)\n"
      "    cfg.peft = default_peft_config(\"lora\")\n    return cfg\n",
      "tp=2; micro_batch=1; global_batch; dtype=bf16; ?global_batch_size: its value is batch_of(...); "
      "?pipeline_model_parallel_layout: its value is layout(...); ?what default_peft_config(...) stands");
}

/* A layout of chunks, each a list of layers. */
static void
layouts_of_pipelines_are_read (void)
{
  static const char layout[] = FROM
      "def layout(pp):\n"
      "    two = [\"decoder\", \"decoder\"]\n"
      "    return [[\"embedding\", *two], two, two, [\"decoder\", \"loss\"]]\n"
      "def llama3_8b_pretrain_config():\n"
      "    cfg = ConfigContainer(train=TrainingConfig(micro_batch_size=1), model=LlamaProvider(num_layers=7))\n"
      "    cfg.model.pipeline_model_parallel_size = 2\n"
      "    cfg.model.pipeline_model_parallel_layout = layout(2)\n    return cfg\n";
  check_read ("Megatron-Bridge", layout, "pp=2; vpp=2; layers_per_chunk=2x3,1");
}

/* In the last chunk, as many as are said; ours are nowhere else. */
static void
blocks_of_prediction_are_in_the_last_chunk (void)
{
#define PREDICTED "--num-layers 24 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
  check (PREDICTED "'Et*5|t*7|t*7|t*5mL' --mtp-num-layers 1", "vpp=2; layers_per_chunk=5,7x2,5");
  check (PREDICTED "'Et*5|t*7|t*7|t*5mL' --mtp-num-layers 2",
         "?--pipeline-model-parallel-layout; layers_per_chunk");
  check (PREDICTED "'Et*5|t*7|t*7m|t*5L' --mtp-num-layers 1",
         "?--pipeline-model-parallel-layout; layers_per_chunk");
}

/* An object of peft/, and what recipes/utils/dataset_utils.py makes of a name of one. */
static void
adapters_are_read (void)
{
#define PEFT(more, what)                                                                                     \
  FROM more "def llama3_8b_peft_config():\n"                                                                 \
            "    cfg = ConfigContainer(train=TrainingConfig(micro_batch_size=1), model=None)\n"              \
            "    cfg.model = AutoBridge.from_hf_pretrained(\"meta-llama/Meta-Llama-3-8B\")\n"                \
            "    cfg.peft = " what "\n    return cfg\n"
  check_read ("Megatron-Bridge", PEFT ("", "LoRA(dim=8, target_modules=[\"linear_qkv\", \"linear_proj\"])"),
              "lora_rank=8; lora_modules=q,k,v,o");
  check_read ("Megatron-Bridge", PEFT ("", "DoRA()"), "lora_rank; ?adapters DoRA: all weights");
  check_read ("Megatron-Bridge", PEFT ("", "None"), "lora_rank");
  check_read ("Megatron-Bridge",
              PEFT ("def make(scheme, dim):\n    return LoRA(dim=dim)\n", "make(\"lora\", dim=16)"),
              "lora_rank=16");
  check_read (NULL,
              PEFT ("", "lora = LoRA(dim=8)\n    if other:\n        lora.target_modules = [\"linear_qkv\"]"),
              "it computes its configuration: job.yaml:2 \"def llama3_8b_peft_config():\"");
}

LS_TEST_SUITE (LS_TEST (calls_are_open), LS_TEST (a_checkout_says_its_release), LS_TEST (adapters_are_read),
               LS_TEST (layouts_of_pipelines_are_read), LS_TEST (blocks_of_prediction_are_in_the_last_chunk),
               LS_TEST (what_recipes_set_is_heeded), LS_TEST (a_recipe_takes_another),
               LS_TEST (a_precision_overwrites_what_the_model_says),
               LS_TEST (a_backend_is_the_dispatcher_where_it_is_applied), LS_TEST (functions_change_a_recipe),
               LS_TEST (files_of_recipes_find_what_they_import), LS_TEST (an_optimizer_of_a_pair_is_changed),
               LS_TEST (a_recipe_hands_parameters_on), LS_TEST (files_of_recipes_are_found_from_within),
               LS_TEST (a_model_of_a_hub_is_changed),
               LS_TEST (experts_of_a_model_that_is_not_here_are_believed))
