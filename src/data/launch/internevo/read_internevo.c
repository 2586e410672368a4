/* A configuration of InternEvo, in Python, and scripts that start train.py with one. Rules are those of
 * internlm/initialize/launch.py, internlm/core/context/parallel_context.py, internlm/train/pipeline.py and
 * the models of InternLM/InternEvo@c628a8c8 (March 2024). */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/internevo/internevo_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/python/python_names.h"
#include "data/launch/yaml_config.h"

static bool
is_on_by_default (const LaunchJob *job, const char *name)
{
  return option_is_on (job, name) || !(option_is_there (job, name) || option_is_none (job, name));
}

/* A degree that is a number, or a dict with one; 0: not said. -1, all, is 0 too. */
static guint64
degree_of (const LaunchJob *job, const char *section)
{
  g_autofree char *size = g_strconcat (section, ".size", NULL);
  const char *text = option_text (job, size);
  text = text ? text : option_text (job, section);
  return text && *text != '-' ? g_ascii_strtoull (text, NULL, 10) : 0;
}

/* --- the model --------------------------------------------------------------------------------------- */

/* Builders of models, by their name in the registry; of part of a stage's layers this many are computed again
 * whole: those below the product, or its whole part. */
typedef struct {
  const char *name;
  bool has_biases;  /* of the ways into attention and out of it, whatever is said */
  bool rounds_down; /* layers that are computed again                             */
  bool has_experts;
} ModelType;

static const ModelType types[] = {
  { "INTERNLM", true, true, false },
  { "INTERNLM_MoE", true, true, true },
  { "INTERNLM2_PUBLIC", false, false, false },
  { "LLAMA2", false, false, false },
};

static const ModelType *
type_of (const LaunchJob *job)
{
  const char *said = option_text (job, "model_type");
  for (guint i = 0; said && i < G_N_ELEMENTS (types); i++)
    if (strcmp (said, types[i].name) == 0)
      return &types[i];
  if (said)
    import_unknown (job->import, "model_type %s: taken for INTERNLM", said);
  return &types[0];
}

/* MLPs of SwiGLU round up (internlm/model/modules/mlp.py, multiple_of). */
static guint64
width_of (const LaunchJob *job)
{
  const char *ratio = option_text (job, "model.mlp_ratio");
  double wide = (ratio ? g_ascii_strtod (ratio, NULL) : 4.0) * job->import->model.hidden;
  guint64 whole = wide >= 1 && wide < G_MAXUINT32 ? (guint64) wide : 0;
  return is_on_by_default (job, "model.use_swiglu") ? (whole + 255) / 256 * 256 : whole;
}

static void
set_experts (LaunchJob *job, guint64 ffn)
{
  LsImport *import = job->import;
  guint64 n = option_number (job, "model.num_experts"), k = config_number_or (job, "moe.top_k", "top_k", 1);
  const char *type = option_text (job, "model.moe_type"),
             *capacity = option_text (job, "moe.capacity_factor");
  if (n <= 1)
    return;
  import_set_model_number (import, "experts", n);
  import_set_model_number (import, "top_k", k);
  import_set_model_number (import, "expert_ffn", ffn);
  if (type && strcmp (type, "GShard") != 0)
    import_unknown (import, "model.moe_type %s: taken for GShard", type);
  if (is_on_by_default (job, "moe.drop_tokens")) {
    import_set_strategy (import, "expert_capacity", capacity ? capacity : "1", "moe.capacity_factor");
    import_set_strategy (import, "expert_padding", "capacity", "moe.drop_tokens");
  } else
    import_unknown (import, "moe.drop_tokens is off: tokens are taken to fall evenly on experts");
  import_unknown (import,
                  "GShard: tokens go to experts and back by products with masks, whose time is left out");
  if (option_is_on (job, "model.moe_use_residual"))
    import_unknown (import, "model.moe_use_residual: the MLP beside experts is left out");
}

