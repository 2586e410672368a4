/* Scripts that train a base model by Karpathy's nanochat:
 *
 *     torchrun --standalone --nproc_per_node=8 -m scripts.base_train -- --depth=24 --fp8
 *
 * Names, defaults and rules as in scripts/base_train.py and nanochat/gpt.py of karpathy/nanochat (92d63d4e,
 * July 2026): all follows from the depth. */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/yaml_config.h"

#define RULE(option) OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  RULE ("depth"),
  RULE ("aspect-ratio"),
  RULE ("head-dim"),
  RULE ("max-seq-len"),
  RULE ("window-pattern"),
  RULE ("device-batch-size"),
  RULE ("total-batch-size"),
  RULE ("device-type"),
  RULE ("fp8"),
  RULE ("fp8-recipe"),
};

/* What evaluates, samples and saves runs between steps. */
static const char ignored[]
    = "run num-iterations target-flops target-param-data-ratio *-lr weight-decay warmup-steps warmdown-ratio "
      "final-lr-frac resume-from-step eval-every eval-tokens core-metric-* sample-every save-every model-tag";

static const OptionTable table = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* --- the model -------------------------------------------------------------------------------------- */

typedef struct {
  guint64 depth, heads, head_dim, hidden, seq, vocab;
} Shape;

#define MOST 65536 /* of each */

/* Its number, or what nanochat takes, which `key` tells. */
static guint64
size_of (LaunchJob *job, const char *name, const char *key, guint64 usual)
{
  guint64 n = config_number_or (job, name, key, usual);
  return CLAMP (n, 1, MOST);
}

/* build_model_meta (): the width is rounded up to whole heads. */
static Shape
shape_of (LaunchJob *job)
{
  guint64 depth = size_of (job, "depth", "layers", 20),
          each = size_of (job, "aspect-ratio", "--aspect-ratio", 64),
          head = size_of (job, "head-dim", "head_dim", 128),
          heads = MAX (1, (depth * each + head - 1) / head);
  return (Shape) { .depth = depth,
                   .heads = heads,
                   .head_dim = head,
                   .hidden = heads * head,
                   .seq = size_of (job, "max-seq-len", "seq", 2048),
                   .vocab = 32768 };
}

/* Every second layer, and the last. */
static guint64
value_layers (const Shape *shape)
{
  return (shape->depth + 1) / 2;
}

/* get_scaling_params (): matrices of layers with the gates of value embeddings, and the head. */
static double
scaling_params (const Shape *shape)
{
  double h = (double) shape->hidden;
  return 12 * (double) shape->depth * h * h + 12 * (double) (value_layers (shape) * shape->heads)
      + (double) shape->vocab * h;
}

/* A window of a quarter of the sequence in whole tiles of 128, in which a token sees itself too; the last
 * layer has none (_compute_window_sizes). */
static void
set_windows (LaunchJob *job, const Shape *shape)
{
  const char *pattern = option_text (job, "window-pattern");
  pattern = pattern ? pattern : "SSSL";
  gsize n = strlen (pattern);
  if (n == 0 || strspn (pattern, "SLsl") != n) {
    import_conflict (job->import, "--window-pattern %s: nanochat refuses it", pattern);
    return;
  }
  guint64 window = (shape->seq / 4 + 127) / 128 * 128 + 1;
  g_autoptr (GString) text = g_string_new (NULL);
  bool has_any = false;
  for (guint64 i = 0; i < shape->depth; i++) {
    bool is_short = i + 1 < shape->depth && g_ascii_toupper (pattern[i % n]) == 'S';
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", is_short ? window : 0);
    has_any = has_any || is_short;
  }
  if (has_any)
    option_set_model (job, "layer_window", text->str);
}

static void
tell_left_out (const LaunchJob *job, const Shape *shape)
{
  guint64 tables = value_layers (shape);
  import_unknown (job->import,
                  "value embeddings: %" G_GUINT64_FORMAT
                  " tables with %.3g million parameters, and their gates, "
                  "are left out",
                  tables, (double) (tables * shape->vocab * shape->hidden) / 1e6);
}

static void
set_model (LaunchJob *job, const Shape *shape)
{
  static const char *const kinds[][2]
      = { { "mlp", "relu2" },   { "norm", "rmsnorm" },  { "position", "rope" }, { "qk_norm", "1" },
          { "logit_cap", "1" }, { "linear_bias", "0" }, { "dropout", "0" },     { "tied_embeddings", "0" } };
  LsImport *import = job->import;
  import_set_model_number (import, "layers", shape->depth);
  import_set_model_number (import, "hidden", shape->hidden);
  import_set_model_number (import, "heads", shape->heads);
  import_set_model_number (import, "kv_heads", shape->heads);
  import_set_model_number (import, "head_dim", shape->head_dim);
  import_set_model_number (import, "ffn", 4 * shape->hidden);
  import_set_model_number (import, "vocab", shape->vocab);
  import_infer (import, "vocab %" G_GUINT64_FORMAT ": that of scripts.tok_train where nothing is said",
                shape->vocab);
  import_set_model_number (import, "seq", shape->seq);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    import_set_model (import, kinds[i][0], kinds[i][1], "--");
  set_windows (job, shape);
  tell_left_out (job, shape);
}

/* --- the strategy ----------------------------------------------------------------------------------- */

/* 2^19 tokens at a depth of 12, and with the tokens of a run to the power of 0.383; these go with the
 * parameters, so that how many of them there are for each does not matter. */
