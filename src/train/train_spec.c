/* train/train_spec.c — a training run's knobs from text. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/doublings.h"
#include "base/list.h"
#include "data/text/override.h"
#include "train/train_steps.h"

#define MAX_SEEDS  100000
#define MAX_SPARES 100000
#define MAX_BATCH  16777216

/* --- values ---------------------------------------------------------------------------- */

static bool
add_batches (char *word, GArray *list)
{
  return ls_doublings_add (word, MAX_BATCH, list);
}

/* As --global-batch has it: 1k is 1024. */
static bool
read_batch (const char *text, double *ret_batch)
{
  uint64_t n;
  if (!ls_parse_count (text, &n, NULL) || n < 1 || n > MAX_BATCH)
    return false;
  *ret_batch = (double) n;
  return true;
}

static bool
parse_ramp (const char *text, void *ret_ramp)
{
  LsBatchRamp ramp;
  g_auto (GStrv) words = g_strsplit (text, ":", -1);
  if (g_strv_length (words) != 3 || !read_batch (words[0], &ramp.start)
      || !read_batch (words[1], &ramp.increment) || !ls_count_read (words[2], &ramp.samples))
    return false;
  *(LsBatchRamp *) ret_ramp = ramp;
  return true;
}

/* What is best, and parts and multiples of it. */
static void
add_scan (GArray *list)
{
  static const double times[] = { 1, 0.25, 0.5, M_SQRT1_2, M_SQRT2, 2, 4 };
  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    ls_list_add (list, &(LsEvery) { LS_EVERY_BEST, times[i] });
}

/* "auto", "scan", "100", "30min". */
static bool
add_every (char *word, GArray *list)
{
  LsTime time;
  double steps;
  if (strcmp (word, "scan") == 0)
    add_scan (list);
  else if (strcmp (word, "auto") == 0)
    ls_list_add (list, &(LsEvery) { LS_EVERY_BEST, 1 });
  else if (ls_parse_time (word, &time, NULL) && time > 0)
    ls_list_add (list, &(LsEvery) { LS_EVERY_SECONDS, ls_time_to_s (time) });
  else if (ls_count_read (word, &steps))
    ls_list_add (list, &(LsEvery) { LS_EVERY_STEPS, round (steps) });
  else
    return false;
  return true;
}

static bool
add_spares (char *word, GArray *list)
{
  uint64_t n;
  uint32_t spares = LS_SPARES_ANY;
  if (strcmp (word, "any") != 0) {
    if (!ls_parse_count (word, &n, NULL) || n > MAX_SPARES)
      return false;
    spares = (uint32_t) n;
  }
  g_array_append_val (list, spares);
  return true;
}

/* --- knobs ----------------------------------------------------------------------------- */

static const LsEnumName places[] = { { "storage", LS_CHECKPOINT_STORAGE },
                                     { "peer", LS_CHECKPOINT_PEER },
                                     { "local", LS_CHECKPOINT_LOCAL },
                                     { NULL } };

#define KNOB(key_, kind_, member_) key_, kind_, offsetof (LsTrainSpec, member_)
#define LIST(key_, member_, type_) KNOB (key_, LS_FIELD_CUSTOM, member_), .element_size = sizeof (type_)

const LsField ls_train_fields[] = {
  { KNOB ("train_steps", LS_FIELD_CUSTOM, steps), .parse = ls_count_read, .expected = LS_COUNT_EXPECTED },
  { KNOB ("batch_ramp", LS_FIELD_CUSTOM, ramp), .parse = parse_ramp,
    .expected = "START:INCREMENT:SEQUENCES such as 192:16:9765625" },
  { LIST ("batches", batches, uint32_t), .add = add_batches,
    .expected = "global batches such as 512,1024, or their doublings 512..8192" },
  { KNOB ("days", LS_FIELD_DOUBLE, days), .min = 1e-6, .max = 10000 },
  { KNOB ("reliability", LS_FIELD_STRING, reliability), .required = true },
  { KNOB ("jitter", LS_FIELD_STRING, jitter), .required = true },
  { KNOB ("jitter_seed", LS_FIELD_UINT, jitter_seed) },
  { KNOB ("checkpoint_to", LS_FIELD_ENUM, checkpoint_to), .names = places },
  { KNOB ("checkpoint_async", LS_FIELD_BOOL, checkpoint_async), .argument = "0|1" },
  { LIST ("checkpoint_every", every, LsEvery), .add = add_every, .argument = "N|TIME",
    .expected = "auto, scan, steps such as 100 or a time such as \"30min\"; several with commas" },
  { KNOB ("checkpoint_save", LS_FIELD_TIME, given.save) },
  { KNOB ("checkpoint_write", LS_FIELD_TIME, given.write) },
  { KNOB ("checkpoint_read", LS_FIELD_TIME, given.read) },
  { KNOB ("storage_bandwidth", LS_FIELD_RATE, storage_bytes_per_s), .above = true, .argument = "RATE" },
  { KNOB ("storage_every", LS_FIELD_UINT, storage_every), .min = 1, .max = 1e6 },
  { LIST ("spares", spares, uint32_t), .add = add_spares, .argument = "N",
    .expected = "any, or whole numbers up to " G_STRINGIFY (MAX_SPARES) " such as 4 or 0,2,4" },
  { KNOB ("elastic", LS_FIELD_BOOL, elastic), .argument = "0|1" },
  { KNOB ("seeds", LS_FIELD_UINT, seeds), .min = 1, .max = MAX_SEEDS },
  { KNOB ("first_seed", LS_FIELD_UINT, seed), .max = UINT32_MAX - MAX_SEEDS },
  { KNOB ("gpu_hour", LS_FIELD_DOUBLE, price.usd_per_gpu_hour), .max = 1e6 },
  { KNOB ("gpu_watts", LS_FIELD_DOUBLE, price.gpu_watts), .above = true, .max = 1e6 },
  { KNOB ("pue", LS_FIELD_DOUBLE, price.pue), .min = 1, .max = 100 },
  { KNOB ("co2", LS_FIELD_DOUBLE, co2_g_per_kwh), .above = true, .max = 1e5 },
  { NULL },
};