static void
set_model (LaunchJob *job, const ModelType *type)
{
  LsImport *import = job->import;
  const char *norm = option_text (job, "model.norm_type");
  bool is_swiglu = is_on_by_default (job, "model.use_swiglu");
  option_set_defaults (job, OPTION_MODEL);
  if (!import_has_model (import, "kv_heads"))
    import_set_model_number (import, "kv_heads", import->model.n_heads);
  import_set_model (import, "mlp", is_swiglu ? "swiglu" : "gelu", "model.use_swiglu");
  import_set_model (import, "norm", norm && strcmp (norm, "rmsnorm") != 0 ? "layernorm" : "rmsnorm",
                    "model.norm_type");
  import_set_model (import, "position", "rope", "model");
  import_set_model (import, "tied_embeddings", "0", "model");
  guint64 ffn = width_of (job);
  if (ffn > 0)
    import_set_model_number (import, "ffn", ffn);
  import_infer (import, "ffn %" G_GUINT64_FORMAT ": of model.mlp_ratio%s", ffn,
                is_swiglu ? ", up to a multiple of 256" : "");
  if (type->has_biases || !option_is_on (job, "model.no_bias")) {
    import_set_model (import, "qkv_bias", "1", "model.no_bias");
    import_infer (import, "attention has biases, of which that on its way out is left out");
  }
  if (type->has_experts)
    set_experts (job, ffn);
  else if (option_number (job, "model.num_experts") > 1)
    import_unknown (import, "model.num_experts: model_type %s has none", type->name);
}

/* --- degrees ------------------------------------------------------------------------------------------ */

static bool
is_mode (const LaunchJob *job, const char *mode)
{
  return g_strcmp0 (option_text (job, "parallel.tensor.mode"), mode) == 0;
}

/* isp cuts sequences, exchanges heads for attention, and gathers weights of each layer among `weight` ranks
 * (doc/en/parallel.md). */
static void
set_isp (LaunchJob *job, guint64 size)
{
  LsImport *import = job->import;
  guint64 weight = degree_of (job, "parallel.weight");
  import_set_strategy (import, "tp", "1", "parallel.tensor");
  import_set_strategy_number (import, "cp", size);
  import_set_strategy (import, "cp_kind", "ulysses", "parallel.tensor.mode");
  import_infer (
      import,
      "tensor mode isp: sequences are cut over %" G_GUINT64_FORMAT " ranks, as DeepSpeed-Ulysses does", size);
  if (weight > 1) {
    g_autofree char *zero = g_strdup_printf ("3@%" G_GUINT64_FORMAT, weight);
    import_set_strategy (import, "zero", zero, "parallel.weight*");
    import_unknown (import,
                    "parallel.weight %" G_GUINT64_FORMAT
                    ": taken to be ZeRO-3 in groups of so many, whose optimizer is "
                    "cut as weights are, not by zero1, too",
                    weight);
  }
}

static void
set_tensor (LaunchJob *job)
{
  static const char *const modes = "mtp msp fsp isp";
  LsImport *import = job->import;
  guint64 size = MAX (1, degree_of (job, "parallel.tensor"));
  option_tell_other (job, "parallel.tensor.mode", modes, "mtp");
  if (is_mode (job, "isp")) {
    set_isp (job, size);
    return;
  }
  if (degree_of (job, "parallel.weight") > 1)
    import_conflict (import, "parallel.weight without tensor mode isp: InternEvo refuses it");
  import_set_strategy_number (import, "tp", size);
  bool is_cut = is_mode (job, "msp") || is_mode (job, "fsp");
  import_set_strategy (import, "sp", is_cut && size > 1 ? "1" : "0", "parallel.tensor.mode");
  if (!is_cut && option_is_on (job, "parallel.sequence_parallel") && size > 1)
    import_unknown (import, "parallel.sequence_parallel: sequences are cut by tensor mode msp or fsp alone");
}