static guint64
usual_batch (const Shape *shape)
{
  const Shape of_12 = { .depth = 12, .heads = 6, .head_dim = 128, .hidden = 768, .vocab = shape->vocab };
  double ratio = scaling_params (shape) / scaling_params (&of_12);
  return (guint64) 1 << (guint) nearbyint (fmin (19 + 0.383 * log2 (ratio), 40));
}

static void
set_batch (LaunchJob *job, const Shape *shape)
{
  LsImport *import = job->import;
  const char *said = option_text (job, "total-batch-size");
  guint64 tokens = said && *said != '-' ? option_number (job, "total-batch-size") : 0,
          each = config_number_or (job, "device-batch-size", "micro_batch", 32);
  if (tokens == 0) {
    tokens = usual_batch (shape);
    import_infer (import,
                  "--total-batch-size %" G_GUINT64_FORMAT " tokens: as many as nanochat takes at this depth",
                  tokens);
  }
  if (each > 0)
    import_set_strategy_count (import, "micro_batch", each, "device-batch-size");
  if (tokens % shape->seq != 0
      || (each > 0 && job->gpus > 0 && tokens / shape->seq % import_times (each, job->gpus) != 0)) {
    import_conflict (import,
                     "%" G_GUINT64_FORMAT
                     " tokens are no multiple of --device-batch-size x --max-seq-len of each "
                     "GPU: nanochat refuses it",
                     tokens);
    return;
  }
  import_set_strategy_count (import, "global_batch", tokens / shape->seq, "total-batch-size");
}

/* NANOCHAT_DTYPE, or bf16 where a GPU has it. */
static void
set_format (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *asked = job->variables ? g_hash_table_lookup (job->variables, "NANOCHAT_DTYPE") : NULL,
             *recipe = option_text (job, "fp8-recipe");
  bool is_fp8 = option_is_on (job, "fp8"), is_half = g_strcmp0 (asked, "float16") == 0,
       is_wide = g_strcmp0 (asked, "float32") == 0;
  import_set_strategy (import, "dtype", is_fp8 ? "fp8" : is_half ? "fp16" : is_wide ? "fp32" : "bf16", "fp8");
  import_set_strategy (import, "grad_dtype", "fp32", "--");
  if (!is_fp8)
    return;
  import_set_strategy (import, "fp8_recipe", "current", "fp8-recipe");
  import_set_strategy (import, "fp8_linear", "torchao", "--");
  import_unknown (import, "--fp8: the head, which is in fp8 too, is taken to be in 16 bits");
  if (recipe && strcmp (recipe, "tensorwise") != 0)
    import_conflict (import, "--fp8-recipe %s: nanochat knows tensorwise alone (nanochat/fp8.py)", recipe);
}

static void
set_strategy (LaunchJob *job, const Shape *shape)
{
  static const char *const one[] = { "tp", "pp", "cp" };
  static const char *const rules[][2] = { { "recompute", "none" },
                                          { "attention", "flash" },
                                          { "attention_kernel", "fa3" },
                                          { "grad_norm", "0" },
                                          { "optimizer_cut", "tensors" } };
  LsImport *import = job->import;
  for (guint i = 0; i < G_N_ELEMENTS (one); i++)
    import_set_strategy (import, one[i], "1", "--");
  if (import_has_strategy (import, "gpus"))
    job->gpus = import->strategy.gpus;
  if (job->gpus > 0)
    import_set_strategy_number (import, "gpus", job->gpus);
  else
    import_open (import, "gpus", "how many GPUs: torchrun is told, and nothing here says");
  import_set_strategy (import, "dp_kind", job->gpus == 1 ? "none" : "megatron", "--");
  if (job->gpus != 1)
    import_set_strategy (import, "zero", "1", "--");
  import_set_strategy (import, "dp_overlap", "0", "--");
  import_set_strategy (import, "gather_overlap", "0", "--");
  import_set_strategy (import, "optimizer", "muon-nanochat", "--");
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    import_set_strategy (import, rules[i][0], rules[i][1], "--");
  set_batch (job, shape);
  set_format (job);
  import_set_software (import, "nanochat-2026");
  import_infer (import, "software nanochat-2026: the release of nanochat that is known");
}

/* --- scripts ---------------------------------------------------------------------------------------- */

#define TRAINER "scripts.base_train"

static bool
is_known (const char *name)
{
  return option_find (&table, name) != NULL;
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 0; i < n; i++)
    if (strcmp (words[i], TRAINER) == 0 || g_str_has_suffix (words[i], "scripts/base_train.py"))
      return true;
  return false;
}

static bool
check_device (const LaunchJob *job, const char *path, LsDiagList *diags)
{
  const char *device = option_text (job, "device-type");
  if (!device || *device == '\0' || strcmp (device, "cuda") == 0)
    return true;
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, IMPORT_ELSE,
               "--device-type %s: of nanochat's, training on GPUs of CUDA is read", device);
  return false;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "nanochat", .is_known = is_known, .n_needed = 1, .starts = starts };
  LaunchScript script;
  import->program = "nanochat";
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  LaunchJob job = { .import = import,
                    .words = script.words,
                    .table = &table,
                    .gpus = script.gpus,
                    .variables = script.variables };
  ok = ok && check_device (&job, files->files[0].path, diags);
  if (ok) {
    option_read_all (&job);
    Shape shape = shape_of (&job);
    set_model (&job, &shape);
    set_strategy (&job, &shape);
    g_hash_table_unref (job.open);
  }
  launch_script_clear (&script);
  return ok;
}

static bool
is_its (const ImportFile *file)
{
  return strstr (file->text, TRAINER) || strstr (file->text, "scripts/base_train.py");
}

const ImportReader import_nanochat = { "a script of nanochat", is_its, read };
