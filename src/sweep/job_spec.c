#include <stddef.h>
#include <string.h>

#include "io/emit.h"
#include "io/field.h"
#include "io/read_collectives.h"
#include "io/read_strategy.h"
#include "sweep/job.h"
#include "sweep/knobs.h"
#include "sweep/measured_spec.h"

#define MAX_STEPS 1000

static const LsEnumName shortcut_names[] = {
  { "auto", LS_SHORTCUT_AUTO },
  { "off", LS_SHORTCUT_OFF },
  { "check", LS_SHORTCUT_CHECK },
  { NULL },
};

static const LsEnumName network_names[] = {
  { "flow", LS_JOB_NETWORK_FLOW },
  { "alphabeta", LS_JOB_NETWORK_ALPHABETA },
  { "step", LS_JOB_NETWORK_STEP },
  { "all", LS_JOB_NETWORK_ALL },
  { NULL },
};

static const LsEnumName clock_names[] = {
  { "host", LS_MEMORY_HOST },
  { "device", LS_MEMORY_DEVICE },
  { NULL },
};

static const LsEnumName allocator_names[] = {
  { "exact", LS_MEMORY_EXACT },
  { "caching", LS_MEMORY_CACHING },
  { NULL },
};

static bool
parse_measured (const char *text, void *target)
{
  return ls_measured_parse (text, &((LsJobSpec *) target)->measured);
}

static bool
parse_published (const char *text, void *target)
{
  return ls_published_parse (text, &((LsJobSpec *) target)->measured);
}

static bool
parse_slice (const char *text, void *target)
{
  return ls_slice_parse (text, ((LsJobSpec *) target)->slice);
}

/* Of "rank=17:1.3", "seed=1" or "sigma=0.05". */
static bool
apply_slow (const char *item, LsSlow *slow)
{
  char *end;
  if (g_str_has_prefix (item, "rank=")) {
    guint64 rank = g_ascii_strtoull (item + 5, &end, 10);
    if (!g_ascii_isdigit (item[5]) || *end != ':' || !g_ascii_isdigit (end[1]) || rank >= UINT32_MAX)
      return false;
    LsSlowRank r = { (uint32_t) rank, g_ascii_strtod (end + 1, &end) };
    g_array_append_val (slow->ranks, r);
    return *end == '\0' && r.factor >= LS_SLOW_MIN && r.factor <= LS_SLOW_MAX;
  }
  if (g_str_has_prefix (item, "seed=")) {
    guint64 seed = g_ascii_strtoull (item + 5, &end, 10);
    slow->seed = (uint32_t) seed;
    return g_ascii_isdigit (item[5]) && *end == '\0' && seed <= UINT32_MAX;
  }
  if (!g_str_has_prefix (item, "sigma=") || !g_ascii_isdigit (item[6]))
    return false;
  slow->sigma = g_ascii_strtod (item + 6, &end);
  return *end == '\0' && slow->sigma > 0 && slow->sigma <= 1;
}

static bool
parse_slow (const char *text, void *target)
{
  LsJobSpec *spec = target;
  LsSlow slow = { .ranks = g_array_new (FALSE, FALSE, sizeof (LsSlowRank)) };
  g_auto (GStrv) items = g_strsplit (text, ",", -1);
  bool ok = items[0] != NULL;
  for (char **item = items; ok && *item; item++)
    ok = apply_slow (*item, &slow);
  ok = ok && (slow.sigma > 0 || slow.ranks->len > 0);
  LsSlow *unused = ok ? &spec->slow : &slow;
  ls_slow_clear (unused);
  if (ok)
    spec->slow = slow;
  return ok;
}

/* One of the reference implementations, or the fast one that it checks. */
static bool
apply_debug (const char *item, LsRunOptions *o)
{
  if (strcmp (item, "evq=ref") == 0)
    o->queue = LS_QUEUE_REFERENCE;
  else if (strcmp (item, "evq=fast") == 0)
    o->queue = LS_QUEUE_FAST;
  else if (strcmp (item, "solver=ref") == 0)
    o->solver = LS_SOLVER_REFERENCE;
  else if (strcmp (item, "solver=fast") == 0)
    o->solver = LS_SOLVER_FAST;
  else if (strcmp (item, "runahead=off") == 0)
    o->no_run_ahead = true;
  else if (strcmp (item, "runahead=on") == 0)
    o->no_run_ahead = false;
  else
    return false;
  return true;
}

