/* Degrees, pipeline, batch and memory: what torchtitan makes of its options. */
#include "data/launch/torchtitan/torchtitan_rules.h"

#include <string.h>

#include "strategy/strategy.h"

static guint64
number_of (const LaunchJob *job, const char *name, guint64 otherwise)
{
  const char *text = torchtitan_text (job, name);
  guint64 value;
  return text && g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &value, NULL) ? value : otherwise;
}

bool
torchtitan_is_early (const LaunchJob *job)
{
  return g_str_has_prefix (job->import->strategy.software, "torchtitan-");
}

/* --- degrees --------------------------------------------------------------------------------------- */

/* 0: whatever is left of the GPUs (-1). */
static guint64
n_shards (const LaunchJob *job)
{
  const char *older = option_text (job, "training.data_parallel_degree"),
             *text = torchtitan_text (job, "data_parallel_shard_degree");
  text = text ? text : older;
  return text && *text != '-' ? g_ascii_strtoull (text, NULL, 10) : 0;
}

static bool
has_open_degree (const LaunchJob *job)
{
  return g_hash_table_contains (job->open, "tp") || g_hash_table_contains (job->open, "pp")
      || g_hash_table_contains (job->open, "cp");
}

/* Sets gpus if it is known; how many shards there are then: 0: not known. */
static guint64
set_gpus (LaunchJob *job, guint64 replicas)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 shards = n_shards (job), rest = import_times ((guint64) s->tp * s->pp * s->cp, MAX (1, replicas));
  guint64 gpus = import_has_strategy (import, "gpus") ? s->gpus
      : job->gpus                                     ? job->gpus
                                                      : import_times (rest, shards);
  if (has_open_degree (job) || gpus == 0) {
    import_open (import, "gpus", "how many GPUs: data_parallel_shard_degree is all that there are");
    return 0;
  }
  if (gpus % rest != 0 || (shards > 0 && gpus != import_times (rest, shards))) {
    import_conflict (
        import, "%" G_GUINT64_FORMAT " GPUs are not tp %u x pp %u x cp %u x %" G_GUINT64_FORMAT " replicas%s",
        gpus, s->tp, s->pp, s->cp, MAX (1, replicas), shards > 0 ? " x the shards" : "");
    return 0;
  }
  import_set_strategy_number (import, "gpus", gpus);
  return gpus / rest;
}

/* Sets zero and what becomes of parameters behind the forward, in groups of n ranks, 0: all. */
static void
set_zero (LaunchJob *job, guint64 n)
{
  const char *reshard = torchtitan_text (job, "fsdp_reshard_after_forward");
  bool is_never = reshard && strcmp (reshard, "never") == 0,
       is_always = reshard && strcmp (reshard, "always") == 0;
  g_autofree char *group = n > 0 ? g_strdup_printf ("@%" G_GUINT64_FORMAT, n) : g_strdup (""),
                  *zero = g_strconcat (is_never ? "2" : "3", group, NULL);
  import_set_strategy (job->import, "dp_kind", "fsdp2", "--");
  import_set_strategy (job->import, "zero", zero, "data_parallel_shard_degree");
  if (is_never || is_always)
    import_set_strategy (job->import, "reshard_after_forward", is_always ? "1" : "0",
                         "fsdp_reshard_after_forward");
}

/* Context-parallel ranks hold shards too. */
static void
set_data_parallel (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 replicas = number_of (job, "data_parallel_replicate_degree", 1), shards = set_gpus (job, replicas);
  guint cp = import->strategy.cp;
  if (shards == 1 && cp == 1 && !g_hash_table_contains (job->open, "cp")) {
    import_set_strategy (import, "dp_kind", replicas > 1 ? "ddp" : "none", "data_parallel_replicate_degree");
    return;
  }
  if (shards == 0 && replicas > 1)
    import_unknown (
        import, "the shards of each of %" G_GUINT64_FORMAT " replicas: how many GPUs is not known", replicas);
  set_zero (job, replicas > 1 ? shards * cp : 0);
}

