/* Stages of a pipeline and their chunks: what megatron/training/arguments.py and
 * core/transformer/transformer_block.py make of options together. */
#include "data/launch/megatron/megatron_rules.h"

#include <string.h>

#include "strategy/shard.h"
#include "strategy/strategy.h"

/* --num-layers-per-virtual-pipeline-stage counts layers, the others chunks. */
static void
set_chunks (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 layers = option_number (job, "num-layers-per-virtual-pipeline-stage"),
          vpp = option_number (job, "num-virtual-stages-per-pipeline-rank"),
          of_a_stage = import->model.n_layers / MAX (1, import->strategy.pp);
  bool is_open = g_hash_table_contains (job->open, "pp");
  vpp = vpp ? vpp : option_number (job, "virtual-pipeline-model-parallel-size");
  if (layers > 0 && vpp == 0 && (import->model.n_layers == 0 || is_open))
    import_open (import, "vpp",
                 "--num-layers-per-virtual-pipeline-stage %" G_GUINT64_FORMAT
                 ": how many chunks that is follows from layers and stages, which are not said",
                 layers);
  else if (layers > 0 && vpp == 0) {
    if (import->model.n_layers % import->strategy.pp != 0 || of_a_stage % layers != 0)
      import_stages_conflict (import,
                              "--num-layers-per-virtual-pipeline-stage %" G_GUINT64_FORMAT
                              " does not divide the %u layers over %u stages",
                              layers, import->model.n_layers, import->strategy.pp);
    vpp = of_a_stage / layers;
  }
  if (vpp > 1 && import->strategy.pp == 1 && !is_open)
    import_stages_conflict (import, "%" G_GUINT64_FORMAT " chunks of a stage, and no pipeline", vpp);
  if (vpp > 0 && import->strategy.pp > 1)
    import_set_strategy_number (import, "vpp", vpp);
}

#define MAX_LAYOUT 65536 /* characters of a layout */

/* "Et|(tt|)*30L": with each group as often as it says. The caller frees it; what is not closed, or too long,
 * stays as it is, and is told as another part. */
static char *
expand_groups (const char *text)
{
  GString *all = g_string_new (NULL);
  for (const char *p = text; *p;) {
    const char *end = *p == '(' ? strchr (p, ')') : NULL;
    if (!end || end[1] != '*') {
      g_string_append_c (all, *p++);
      continue;
    }
    char *rest;
    guint64 times = g_ascii_strtoull (end + 2, &rest, 10);
    gsize n = (gsize) (end - p - 1);
    if (times > MAX_LAYOUT || n * times + all->len > MAX_LAYOUT)
      break;
    for (; times > 0; times--)
      g_string_append_len (all, p + 1, (gssize) n);
    p = rest;
  }
  return g_string_free (all, FALSE);
}

/* Of a chunk, "Et*3mL": its layers, and its blocks of multi-token prediction. False: it has other parts. */
static bool
read_chunk (const char *p, guint64 *n_layers, guint64 *n_blocks)
{
  *n_layers = *n_blocks = 0;
  while (*p) {
    guint64 times = 1;
    char what = *p++;
    if (*p == '*')
      times = g_ascii_strtoull (p + 1, (char **) &p, 10);
    if (!strchr ("EtmL, ", what)) /* commas are for the eye */
      return false;
    *n_layers += what == 't' ? MIN (times, 65536) : 0;
    *n_blocks += what == 'm' ? MIN (times, 65536) : 0;
  }
  return true;
}

/* "Ett|t*3|ttL": layers of each chunk, in model order. Empty: it has other parts, or not all blocks of
 * multi-token prediction in the last chunk, where ours are. */