static bool
parse_debug (const char *text, void *target)
{
  LsJobSpec *spec = target;
  LsRunOptions options = spec->options;
  g_auto (GStrv) items = g_strsplit (text, ",", -1);
  for (char **item = items; *item; item++)
    if (!apply_debug (*item, &options))
      return false;
  spec->options = options;
  return true;
}

static bool
parse_headroom (const char *text, void *target)
{
  return ls_headroom_parse (text, &((LsJobSpec *) target)->headroom);
}

#define HOST_COST(name, cost_) \
  { name, LS_FIELD_TIME, offsetof (LsJobSpec, options.host.cost) + (cost_) * sizeof (LsTime), .max = (double) LS_S }

static const LsField job_fields[] = {
  { "model", LS_FIELD_STRING, offsetof (LsJobSpec, model), .required = true },
  { "trace", LS_FIELD_STRING, offsetof (LsJobSpec, trace), .required = true },
  { "order", LS_FIELD_STRING, offsetof (LsJobSpec, order), .required = true },
  { "cluster", LS_FIELD_STRING, offsetof (LsJobSpec, cluster), .required = true },
  { "gpu_calibration", LS_FIELD_STRING, offsetof (LsJobSpec, gpu_calibration), .required = true },
  { "nccl", LS_FIELD_STRING, offsetof (LsJobSpec, nccl), .required = true },
  { "residuals", LS_FIELD_STRING, offsetof (LsJobSpec, residuals), .required = true },
  { "nodes", LS_FIELD_UINT, offsetof (LsJobSpec, n_nodes), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS },
  { "slice", LS_FIELD_CUSTOM, .parse = parse_slice, .expected = LS_SLICE_EXPECTED },
  { "steps", LS_FIELD_UINT, offsetof (LsJobSpec, options.n_steps), .min = 1, .max = MAX_STEPS },
  HOST_COST ("host_launch", LS_HOST_LAUNCH),
  HOST_COST ("host_comm", LS_HOST_COMM),
  HOST_COST ("host_sync", LS_HOST_SYNC),
  HOST_COST ("host_view", LS_HOST_VIEW),
  HOST_COST ("host_batch", LS_HOST_BATCH),
  { "max_memory", LS_FIELD_BYTES, offsetof (LsJobSpec, options.max_memory_bytes), .above = true },
  { "fold", LS_FIELD_ENUM, offsetof (LsJobSpec, options.fold), .names = shortcut_names },
  { "coarsen", LS_FIELD_ENUM, offsetof (LsJobSpec, options.coarsen), .names = shortcut_names },
  { "slow", LS_FIELD_CUSTOM, .parse = parse_slow,
    .expected = "a list of rank=N:FACTOR (0.1 to 100), or seed=N,sigma=X (up to 1)" },
  { "network", LS_FIELD_ENUM, offsetof (LsJobSpec, network), .names = network_names },
  { "memory_clock", LS_FIELD_ENUM, offsetof (LsJobSpec, options.memory.clock), .names = clock_names },
  { "memory_allocator", LS_FIELD_ENUM, offsetof (LsJobSpec, options.memory.allocator), .names = allocator_names },
  { "headroom", LS_FIELD_CUSTOM, .parse = parse_headroom, .expected = LS_HEADROOM_EXPECTED },
  { "measured", LS_FIELD_CUSTOM, .parse = parse_measured, .expected = LS_MEASURED_EXPECTED },
  { "published", LS_FIELD_CUSTOM, .parse = parse_published, .expected = LS_PUBLISHED_EXPECTED },
  { "debug", LS_FIELD_CUSTOM, .parse = parse_debug,
    .expected = "a list of evq=ref|fast, solver=ref|fast, runahead=on|off" },
  { NULL },
};

void
ls_job_spec_init (LsJobSpec *spec)
{
  *spec = (LsJobSpec){ .network = LS_JOB_NETWORK_FLOW };
  ls_strategy_init (&spec->strategy);
  ls_run_options_init (&spec->options);
  spec->options.fold = spec->options.coarsen = LS_SHORTCUT_AUTO;
}

LsHardware *
ls_job_hardware_load (const LsJobSpec *spec, LsDiagList *diags)
{
  const LsMeasuredFiles files = { spec->gpu_calibration, spec->nccl };
  return ls_hardware_load_with (spec->cluster, &files, diags);
}