static void
set_tensor (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_whole = option_is_on (job, "parallelism.disable_loss_parallel")
      || option_is_on (job, "training.disable_loss_parallel");
  if (import->strategy.tp > 1 && is_whole)
    import_unknown (import, "disable_loss_parallel: the loss is taken to be parallel");
  bool is_plain = option_is_off (job, "parallelism.enable_sequence_parallel");
  import_set_strategy (import, "sp", import->strategy.tp > 1 && !is_plain ? "1" : "0",
                       "enable_sequence_parallel");
  if (import->strategy.tp > 1 && !is_plain)
    import_infer (import, "sp: it has sequence parallelism wherever it has tensor parallelism");
  else if (import_has_strategy (import, "tp_overlap") && import->strategy.tp == 1)
    import_set_strategy (import, "tp_overlap", "0", "enable_async_tensor_parallel");
  if (import->strategy.tp_overlap)
    import_set_strategy (import, "tp_overlap_kind", "ring", "enable_async_tensor_parallel");
}

static void
set_context (LaunchJob *job)
{
  const char *method = torchtitan_text (job, "context_parallel_rotate_method");
  bool is_ring = method && strcmp (method, "alltoall") == 0;
  if (job->import->strategy.cp > 1 && option_is_none (job, "parallelism.context_parallel_load_balancer"))
    import_set_strategy (job->import, "cp_balance", "0", "context_parallel_load_balancer");
  if (job->import->strategy.cp > 1)
    import_set_strategy (job->import, "cp_kind", is_ring ? "ring" : "all-gather",
                         "context_parallel_rotate_method");
}

/* Since December 2025 (pytorch/torchtitan pull request 2107). */
static void
set_exchange (LaunchJob *job)
{
  const char *backend = torchtitan_text (job, "expert_parallel_comm_backend");
  if (!backend || job->import->strategy.ep == 1 || strcmp (backend, "standard") == 0)
    return;
  if (strcmp (backend, "deepep") == 0 || strcmp (backend, "hybridep") == 0)
    import_set_strategy (job->import, "dispatcher", backend, "expert_parallel_comm_backend");
  else
    import_unknown (job->import, "expert_parallel_comm_backend %s; taken for an all-to-all of NCCL", backend);
}

/* Heeded where there are groups of experts; else they are cut as layers are. */
static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *text = option_text (job, "parallelism.expert_tensor_parallel_degree");
  guint64 etp = number_of (job, "expert_tensor_parallel_degree", 1);
  if (!import_has_strategy (import, "ep"))
    return;
  set_exchange (job);
  if (import->strategy.ep > 1 || etp == import->strategy.tp)
    import_set_strategy_number (import, "etp", etp);
  else if (text)
    import_infer (import, "etp %u: expert_tensor_parallel_degree has no effect without groups of experts",
                  import->strategy.tp);
}

/* --- the pipeline ---------------------------------------------------------------------------------- */

/* Of "layers.4,layers.8": layers in front of each, and behind the last. NULL: it has other parts. */
static char *
read_splits (const LaunchOption *o, guint n_layers, guint *ret_n)
{
  GString *list = g_string_new (NULL);
  guint64 before = 0;
  *ret_n = 1;
  for (guint i = 0; i < o->values->len; i++) {
    g_auto (GStrv) points = g_strsplit (o->values->pdata[i], ",", 4097);
    for (char **point = points; *point; point++) {
      guint64 at;
      const char *number = g_str_has_prefix (*point, "layers.") ? *point + strlen ("layers.") : "";
      if (!g_ascii_string_to_unsigned (number, 10, before, n_layers, &at, NULL)) {
        g_string_free (list, TRUE);
        return NULL;
      }
      g_string_append_printf (list, "%" G_GUINT64_FORMAT ",", at - before);
      before = at;
      ++*ret_n;
    }
  }
  g_string_append_printf (list, "%" G_GUINT64_FORMAT, n_layers - before);
  return g_string_free (list, FALSE);
}

