/* Pins which modules run in which format by a file of Megatron-LM (--te-precision-config-file), or a recipe of
 * Megatron-Bridge. */
#include <glib/gstdio.h>

#include "import_check.h"

#define CONFIGS                                                                                              \
  "configs:\n"                                                                                               \
  "  bf16:\n    transformer_engine_config_type: TEQuantizationParams\n    training_recipe: {}\n"             \
  "  mxfp8:\n    transformer_engine_config_type: TEQuantizationParams\n"                                     \
  "    training_recipe: {fp8_quantization_recipe: mxfp8}\n"                                                  \
  "  nvfp4:\n    transformer_engine_config_type: TEQuantizationParams\n"                                     \
  "    training_recipe: {fp4_quantization_recipe: nvfp4}\n"                                                  \
  "  own:\n    transformer_engine_config_type: TEQuantizationParams\n"                                       \
  "    training_recipe: {fp8_quantization_recipe: custom, custom_recipe_factory: a.b}\n"                     \
  "  keep:\n    transformer_engine_config_type: TEQuantizationParams\n"                                      \
  "    training_recipe: {override_quantized_autocast: false}\n"                                              \
  "matchers:\n"
#define MATCH(name, config, pattern)                                                                         \
  "  " name ": {config: " config ", type: glob, pattern: \"" pattern "\", enabled: true}\n"
#define OFF(name, config, pattern)                                                                           \
  "  " name ": {config: " config ", type: glob, pattern: \"" pattern "\", enabled: false}\n"
#define JOB(format, more, matchers)                                                                          \
  "cat > q.yaml <<END\n" CONFIGS matchers "END\n"                                                            \
  "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "   \
  "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --bf16 " format " " more            \
  " --te-precision-config-file q.yaml\n"
#define NVFP4 "--fp4-format e2m1"
#define MXFP8 "--fp8-format e4m3 --fp8-recipe mxfp8"

/* The first matcher that fits decides, of those that are on; what none fits has the format of the job, and so
 * has what asks for that. Patterns are of the whole name. */