static GHashTable *
said_of (LsJobSpec *spec)
{
  if (!spec->said)
    spec->said = g_hash_table_new (g_str_hash, g_str_equal);
  return spec->said;
}

static gpointer
copy_text (gconstpointer text, gpointer data)
{
  return g_strdup (text);
}

static void
software_clear (gpointer software)
{
  ls_software_clear (software);
}

void
ls_job_spec_clear (LsJobSpec *spec)
{
  g_free (spec->model);
  g_free (spec->cluster);
  g_free (spec->gpu_calibration);
  g_free (spec->nccl);
  g_free (spec->trace);
  g_free (spec->order);
  g_free (spec->residuals);
  g_free (spec->strategy_knob);
  ls_measured_clear (&spec->measured);
  ls_slow_clear (&spec->slow);
  ls_strategy_clear (&spec->strategy);
  if (spec->software)
    g_atomic_rc_box_release_full (spec->software, software_clear);
  g_free (spec->software_name);
  g_clear_pointer (&spec->said, g_hash_table_unref);
  g_clear_pointer (&spec->options_said, g_ptr_array_unref);
  ls_job_spec_init (spec);
}

void
ls_job_spec_copy (const LsJobSpec *spec, LsJobSpec *ret_copy)
{
  *ret_copy = *spec;
  char **texts[] = { &ret_copy->model, &ret_copy->cluster, &ret_copy->gpu_calibration, &ret_copy->nccl, &ret_copy->trace, &ret_copy->order,
                     &ret_copy->residuals, &ret_copy->strategy_knob, &ret_copy->software_name };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    *texts[i] = g_strdup (*texts[i]);
  ret_copy->slow.ranks = spec->slow.ranks ? g_array_copy (spec->slow.ranks) : NULL;
  ls_measured_copy (&ret_copy->measured, &spec->measured);
  ls_strategy_copy (&ret_copy->strategy, &spec->strategy);
  ret_copy->software = spec->software ? g_atomic_rc_box_acquire (spec->software) : NULL;
  ret_copy->program = spec->program ? ret_copy->software : NULL;
  ret_copy->said = NULL;
  GHashTableIter keys;
  gpointer key;
  if (spec->said)
    for (g_hash_table_iter_init (&keys, spec->said); g_hash_table_iter_next (&keys, &key, NULL);)
      g_hash_table_add (said_of (ret_copy), key);
  ret_copy->options_said = spec->options_said ? g_ptr_array_copy (spec->options_said, copy_text, NULL) : NULL;
}

/* --- the program that it is for ----------------------------------------------------------------- */

/* Those that a job can be for. */
static char *
known_programs (void)
{
  g_autoptr (GArray) all = ls_softwares_load ();
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < all->len; i++) {
    const LsSoftwareSpec *s = &g_array_index (all, LsSoftwareSpec, i);
    if (s->emit)
      g_string_append_printf (out, "%s%s", out->len > 0 ? ", " : "", s->name);
  }
  return g_string_free (out, FALSE);
}

static gboolean
refuse_program (const char *name, LsDiagList *diags)
{
  g_autofree char *known = known_programs ();
  ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, NULL, NULL, NULL, "--for: expected a program that a job can be written for, which are %s; got \"%s\"",
               known, name);
  return FALSE;
}

/* Whether the time for it has not passed. */
static gboolean
check_software (const LsJobSpec *spec, bool is_for, LsDiagList *diags)
{
  const char *flag = is_for ? "--for" : "--software", *other = is_for ? "--software" : "--for";
  bool is_named = spec->software && (spec->program != NULL) != is_for;
  if (is_named)
    ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, NULL, NULL, NULL, "%s: the program was named by %s", flag, other);
  else if (spec->said && g_hash_table_size (spec->said) > 0)
    ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, NULL, NULL, NULL, "%s: expected before all knobs of a strategy, as it sets their defaults", flag);
  else
    return TRUE;
  return FALSE;
}