static bool
set_splits (LaunchJob *job)
{
  LsImport *import = job->import;
  const LaunchOption *o = launch_words_find (job->words, "parallelism.pipeline_parallel_split_points");
  o = o ? o : launch_words_find (job->words, "experimental.pipeline_parallel_split_points");
  guint n, pp = import->strategy.pp;
  if (!o || o->values->len == 0)
    return false;
  g_autofree char *list
      = import_has_model (import, "layers") ? read_splits (o, import->model.n_layers, &n) : NULL;
  if (!list)
    import_unknown (import, "pipeline_parallel_split_points %s", (const char *) o->values->pdata[0]);
  else if (n % pp != 0 || (import_is_given (import, "vpp") && n / pp != import->strategy.vpp)) {
    import_stages_conflict (import, "pipeline_parallel_split_points: %u parts are no multiple of %u stages",
                            n, pp);
    return false;
  } else {
    import_set_strategy_number (import, "vpp", n / pp);
    import_set_strategy (import, "layers_per_chunk", list, "pipeline_parallel_split_points");
  }
  return true;
}

/* Layers of chunk i of n: generate_llm_fqn_per_model_part(), where the ends count as layers too. */
static guint64
layers_of (guint i, guint n, guint64 all, guint64 first, guint64 last)
{
  guint64 effective = all + first + last, here = effective / n + (i < effective % n);
  guint64 less = (i == 0 ? first : 0) + (i == n - 1 ? last : 0);
  return here > less ? here - less : 0;
}

/* The same until 2025, generate_split_points(): neither end has one of those that are left over. */
static guint64
layers_of_early (guint i, guint n, guint64 all)
{
  guint64 each = all / n, left = all % n, n_middle = n > 2 ? n - 2 : 0;
  if (i == n - 1)
    return all - each * (n - 1) - MIN (left, n_middle);
  return each + (i > 0 && i - 1 < left);
}