static void
set_pipeline (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 pp = MAX (1, degree_of (job, "parallel.pipeline")),
          chunks = MAX (1, option_number (job, "model.num_chunks"));
  import_set_strategy_number (import, "pp", pp);
  if (chunks > 1 && pp > 1) {
    import_set_strategy_number (import, "vpp", chunks);
    import_set_strategy (import, "schedule", "interleaved-1f1b", "model.num_chunks");
    if (!option_is_on (job, "parallel.pipeline.interleaved_overlap"))
      import_conflict (import, "model.num_chunks without interleaved_overlap: InternEvo refuses it");
  } else if (pp > 1)
    import_set_strategy (import, "schedule", "1f1b", "--");
}

/* zero1: -1, all copies; 1, none; else groups of so many. fsdp shards in these groups, too. */
static void
set_shards (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 size = degree_of (job, "parallel.zero1");
  bool is_fsdp = option_is_on (job, "parallel.zero1.fsdp");
  g_autofree char *zero = size > 1 ? g_strdup_printf ("%d@%" G_GUINT64_FORMAT, is_fsdp ? 3 : 1, size)
                                   : g_strdup (is_fsdp ? "3" : "1");
  import_set_strategy (import, "dp_kind", is_fsdp ? "fsdp1" : "deepspeed",
                       is_fsdp ? "parallel.zero1.fsdp" : "--");
  if (!import_has_strategy (import, "zero"))
    import_set_strategy (import, "zero", size == 1 ? "0" : zero, "parallel.zero1*");
  if (is_fsdp && import->strategy.pp > 1)
    import_conflict (import, "parallel.zero1 fsdp with a pipeline: InternEvo refuses it");
  if (is_fsdp) {
    option_forget (job, "reduce_bucket");
    return;
  }
  bool is_beside = option_is_on (job, "hybrid_zero_optimizer.overlap_sync_grad")
      || option_is_on (job, "hybrid_zero_optimizer.zero_overlap_communication");
  import_set_strategy (import, "dp_overlap", is_beside ? "1" : "0",
                       "hybrid_zero_optimizer.overlap_sync_grad");
  if (option_is_on (job, "hybrid_zero_optimizer.overlap_sync_param"))
    import_unknown (import, "overlap_sync_param: parameters are taken to be sent before the next step");
}

/* --- batches ------------------------------------------------------------------------------------------ */

static void
set_batch (LaunchJob *job, guint64 gpus)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 n = config_number_or (job, "data.micro_num", "micro_num", 1),
          each = (guint64) s->tp * s->cp * s->pp;
  if (option_number (job, "data.micro_bsz") > 0)
    import_set_strategy (import, "micro_batch", option_text (job, "data.micro_bsz"), "data.micro_bsz");
  if (import_is_given (import, "gpus"))
    gpus = s->gpus;
  if (gpus > 0 && gpus % each != 0)
    import_conflict (
        import, "%" G_GUINT64_FORMAT " GPUs are no multiple of %" G_GUINT64_FORMAT ", which degrees make",
        gpus, each);
  else if (gpus > 0)
    config_set_batch (job, gpus / each, n);
  else {
    import_open (import, "gpus", "how many GPUs: a configuration does not say");
    import_open (import, "global_batch",
                 "the global batch: data.micro_bsz x %" G_GUINT64_FORMAT
                 " (micro_num) of each copy, and how many GPUs "
                 "there are is not known",
                 n);
  }
}

/* A rank has one expert, or more where there are fewer copies. */
static void
set_expert_degree (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  if (import->model.n_experts == 0)
    return;
  if (!import_has_strategy (import, "gpus")) {
    import_open (import, "ep",
                 "ep: as many as copies, at most %u experts, and how many GPUs there are is not known",
                 import->model.n_experts);
    return;
  }
  guint64 copies = s->gpus / ((guint64) s->tp * s->cp * s->pp);
  import_set_strategy_number (import, "ep", MIN (copies, import->model.n_experts));
  import_follows_gpus (import, "ep");
}