/* is_for: a job is to be legal there. */
static gboolean
set_software (LsJobSpec *spec, const char *name, bool is_for, LsDiagList *diags)
{
  LsSoftwareSpec software;
  if (!check_software (spec, is_for, diags) || !ls_software_load (name, &software, diags))
    return FALSE;
  if (is_for && !software.emit) {
    ls_software_clear (&software);
    return refuse_program (name, diags);
  }
  if (spec->software)
    g_atomic_rc_box_release_full (spec->software, software_clear);
  g_free (spec->software_name);
  spec->software = g_atomic_rc_box_dup (sizeof software, &software);
  spec->program = is_for ? spec->software : NULL;
  spec->software_name = g_strdup (name);
  ls_strategy_clear (&spec->strategy);
  ls_strategy_copy (&spec->strategy, &software.defaults);
  if (!spec->strategy_knob)
    spec->strategy_knob = g_strdup (is_for ? "for" : "software");
  return TRUE;
}

gboolean
ls_software_check (const LsSoftwareSpec *software, const LsModel *model, const LsStrategy *strategy, GError **error)
{
  const LsEmitJob job = { .model = model, .strategy = strategy, .title = "" };
  return !software || ls_emit_check (&job, software->emit, error);
}

/* --- what is set -------------------------------------------------------------------------------- */

/* The software that a strategy file names, unless one was named before it. */
static gboolean
load_its_software (LsJobSpec *spec, const char *name_or_path, LsDiagList *diags)
{
  g_autofree char *name = NULL;
  if (!ls_strategy_find_software (name_or_path, &name, diags))
    return FALSE;
  return spec->software || !name || set_software (spec, name, false, diags);
}

gboolean
ls_job_spec_load_strategy (LsJobSpec *spec, const char *name_or_path, LsDiagList *diags)
{
  LsStrategy strategy;
  if (!load_its_software (spec, name_or_path, diags)
      || !ls_strategy_load_over (name_or_path, &spec->strategy, &strategy, said_of (spec), diags))
    return FALSE;
  ls_strategy_clear (&spec->strategy);
  spec->strategy = strategy;
  if (spec->software) {
    g_free (spec->strategy.software);
    spec->strategy.software = g_strdup (spec->software->name);
  }
  if (!spec->strategy_knob)
    spec->strategy_knob = g_strdup ("strategy");
  return TRUE;
}

/* The last of several counts. */
static void
remember_option (LsJobSpec *spec, const char *key, const char *value)
{
  g_autofree char *flag = g_strdelimit (g_strdup_printf ("--%s ", key), "_", '-');
  g_autofree char *quoted = ls_shell_quote (value);
  if (!spec->options_said)
    spec->options_said = g_ptr_array_new_with_free_func (g_free);
  for (guint i = spec->options_said->len; i-- > 0;)
    if (g_str_has_prefix (spec->options_said->pdata[i], flag))
      g_ptr_array_remove_index (spec->options_said, i);
  g_ptr_array_add (spec->options_said, g_strconcat (flag, quoted, NULL));
}

gboolean
ls_job_spec_set (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  const LsField *field = ls_field_find (job_fields, key);
  if (strcmp (key, "for") == 0 || strcmp (key, "software") == 0)
    return set_software (spec, value, strcmp (key, "for") == 0, diags);
  if (field) {
    bool ok = ls_field_set_text (job_fields, spec, key, value, diags);
    if (ok && strcmp (field->key, "model") != 0 && strcmp (field->key, "cluster") != 0 && strcmp (field->key, "debug") != 0)
      remember_option (spec, key, value);
    if (ok && strcmp (field->key, "host_launch") == 0)
      spec->options.host.launch_is_given = true;
    return ok;
  }
  if (ls_field_find (ls_strategy_fields, key)) {
    if (!ls_field_set_text (ls_strategy_fields, &spec->strategy, key, value, diags))
      return FALSE;
    g_hash_table_add (said_of (spec), (gpointer) ls_field_find (ls_strategy_fields, key)->key);
    if (!spec->strategy_knob && strcmp (key, "dp") != 0)
      spec->strategy_knob = g_strdup (key);
    return TRUE;
  }
  ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, NULL, NULL, NULL, "there is no knob \"%s\"", key);
  return FALSE;
}

gboolean
ls_job_spec_options (const LsJobSpec *spec, LsRunOptions *ret_options, GError **error)
{
  *ret_options = spec->options;
  ret_options->stragglers = spec->slow.ranks ? &spec->slow : NULL;
  ret_options->network = spec->network == LS_JOB_NETWORK_STEP        ? LS_NETWORK_STEP
                         : spec->network == LS_JOB_NETWORK_ALPHABETA ? LS_NETWORK_ALPHABETA
                                                                     : LS_NETWORK_FLOW;
  return TRUE;
}