static void
set_layers (LaunchJob *job, guint64 first, guint64 last)
{
  LsImport *import = job->import;
  guint n = import->strategy.pp * import->strategy.vpp;
  if ((guint64) import->strategy.pp * import->strategy.vpp > LS_MAX_CHUNKS) /* which the rules refuse */
    return;
  GString *list = g_string_new (NULL);
  bool is_even = true;
  guint64 all = import->model.n_layers, before = 0;
  for (guint i = 0; i < n; i++) {
    guint64 here
        = torchtitan_is_early (job) ? layers_of_early (i, n, all) : layers_of (i, n, all, first, last);
    is_even = is_even && (i == 0 || here == before);
    g_string_append_printf (list, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", here);
    before = here;
  }
  if (!is_even)
    import_set_strategy (import, "layers_per_chunk", list->str,
                         "pipeline_parallel_layers_per_stage pipeline_parallel_*_stage_less_layers");
  g_string_free (list, TRUE);
}

/* Chunks of a stage: 1 or 2 by the schedule, or as many as so many layers make. */
static void
set_chunks (LaunchJob *job, bool is_single)
{
  LsImport *import = job->import;
  guint64 each = number_of (job, "pipeline_parallel_layers_per_stage", 0), vpp = is_single ? 1 : 2,
          first = number_of (job, "pipeline_parallel_first_stage_less_layers", 1),
          last = number_of (job, "pipeline_parallel_last_stage_less_layers", 1),
          layers = import->model.n_layers;
  guint pp = import->strategy.pp;
  if (each > 0 && layers > 0) {
    guint64 n = (layers + first + last + each - 1) / each;
    if (n % pp != 0 || n > (guint64) 4096 * pp)
      import_stages_conflict (import,
                              "pipeline_parallel_layers_per_stage: %" G_GUINT64_FORMAT
                              " chunks are no multiple of %u stages",
                              n, pp);
    else
      vpp = n / pp;
  }
  import_set_strategy_number (import, "vpp", vpp);
  if (layers > 0)
    set_layers (job, first, last);
}

static void
set_pipeline (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *text = torchtitan_text (job, "pipeline_parallel_schedule"),
             *ours = torchtitan_schedule_ours (text ? text : "1F1B");
  if (import->strategy.pp == 1)
    return;
  if (ours)
    import_set_strategy (import, "schedule", ours, "pipeline_parallel_schedule");
  else
    import_unknown (import, "pipeline_parallel_schedule %s", text);
  if (!set_splits (job))
    set_chunks (job, !ours || torchtitan_is_single (ours));
}

/* --- the batch ------------------------------------------------------------------------------------- */

#define TOKENS "training.num_tokens_per_microbatch_per_dp_rank"

bool
torchtitan_counts_tokens (const LaunchJob *job)
{
  return launch_words_find (job->words, TOKENS)
      || launch_words_find (job->words, "training.max_context_length");
}

/* Sequences of so many tokens, 16,384 of 2,048 by itself; 0: it is open. */
static guint64
sequences_of (const LaunchJob *job, const char *option, guint64 otherwise)
{
  guint64 tokens = option_number (job, option),
          seq = import_has_model (job->import, "seq") ? job->import->model.seq : 2048;
  if (tokens == 0 && launch_words_find (job->words, option) && option_number (job, option) == 0)
    return 0;
  tokens = tokens ? tokens : otherwise;
  if (tokens % seq != 0)
    import_unknown (job->import,
                    "%s: %" G_GUINT64_FORMAT " tokens are no multiple of a sequence of %" G_GUINT64_FORMAT,
                    option, tokens, seq);
  return tokens > 0 ? MAX (1, tokens / seq) : 0;
}

/* Micro-batches of a pipeline in which tokens are counted. */
static guint64
n_micro_batches (const LaunchJob *job)
{
  return job->import->strategy.pp > 1 ? number_of (job, "num_pp_microbatches", 1) : 1;
}

static guint64
local_batch (const LaunchJob *job)
{
  guint64 batch = option_number (job, "training.local_batch_size");
  if (torchtitan_counts_tokens (job))
    return import_times (sequences_of (job, TOKENS, 16384), n_micro_batches (job));
  return batch ? batch : option_number (job, "training.batch_size");
}

static bool
has_open_batch (const LaunchJob *job)
{
  return local_batch (job) == 0
      && (launch_words_find (job->words, "training.local_batch_size")
          || launch_words_find (job->words, TOKENS) || launch_words_find (job->words, "training.batch_size"));
}

/* With a pipeline the local batch passes it in one step: in micro-batches of a size, or, until April 2025, in
 * as many as there are stages. */
static guint64
micro_batch (LaunchJob *job, guint64 local)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 n = number_of (job, "pipeline_parallel_microbatches", 0),
          size = number_of (job, "pipeline_parallel_microbatch_size", 0);
  if (s->pp == 1 || torchtitan_counts_tokens (job))
    return local / n_micro_batches (job);
  bool is_counted = n > 0 || (size == 0 && torchtitan_is_early (job));
  n = n ? n : (guint64) s->pp * s->vpp;
  if (is_counted && local % n != 0)
    import_conflict (import,
                     "a batch of %" G_GUINT64_FORMAT " is no multiple of %" G_GUINT64_FORMAT " micro-batches",
                     local, n);
  size = size ? size : is_counted ? MAX (1, local / n) : 1;
  if (local % size != 0)
    import_conflict (import,
                     "a batch of %" G_GUINT64_FORMAT " is no multiple of micro-batches of %" G_GUINT64_FORMAT,
                     local, size);
  return size;
}