/* With FlashAttention documents of a pack do not meet each other; samples that are put into one have cuts at
 * seq_len alone (internlm/data/tokenized/packed_dataset.py). */
static void
set_attention (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_flash = is_on_by_default (job, "model.use_flash_attn"),
       is_packed = is_on_by_default (job, "data.use_packed_dataset");
  import_set_strategy (import, "attention", is_flash ? "flash" : "unfused", "model.use_flash_attn");
  if (is_flash != is_packed)
    import_conflict (import, "model.use_flash_attn and data.use_packed_dataset differ: InternEvo refuses it");
  if (is_packed && !option_is_on (job, "data.pack_sample_into_one"))
    import_open (
        import, "lengths",
        "data.pack_sample_into_one is off: attention is inside documents, whose lengths are not in the file: "
        "taken to be over whole sequences (lengths)");
  if (!import_has_model (import, "seq"))
    import_open (import, "seq", "how long a sequence is: data.seq_len is not said");
}

/* --- what is computed again, formats ------------------------------------------------------------------- */

/* Layers of a chunk, of a part of them, "0.4"; without any, norms alone (dropout_selective_checkpoint). */
static void
set_recompute (LaunchJob *job, const ModelType *type)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  const char *text = option_text (job, "model.checkpoint");
  double part = option_is_on (job, "model.checkpoint") && !text ? 1 : text ? g_ascii_strtod (text, NULL) : 0;
  double layers = import->model.n_layers / ((double) s->pp * s->vpp) * part;
  bool keeps = !is_on_by_default (job, "model.dropout_selective_checkpoint");
  if (!(part >= 0 && part <= 1)) {
    import_conflict (import, "model.checkpoint %s: expected a part of all layers, 0 to 1", text);
    return;
  }
  guint n = (guint) (type->rounds_down ? floor (layers) : ceil (layers));
  if (n == 0 && keeps)
    import_set_strategy (import, "recompute", "none", "model.checkpoint");
  else if (n == 0) {
    import_set_strategy (import, "recompute", "selective", "model.dropout_selective_checkpoint");
    import_set_strategy (import, "recompute_parts", "norm", "model.dropout_selective_checkpoint");
    import_infer (import, "recompute norm: dropout_selective_checkpoint, the default where layers are kept");
  } else {
    import_set_strategy (import, "recompute", "full", "model.checkpoint");
    if (part < 1) {
      import_set_strategy (import, "recompute_method", "block", "model.checkpoint");
      import_set_strategy_count (import, "recompute_layers", n, "model.checkpoint");
      import_infer (
          import,
          "recompute block: %u layers of each chunk; norms of the others, which are computed again, "
          "too, are taken to be kept",
          n);
    }
  }
}

static void
set_formats (LaunchJob *job)
{
  static const char *const formats[][2] = { { "torch.bfloat16", "bf16" },
                                            { "torch.float16", "fp16" },
                                            { "torch.half", "fp16" },
                                            { "torch.float32", "fp32" },
                                            { "torch.tf32", "fp32" } };
  LsImport *import = job->import;
  const char *said = option_text (job, "model.dtype"), *format = NULL,
             *clip = option_text (job, "hybrid_zero_optimizer.clip_grad_norm");
  for (guint i = 0; said && i < G_N_ELEMENTS (formats); i++)
    format = strcmp (said, formats[i][0]) == 0 ? formats[i][1] : format;
  if (said && !format)
    import_unknown (import, "model.dtype %s: taken for torch.float16", said);
  else if (!said)
    import_infer (import, "dtype fp16: the default of InternEvo");
  else if (strcmp (said, "torch.tf32") == 0)
    import_unknown (import, "model.dtype torch.tf32: products are taken to be in fp32");
  import_set_strategy (import, "dtype", format ? format : "fp16", "model.dtype");
  import_set_strategy (import, "grad_norm", clip && g_ascii_strtod (clip, NULL) > 0 ? "1" : "0",
                       "hybrid_zero_optimizer.clip_grad_norm");
  import_set_strategy (import, "optimizer", "adam", "adam");
  import_set_software (import, "internevo-0.3");
  import_infer (import, "software internevo-0.3: the release of InternEvo that is known");
}