void
ls_train_spec_init (LsTrainSpec *spec)
{
  *spec = (LsTrainSpec) {
    .said = g_hash_table_new (g_str_hash, g_str_equal),
    .phases = g_ptr_array_new_with_free_func (g_free),
    .given = { LS_TIME_NEVER, LS_TIME_NEVER, LS_TIME_NEVER },
    .storage_every = 10,
    .seeds = 100,
    .seed = 1,
    .jitter_seed = 1,
    .price = LS_PRICE_NOT_GIVEN,
  };
  ls_job_spec_init (&spec->job);
}

void
ls_train_spec_clear (LsTrainSpec *spec)
{
  ls_job_spec_clear (&spec->job);
  ls_fields_clear (ls_train_fields, spec);
  ls_loss_ask_clear (&spec->goal);
  g_clear_pointer (&spec->said, g_hash_table_unref);
  g_clear_pointer (&spec->phases, g_ptr_array_unref);
}

gboolean
ls_train_spec_set (LsTrainSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  if (strcmp (key, "phase") == 0) {
    g_ptr_array_add (spec->phases, g_strdup (value));
    return TRUE;
  }
  if (ls_loss_ask_has (key))
    return ls_loss_ask_set (&spec->goal, key, value, diags);
  const LsField *own = ls_field_find (ls_train_fields, key);
  if (!own)
    return ls_job_spec_set (&spec->job, key, value, diags);
  g_hash_table_add (spec->said, (gpointer) own->key);
  return ls_field_set_text (ls_train_fields, spec, key, value, diags);
}

/* --- phases ---------------------------------------------------------------------------- */

static bool
set_size (const char *key, const char *value, LsPhaseSize *size, LsDiagList *diags)
{
  double *count = strcmp (key, "tokens") == 0 ? &size->tokens : &size->steps;
  return ls_count_read (value, count)
      || ls_diag_fail (diags, LS_ERROR_USAGE, "%s: expected %s; got \"%s\"", key, LS_COUNT_EXPECTED, value);
}

static bool
set_phase_knob (const char *setting, LsJobSpec *job, LsPhaseSize *size, LsDiagList *diags)
{
  g_auto (GStrv) pair = g_strsplit (setting, "=", 2);
  if (!pair[0] || !pair[1])
    return ls_diag_fail (diags, LS_ERROR_USAGE, "expected key=value; got \"%s\"", setting);
  if (strcmp (pair[0], "tokens") == 0 || strcmp (pair[0], "steps") == 0)
    return set_size (pair[0], pair[1], size, diags);
  if (strcmp (pair[0], "cluster") == 0 || strcmp (pair[0], "model") == 0)
    return ls_diag_fail (diags, LS_ERROR_USAGE, "%s: all phases train one model on one cluster", pair[0]);
  if (strcmp (pair[0], "name") == 0) {
    g_free (size->name);
    size->name = g_strdup (pair[1]);
    return true;
  }
  return ls_job_spec_set (job, pair[0], pair[1], diags);
}

gboolean
ls_train_phase_read (const char *text, LsJobSpec *job, LsPhaseSize *ret_size, GError **error)
{
  LsPhaseSize size = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) settings = ls_override_split (text);
  gsize n_read = 0;
  bool ok = ls_override_check (NULL, text, diags);
  for (guint i = 0; i < settings->len; i++) {
    ok &= set_phase_knob (settings->pdata[i], job, &size, diags);
    n_read += strlen (settings->pdata[i]) + 1;
  }
  if (n_read <= strlen (text))
    ok &= set_phase_knob (text + n_read, job, &size, diags);
  if (ok && size.tokens > 0 && size.steps > 0)
    ok = ls_diag_fail (diags, LS_ERROR_USAGE, "expected tokens or steps; got both");
  if (ok) {
    *ret_size = size;
    return TRUE;
  }
  g_free (size.name);
  ls_diag_list_to_error (diags, error);
  g_prefix_error (error, "--phase \"%s\": ", text);
  return FALSE;
}