static void
set_global_batch (LaunchJob *job, guint64 local)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 said = import_has_strategy (import, "global_batch") ? s->global_batch : 0;
  guint64 dp = import_has_strategy (import, "gpus") ? s->gpus / ((guint64) s->tp * s->pp * s->cp) : 0;
  bool is_open = g_hash_table_contains (job->open, "global_batch");
  if (said == 0 && dp > 0 && !is_open) {
    import_set_strategy_number (import, "global_batch", local * dp);
    import_infer (import, "global_batch %" G_GUINT64_FORMAT ": the local batch of each copy", local * dp);
    import_follows_gpus (import, "global_batch");
  } else if (said == 0 && dp == 0 && !is_open)
    import_open (
        import, "global_batch",
        "the global batch: it is the local one of each copy, and how many GPUs there are is not known");
  else if (said > 0 && dp > 0 && s->global_batch % import_times (local, dp) != 0)
    import_conflict (import, "a batch of %u is no multiple of the %" G_GUINT64_FORMAT " sequences at once",
                     s->global_batch, local * dp);
  else if (s->pp > 1 && said > local * MAX (1, dp)) {
    import_set_strategy_number (import, "pipeline_batch", local);
    import_infer (import,
                  "pipeline_batch %" G_GUINT64_FORMAT ": each local batch fills and drains the pipeline",
                  local);
  }
}

static void
set_batch (LaunchJob *job)
{
  guint64 local = local_batch (job);
  if (has_open_batch (job))
    return;
  if (local == 0) {
    local = 8;
    import_infer (job->import, "a local batch of 8: the default");
  }
  guint64 all
      = torchtitan_counts_tokens (job) ? sequences_of (job, "training.num_tokens_per_train_step", 0) : 0;
  if (all > 0)
    import_set_strategy_number (job->import, "global_batch", all);
  import_set_strategy_number (job->import, "micro_batch", micro_batch (job, local));
  set_global_batch (job, local);
}

/* --- recomputation --------------------------------------------------------------------------------- */

/* Every so-manieth layer as a whole: so many layers of a chunk, here its first ones. */
static void
set_every (LaunchJob *job, guint64 every)
{
  LsImport *import = job->import;
  guint64 n
      = import->model.n_layers / ((guint64) import->strategy.pp * import->strategy.vpp) / MAX (1, every);
  if (n == 0) {
    import_set_strategy (import, "recompute", "selective", "activation_checkpoint.mode");
    import_unknown (import,
                    "activation_checkpoint.selective_ac_option: every %" G_GUINT64_FORMAT
                    " layers one is recomputed; how many there are is not known",
                    every);
    return;
  }
  import_set_strategy (import, "recompute", "full", "activation_checkpoint.mode");
  import_set_strategy (import, "recompute_method", "block", "activation_checkpoint.selective_ac_option");
  import_set_strategy_count (import, "recompute_layers", n, "activation_checkpoint.selective_ac_option");
  import_infer (import,
                "recompute full of %" G_GUINT64_FORMAT " layers of a chunk: every %" G_GUINT64_FORMAT
                " layers one is recomputed as a whole, here the first ones",
                n, every);
}

static void
set_recompute (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *mode = option_text (job, "activation_checkpoint.mode"),
             *option = option_text (job, "activation_checkpoint.selective_ac_option");
  mode = mode ? mode : "selective";
  option = option ? option : "2";
  guint64 every = g_ascii_strtoull (option, NULL, 10);
  if (strcmp (mode, "full") == 0 || strcmp (mode, "none") == 0)
    import_set_strategy (import, "recompute", mode, "activation_checkpoint.mode");
  else if (strcmp (mode, "selective") == 0 && every > 0)
    set_every (job, every);
  else if (strcmp (mode, "selective") == 0 && strcmp (option, "op") == 0) {
    import_set_strategy (import, "recompute", mode, "activation_checkpoint.mode");
    import_set_strategy (import, "recompute_parts", "op", "activation_checkpoint.selective_ac_option");
  } else
    import_unknown (import, "activation_checkpoint.mode %s, selective_ac_option %s", mode, option);
  if (option_is_off (job, "activation_checkpoint.early_stop"))
    import_set_strategy (import, "recompute_early_stop", "0", "activation_checkpoint.early_stop");
}

void
torchtitan_strategy (LaunchJob *job)
{
  option_set_defaults (job, OPTION_STRATEGY);
  set_tensor (job);
  set_context (job);
  set_experts (job);
  set_pipeline (job);
  set_data_parallel (job);
  set_batch (job);
  set_recompute (job);
}