/* --- what is left out ----------------------------------------------------------------------------------- */

static void
tell_rest (LaunchJob *job)
{
  static const char *const switches[][2]
      = { { "model.apply_post_layer_norm", "norms are taken to stand before attention and the MLP" },
          { "model.residual_in_fp32", "residuals are taken to be in 16 bits" },
          { "model.deepnorm", "left out" },
          { "parallel.gqa", "left out" },
          { "data.fixed_random_dataset_seqlen", "lengths of samples are taken to be one" } };
  static const char *const dropouts[] = { "model.drop_rate", "model.attn_drop_rate" };
  for (guint i = 0; i < G_N_ELEMENTS (switches); i++)
    if (option_is_on (job, switches[i][0]))
      import_unknown (job->import, "%s: %s", switches[i][0], switches[i][1]);
  for (guint i = 0; i < G_N_ELEMENTS (dropouts); i++) {
    const char *text = option_text (job, dropouts[i]);
    if (text && g_ascii_strtod (text, NULL) > 0)
      import_set_model (job->import, "dropout", "1", dropouts[i]);
  }
  if (option_text (job, "data.rampup_batch_size"))
    import_infer (job->import, "data.rampup_batch_size: the batch is that of the end");
}

/* gpus: 0: not known. Takes the words. */
static void
read_words (LaunchWords *words, guint64 gpus, LsImport *import)
{
  LaunchJob job = { .import = import, .words = words, .table = &internevo_options };
  option_read_all (&job);
  const ModelType *type = type_of (&job);
  set_model (&job, type);
  set_tensor (&job);
  set_pipeline (&job);
  set_shards (&job);
  set_batch (&job, gpus);
  set_expert_degree (&job);
  set_attention (&job);
  set_recompute (&job, type);
  set_formats (&job);
  tell_rest (&job);
  g_hash_table_unref (job.open);
  launch_words_free (words);
}

bool
internevo_is_config (const char *text)
{
  static const char *const sections[] = { "parallel", "model", "data" };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++) {
    g_autofree char *spaced = g_strconcat (sections[i], " = dict(", NULL),
                    *tight = g_strconcat (sections[i], "=dict(", NULL);
    n += launch_has_line (text, spaced) || launch_has_line (text, tight);
  }
  bool is_based = strstr (text, "read_base") != NULL;
  return (n == G_N_ELEMENTS (sections) || (is_based && n > 0))
      && (strstr (text, "zero1") || strstr (text, "micro_bsz") || strstr (text, "internlm"));
}

static bool
check_task (const LaunchWords *words, const LsImport *import, LsDiagList *diags)
{
  const LaunchJob job = { .import = (LsImport *) import, .words = words };
  return !option_is_on (&job, "model.is_reward")
      || import_refuse_task (import->path, diags, "model.is_reward");
}

bool
internevo_read_text (const ImportFiles *files, const char *text, gsize n, const char *name, guint64 gpus,
                     LsImport *import, LsDiagList *diags)
{
  import->program = "InternEvo";
  cJSON *tree = python_names_of (files, text, n, name, import, diags);
  LaunchWords *words = tree ? launch_words_new () : NULL;
  if (tree) {
    python_names_forget_calls (tree);
    launch_words_add_tree (words, tree);
  }
  cJSON_Delete (tree);
  if (words && check_task (words, import, diags)) {
    read_words (words, gpus, import);
    return true;
  }
  launch_words_free (words);
  return false;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  return internevo_read_text (files, file->text, file->n, file->path, 0, import, diags);
}

static bool
is_its (const ImportFile *file)
{
  return internevo_is_config (file->text);
}

const ImportReader import_internevo = { "a configuration or a script of InternEvo", is_its, read };