static void
matchers_stand_in_an_order (void)
{
  static const char *const rows[][2] = {
    { JOB (NVFP4, "", MATCH ("a", "bf16", "*.linear_qkv") MATCH ("b", "mxfp8", "*.linear_*")),
      "dtype=nvfp4; module_formats=qkv:bf16,proj:mxfp8,fc1:mxfp8,fc2:mxfp8,expert-fc1:mxfp8,"
      "expert-fc2:mxfp8,shared-fc1:mxfp8,shared-fc2:mxfp8" },
    { JOB (NVFP4, "", MATCH ("b", "mxfp8", "*.linear_proj") MATCH ("a", "bf16", "*")),
      "module_formats=qkv:bf16,proj:mxfp8,fc1:bf16,fc2:bf16,expert-fc1:bf16,expert-fc2:bf16,shared-fc1:bf16,"
      "shared-fc2:bf16,latent-down:bf16,latent-up:bf16,mixer-in:bf16,mixer-out:bf16" },
    { JOB (NVFP4, "", OFF ("a", "bf16", "*") MATCH ("b", "nvfp4", "*") MATCH ("c", "bf16", "*")),
      "module_formats" },
    { JOB (NVFP4, "", MATCH ("a", "keep", "*.mlp.*") MATCH ("b", "bf16", "*.mlp.linear_fc[12]")),
      "module_formats" },
    { JOB (NVFP4, "", MATCH ("a", "bf16", "linear_qkv") MATCH ("b", "mxfp8", "*mlp.fc[!2]_latent_proj")),
      "module_formats=latent-down:mxfp8" },
    { JOB (MXFP8, "", MATCH ("a", "mxfp8", "*mixer*") MATCH ("b", "nvfp4", "*experts*")),
      "dtype=fp8; module_formats=expert-fc1:nvfp4,expert-fc2:nvfp4,shared-fc1:nvfp4,shared-fc2:nvfp4" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    check (rows[i][0], rows[i][1]);
}

static void
blocks_and_layers_are_told_apart (void)
{
  static const char *const rows[][2] = {
    { JOB (MXFP8, "--mtp-num-layers 1", MATCH ("a", "bf16", "mtp.*")), "module_formats=mtp:bf16" },
    { JOB (MXFP8, "--mtp-num-layers 1", MATCH ("a", "bf16", "*.linear_proj")), "module_formats=proj:bf16" },
    { JOB (MXFP8, "--mtp-num-layers 1", MATCH ("a", "bf16", "mtp.*.linear_proj")),
      "module_formats; ?blocks of multi-token prediction whose modules are in several formats" },
    { JOB (NVFP4, "--mtp-num-layers 1", MATCH ("a", "mxfp8", "mtp.*")), "module_formats" },
    { JOB (NVFP4, "", MATCH ("a", "bf16", "*layers.7.*linear_proj")),
      "module_formats; ?patterns of single layers: all are taken to be as the first" },
    { JOB (NVFP4, "", MATCH ("a", "bf16", "*layers.8.*linear_proj")), "module_formats" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    check (rows[i][0], rows[i][1]);
}

static void
what_is_not_followed_is_told (void)
{
  check (JOB (NVFP4, "", MATCH ("a", "own", "*.linear_qkv")), "module_formats; ?config-file: custom");
  check (JOB (NVFP4, "", "  a: {config: bf16, type: regex, pattern: \".*\", enabled: true}\n"),
         "module_formats; ?a matcher that is no glob");
  check (JOB ("", "", MATCH ("a", "mxfp8", "*")), "dtype=bf16; module_formats");
  check ("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
         "--num-attention-heads 8 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 "
         "--bf16 " NVFP4 " --te-precision-config-file lost.yaml\n",
         "module_formats; ?--te-precision-config-file lost.yaml: it is not here");
}

#define FROM "from megatron.bridge.training.config import ConfigContainer\n"
#define RECIPE(more)                                                                                              \
  "def llama3_8b_pretrain_config():\n"                                                                            \
  "    cfg = ConfigContainer(train=TrainingConfig(micro_batch_size=1), mixed_precision=bf16_with_nvfp4_mixed(), " \
  "model=LlamaProvider(num_layers=7))\n"                                                                          \
  "    cfg.model.quant_recipe = " more "\n    return cfg\n"

/* A recipe as it is, and one of a file beside the file that names it. */
static void
recipes_name_a_file_or_say_all (void)
{
  check_read ("Megatron-Bridge",
              FROM RECIPE ("RecipeConfig.from_config_dict({\"configs\": {\"b\": {\"training_recipe\": {}}}, "
                           "\"matchers\": {\"a\": {\"config\": \"b\", \"type\": \"glob\", "
                           "\"pattern\": \"*.linear_qkv\", \"enabled\": True}}})"),
              "dtype=nvfp4; module_formats=qkv:bf16");
  g_autofree char *top = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *folder = g_build_filename (top, "m", "perf_recipes", NULL),
                  *own = g_build_filename (folder, "a.py", NULL),
                  *common = g_build_filename (folder, "b", "common.py", NULL),
                  *formats = g_build_filename (folder, "b", "q.cfg", NULL),
                  *inner = g_build_filename (folder, "b", NULL);
  LS_CHECK_INT (g_mkdir_with_parents (inner, 0700), ==, 0);
  LS_CHECK (g_file_set_contents (
      own, FROM "from m.perf_recipes.b.common import _PATH\n" RECIPE ("load_quantization_recipe(str(_PATH))"),
      -1, NULL));
  LS_CHECK (g_file_set_contents (
      common, "from pathlib import Path\n_PATH = Path(__file__).with_name(\"q.cfg\")\n", -1, NULL));
  LS_CHECK (g_file_set_contents (formats, CONFIGS MATCH ("a", "mxfp8", "*mixer.out_proj"), -1, NULL));
  const char *const given[] = { own, NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport import;
  if (!LS_CHECK (ls_import_load (given, &import, diags)))
    return;
  check_one (&import, "module_formats=mixer-out:mxfp8", "a.py");
  LS_CHECK_STR (import.files->pdata[import.files->len - 1], formats);
  ls_import_clear (&import);
}

LS_TEST_SUITE (LS_TEST (matchers_stand_in_an_order), LS_TEST (blocks_and_layers_are_told_apart),
               LS_TEST (what_is_not_followed_is_told), LS_TEST (recipes_name_a_file_or_say_all))