static GString *
read_layout (const char *text, guint n_predicted, guint *ret_n)
{
  GString *list = g_string_new (NULL);
  g_autofree char *all = expand_groups (text);
  g_auto (GStrv) chunks = g_strsplit (all, "|", 4097);
  *ret_n = g_strv_length (chunks);
  for (guint i = 0; i < *ret_n; i++) {
    guint64 n, n_blocks, expected = i + 1 == *ret_n ? n_predicted : 0;
    bool ok = read_chunk (chunks[i], &n, &n_blocks) && (n_blocks == expected || n_blocks == 0);
    if (!ok) {
      g_string_truncate (list, 0);
      return list;
    }
    g_string_append_printf (list, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", n);
  }
  return list;
}

/* The same of "M-M-|M*M-", a layer a letter. */
static GString *
read_pattern_cuts (const char *text, guint *ret_n)
{
  GString *list = g_string_new (NULL);
  g_autofree char *main = g_strndup (text, strcspn (text, "/"));
  g_auto (GStrv) chunks = g_strsplit (main, "|", 4097);
  *ret_n = g_strv_length (chunks);
  for (guint i = 0; i < *ret_n; i++)
    g_string_append_printf (list, "%s%" G_GSIZE_FORMAT, i > 0 ? "," : "", strlen (chunks[i]));
  return list;
}

static void
set_layout (LaunchJob *job)
{
  const char *text = option_text (job, "pipeline-model-parallel-layout"),
             *pattern = option_text (job, "hybrid-layer-pattern");
  guint n;
  if (!text && !(pattern && strchr (pattern, '|')))
    return;
  GString *list
      = text ? read_layout (text, job->import->model.predict_layers, &n) : read_pattern_cuts (pattern, &n);
  text = text ? text : pattern;
  guint pp = job->import->strategy.pp;
  if (list->len == 0)
    import_unknown (job->import, "--pipeline-model-parallel-layout %s", text);
  else if (n % pp != 0 || (pp == 1 && n > 1))
    import_stages_conflict (job->import,
                            "--pipeline-model-parallel-layout: %u parts are no multiple of %u stages", n, pp);
  else if (import_is_given (job->import, "vpp") && n / pp != job->import->strategy.vpp)
    import_stages_conflict (job->import, "--pipeline-model-parallel-layout: %u parts are not %u stages x %u",
                            n, pp, job->import->strategy.vpp);
  else {
    import_set_strategy_number (job->import, "vpp", n / pp);
    import_set_strategy (job->import, "layers_per_chunk", list->str, "--pipeline-model-parallel-layout");
  }
  g_string_free (list, TRUE);
}

/* The first or the last stage has another number of layers; the rest have as many each. Chunks of a stage
 * share its layers evenly. */
static void
set_ends (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 first = option_number (job, "decoder-first-pipeline-num-layers"),
          last = option_number (job, "decoder-last-pipeline-num-layers"), layers = import->model.n_layers;
  guint pp = import->strategy.pp, n_ends = (first > 0) + (last > 0);
  if (n_ends == 0 || layers == 0 || pp <= n_ends)
    return;
  guint vpp = MAX (1, import->strategy.vpp);
  guint64 rest = layers > first + last ? layers - first - last : 0, each = rest / (pp - n_ends);
  if (rest % (pp - n_ends) != 0 || each == 0) {
    import_stages_conflict (import, "%u stages do not share the layers between the first and the last evenly",
                            pp);
    return;
  }
  if (first % vpp != 0 || last % vpp != 0 || each % vpp != 0) {
    import_stages_conflict (import,
                            "%u chunks of a stage do not share the layers of the first, the last and those "
                            "between evenly",
                            vpp);
    return;
  }
  GString *list = g_string_new (NULL);
  for (guint i = 0; i < pp * vpp; i++) {
    guint stage = i % pp;
    guint64 n = stage == 0 && first ? first : stage == pp - 1 && last ? last : each;
    g_string_append_printf (list, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", n / vpp);
  }
  import_set_strategy (
      import, "layers_per_chunk", list->str,
      "--decoder-first-pipeline-num-layers --decoder-last-pipeline-num-layers --account-for-*");
  g_string_free (list, TRUE);
}

/* DeepSpeed shares what a pattern of classes names evenly (runtime/pipe/module.py, _partition_layers): with
 * both embeddings among them, the first and the last stage have a layer less. */
static void
set_partition (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *method = option_text (job, "pp-partition-method");
  guint pp = import->strategy.pp;
  guint64 layers = import->model.n_layers, each = (layers + 2) / pp;
  if (!method || pp == 1 || layers == 0)
    return;
  bool counts_ends = strstr (method, "transformer") && strstr (method, "embedding");
  if (counts_ends && (layers + 2) % pp == 0) {
    GString *list = g_string_new (NULL);
    for (guint i = 0; i < pp; i++)
      g_string_append_printf (list, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                              each - (i == 0) - (i == pp - 1));
    import_set_strategy (import, "layers_per_chunk", list->str, "--pp-partition-method");
    g_string_free (list, TRUE);
  } else if (counts_ends || strcmp (method, "type:transformer") != 0)
    import_unknown (import, "--pp-partition-method %s: layers are taken to be shared evenly", method);
}

/* Stages of an encoder before those of its decoder, which --pipeline-model-parallel-size counts alone where
 * the encoder's are said apart (core 0.9). Layers of either side are shared evenly. */
static void
set_sides (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 own = option_number (job, "encoder-pipeline-model-parallel-size"),
          split = own > 0 ? own : option_number (job, "pipeline-model-parallel-split-rank"),
          encoder = import->model.encoder_layers, decoder = import->model.n_layers - encoder;
  if (encoder == 0 && split > 0)
    import_unknown (import, "stages of an encoder, which the model has not");
  if (encoder == 0 || g_hash_table_contains (job->open, "pp"))
    return;
  if (own > 0)
    import_set_strategy_number (import, "pp", import->strategy.pp + own);
  guint64 pp = import->strategy.pp;
  if (pp > 1 && split == 0)
    import_unknown (import, "%" G_GUINT64_FORMAT " stages, and not how many of them are the encoder's", pp);
  if (pp == 1 || split == 0)
    return;
  if (split >= pp || encoder % split != 0 || decoder % (pp - split) != 0) {
    import_stages_conflict (import,
                            "%" G_GUINT64_FORMAT " layers of the encoder and %" G_GUINT64_FORMAT
                            " of the decoder do not share %" G_GUINT64_FORMAT
                            " stages, of which %" G_GUINT64_FORMAT " are the encoder's",
                            encoder, decoder, pp, split);
    return;
  }
  g_autofree char *list = g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
                                           "x%" G_GUINT64_FORMAT,
                                           encoder / split, split, decoder / (pp - split), pp - split);
  import_set_strategy (import, "layers_per_chunk", list,
                       "--pipeline-model-parallel-split-rank --encoder-pipeline-model-parallel-size");
}

void
megatron_stages (LaunchJob *job)
{
  LsImport *import = job->import;
  if (option_is_on (job, "no-pipeline-parallel") && import->strategy.pp > 1)
    import_stages_conflict (import, "--no-pipeline-parallel, and %u stages", import->strategy.pp);
  set_chunks (job);
  set_layout (job);
  set_ends (job);
  set_partition (job);
  set_sides (job);
  if (import->strategy.pp == 1)
    return;
  if (option_is_there (job, "deepspeed")) { /* pretrain_gpt.py: GPTModelPipe () */
    import_set_strategy (import, "p2p", "deepspeed", "--");
    import_infer (import, "p2p deepspeed: the pipeline is that of DeepSpeed's engine");
  }
  if (option_is_on (job, "enable-zero-bubble")) {
    bool is_vee = option_is_on (job, "zero-bubble-v-schedule");
    import_set_strategy (import, "schedule", is_vee ? "zbv-auto" : "zb-auto", "--enable-zero-bubble");
    import_infer (import, "schedule: --enable-zero-bubble searches one; so does ours");
  } else if (!import_is_open (import, "vpp"))
    import_set_strategy (import, "schedule", import->strategy.vpp > 1 ? "interleaved-1f1b" : "1f1b", "--");
  if (import->strategy.vpp > 1 && !job->is_dump)
    import_set_strategy (import, "p2p",
                         option_is_on (job, "no-overlap-p2p-communication") ? "batched" : "overlapped",
                         "--no-overlap-p2p-communication --overlap-p2p-communication *overlap_p2p_comm");
}
