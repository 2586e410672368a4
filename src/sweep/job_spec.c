#include <stddef.h>
#include <string.h>

#include "io/field.h"
#include "io/read_cases.h"
#include "io/read_collectives.h"
#include "io/read_strategy.h"
#include "sweep/job.h"

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

/* "13.75" or "13.75:who says so" */
static bool
parse_published (const char *text, void *target)
{
  LsJobSpec *spec = target;
  char *end;
  double seconds = g_ascii_strtod (text, &end);
  bool is_step_time = seconds >= LS_MEASURED_MIN_S && seconds <= LS_MEASURED_MAX_S; /* not NAN either */
  if (end == text || (*end && *end != ':') || !is_step_time)
    return false;
  spec->published_s = seconds;
  g_free (spec->published_source);
  spec->published_source = *end && end[1] ? g_strdup (end + 1) : NULL;
  return true;
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

#define HOST_COST(name, cost_) \
  { name, LS_FIELD_TIME, offsetof (LsJobSpec, options.host.cost) + (cost_) * sizeof (LsTime), .max = (double) LS_S }

static const LsField job_fields[] = {
  { "model", LS_FIELD_STRING, offsetof (LsJobSpec, model), .required = true },
  { "trace", LS_FIELD_STRING, offsetof (LsJobSpec, trace), .required = true },
  { "order", LS_FIELD_STRING, offsetof (LsJobSpec, order), .required = true },
  { "cluster", LS_FIELD_STRING, offsetof (LsJobSpec, cluster), .required = true },
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
  { "published", LS_FIELD_CUSTOM, .parse = parse_published,
    .expected = "seconds from 1e-9 to 1e9, or these and a source such as 13.75:paper" },
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

void
ls_job_spec_clear (LsJobSpec *spec)
{
  g_free (spec->model);
  g_free (spec->cluster);
  g_free (spec->trace);
  g_free (spec->order);
  g_free (spec->residuals);
  g_free (spec->strategy_knob);
  g_free (spec->published_source);
  ls_slow_clear (&spec->slow);
  ls_strategy_clear (&spec->strategy);
  ls_job_spec_init (spec);
}

void
ls_job_spec_copy (const LsJobSpec *spec, LsJobSpec *ret_copy)
{
  *ret_copy = *spec;
  char **texts[] = { &ret_copy->model, &ret_copy->cluster, &ret_copy->trace, &ret_copy->order, &ret_copy->residuals,
                     &ret_copy->strategy_knob, &ret_copy->published_source };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    *texts[i] = g_strdup (*texts[i]);
  ret_copy->slow.ranks = spec->slow.ranks ? g_array_copy (spec->slow.ranks) : NULL;
  ls_strategy_copy (&ret_copy->strategy, &spec->strategy);
}

gboolean
ls_job_spec_set (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  const LsField *field = ls_field_find (job_fields, key);
  if (field) {
    bool ok = ls_field_set_text (job_fields, spec, key, value, diags);
    if (ok && strcmp (field->key, "host_launch") == 0)
      spec->options.host.launch_is_given = true;
    return ok;
  }
  if (ls_field_find (ls_strategy_fields, key)) {
    if (!ls_field_set_text (ls_strategy_fields, &spec->strategy, key, value, diags))
      return FALSE;
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
