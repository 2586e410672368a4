/* job/job_fields.c — the table of the knobs that a strategy does not have; a measured step from text. */
#include <lockstep/units.h>
#include <stddef.h>
#include <string.h>

#include "analysis/report.h"
#include "base/printable.h"
#include "data/measured/read_cases.h"
#include "data/measured/read_nccl_tests.h"
#include "data/text/field.h"
#include "job/job.h"

/* --- a measured step from text ------------------------------------------------------------------- */

#define LS_MEASURED_EXPECTED                                                                                 \
  "a time with a unit such as 13.9s; after it, if they are known, tflops=145 (of one rank), memory=61GiB, "  \
  "tokens_per_s=9400"                                                                                        \
  " or tokens_per_s_per_gpu=147, with commas; and :SOURCE"
#define LS_PUBLISHED_EXPECTED                                                                                \
  "seconds from 1e-9 to 1e9, or a time with a unit; after it, if one likes, a source: 13.75:paper or "       \
  "38s:log"

/* Seconds of "13.9s" or, if numbers may stand alone, "13.9". */
static bool
parse_seconds (const char *text, bool may_lack_unit, double *ret_s)
{
  LsTime time;
  char *end;
  if (ls_parse_time (text, &time, NULL)) {
    *ret_s = ls_time_to_s (time);
  } else {
    *ret_s = g_ascii_strtod (text, &end);
    if (!may_lack_unit || end == text || *end)
      return false;
  }
  return *ret_s >= LS_MEASURED_MIN_S && *ret_s <= LS_MEASURED_MAX_S; /* not NAN either */
}

static bool
parse_number (const char *text, double *ret)
{
  char *end;
  double value = g_ascii_strtod (text, &end);
  if (end == text || *end || !(value > 0 && value < 1e30))
    return false;
  *ret = value;
  return true;
}

/* One of "tflops=145". */
static bool
parse_item (const char *item, LsMeasured *m)
{
  uint64_t bytes;
  if (g_str_has_prefix (item, "tflops=")) {
    if (!parse_number (item + strlen ("tflops="), &m->flops_per_gpu))
      return false;
    m->flops_per_gpu *= 1e12;
    return true;
  }
  if (g_str_has_prefix (item, "memory=")) {
    if (!ls_parse_bytes (item + strlen ("memory="), &bytes, NULL) || bytes == 0)
      return false;
    m->memory_bytes = (double) bytes;
    return true;
  }
  if (g_str_has_prefix (item, "tokens_per_s="))
    return parse_number (item + strlen ("tokens_per_s="), &m->tokens_per_s);
  return g_str_has_prefix (item, "tokens_per_s_per_gpu=")
      && parse_number (item + strlen ("tokens_per_s_per_gpu="), &m->tokens_per_s_per_gpu);
}

static void
take (LsMeasured *m, LsMeasured *parsed, const char *source)
{
  ls_measured_clear (m);
  *m = *parsed;
  m->source = source && *source ? ls_printable (source) : NULL;
}

/* False leaves it alone. The second takes seconds without a unit too, and nothing beside the time. */
static bool
parse_measured (const char *text, void *ret_measured)
{
  LsMeasured parsed = { 0 };
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  g_auto (GStrv) items = g_strsplit (parts[0] ? parts[0] : "", ",", -1);
  if (!items[0] || !parse_seconds (items[0], false, &parsed.step_s))
    return false;
  for (char **item = items + 1; *item; item++)
    if (!parse_item (*item, &parsed))
      return false;
  if (parsed.tokens_per_s > 0 && parsed.tokens_per_s_per_gpu > 0)
    return false;
  take (ret_measured, &parsed, parts[1]);
  return true;
}

static bool
parse_published (const char *text, void *ret_measured)
{
  LsMeasured parsed = { .is_published = true };
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  if (!parts[0] || !parse_seconds (parts[0], true, &parsed.step_s))
    return false;
  take (ret_measured, &parsed, parts[1]);
  return true;
}

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

static const char *const measured_words[]
    = { "tflops=N", "memory=SIZE", "tokens_per_s=N", "tokens_per_s_per_gpu=N", NULL };

static const char *const slow_words[] = { "rank=N:FACTOR", "seed=N", "sigma=X", NULL };

static bool
has_slow_rank (const LsSlow *slow, guint64 rank)
{
  for (guint i = 0; i < slow->ranks->len; i++)
    if (g_array_index (slow->ranks, LsSlowRank, i).rank == rank)
      return true;
  return false;
}

/* Of "rank=17:1.3", "seed=1" or "sigma=0.05". */
static bool
apply_slow (const char *item, LsSlow *slow)
{
  char *end;
  if (g_str_has_prefix (item, "rank=")) {
    guint64 rank = g_ascii_strtoull (item + 5, &end, 10);
    if (!g_ascii_isdigit (item[5]) || *end != ':' || !g_ascii_isdigit (end[1]) || rank >= UINT32_MAX
        || has_slow_rank (slow, rank))
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
parse_slow (const char *text, void *ret_slow)
{
  LsSlow *own = ret_slow, slow = { .ranks = g_array_new (FALSE, FALSE, sizeof (LsSlowRank)) };
  g_auto (GStrv) items = g_strsplit (text, ",", -1);
  bool ok = items[0] != NULL;
  for (char **item = items; ok && *item; item++)
    ok = apply_slow (*item, &slow);
  ok = ok && (slow.sigma > 0 || slow.ranks->len > 0);
  ls_slow_clear (ok ? own : &slow);
  if (ok)
    *own = slow;
  return ok;
}

/* One of the reference implementations, or the fast one that it checks; or a check of the run. */
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
  else if (strcmp (item, "fold=walk") == 0)
    o->folds_by_walk = true;
  else if (strcmp (item, "fold=blocks") == 0)
    o->folds_by_walk = false;
  else if (strcmp (item, "check") == 0)
    o->checks = true;
  else
    return false;
  return true;
}

static bool
parse_debug (const char *text, void *ret_options)
{
  LsRunOptions options = *(LsRunOptions *) ret_options;
  g_auto (GStrv) items = g_strsplit (text, ",", -1);
  for (char **item = items; *item; item++)
    if (!apply_debug (*item, &options))
      return false;
  *(LsRunOptions *) ret_options = options;
  return true;
}

#define ROW(topic_, key_, kind_, member_, default_, meaning_)                                                \
#key_, kind_, offsetof(LsJobSpec, member_), .topic = #topic_, .default_text = (default_),                  \
                                              .meaning = (meaning_)
#define FILE_ROW(topic_, key_, default_, meaning_)                                                           \
  ROW (topic_, key_, LS_FIELD_STRING, key_, default_, meaning_), .required = true, .argument = "NAME|FILE"
#define ENUM_ROW(topic_, key_, member_, names_, default_, meaning_)                                          \
  ROW (topic_, key_, LS_FIELD_ENUM, member_, default_, meaning_), .names = (names_)
#define CUSTOM_ROW(topic_, key_, member_, parse_, expected_, argument_, default_, meaning_)                  \
  ROW (topic_, key_, LS_FIELD_CUSTOM, member_, default_, meaning_),                                          \
      .parse = (parse_), .expected = (expected_), .argument = (argument_)
#define USUAL .usual = true

/* The rows "from", "for", "software" and "strategy" tell what they are; ls_job_spec_set() knows them. */
const LsField ls_job_fields[] = {
  { FILE_ROW (job, model, "", "what is trained (lockstep list models), or a Hugging Face config.json"),
    USUAL },
  { ROW (job, from, LS_FIELD_STRING, strategy_knob, "",
         "a launch script, configuration or log of another program; may be repeated"),
    .argument = "FILE", USUAL, .repeated = true },
  { ROW (job, strict, LS_FIELD_BOOL, is_strict, "",
         "with --from, refuse a job of which something is not known that may matter") },
  { FILE_ROW (job, cluster, "", "where (lockstep list clusters); NAME:KEY=VALUE,... changes it"), USUAL },
  { ROW (job, nodes, LS_FIELD_UINT, n_nodes, "the file's, or as many as the GPUs need",
         "nodes of the cluster"), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS, USUAL },
  { CUSTOM_ROW (job, slice, slice, ls_slice_parse, LS_SLICE_EXPECTED, "XxY[xZ]",
                "as the GPUs need, with --nodes the largest",
                "chips of a TPU slice, which is a node, along x, y (and z)") },
  { ROW (layout, segment, LS_FIELD_UINT, segment, "the cluster's",
         "compute trays of a rack that the job takes together, as Slurm's --segment; 16 of 18 is 64 GPUs of "
         "an NVL72"), .min = 1, .max = 1024 },
  { FILE_ROW (job, trace, "",
              "a trace that is replayed instead of a model (lockstep list traces); of the knobs of "
              "parallelism only dp goes with it") },
  { ROW (software, strategy, LS_FIELD_STRING, strategy_knob, "",
         "knobs from a file (lockstep list strategies)"), .argument = "NAME|FILE", USUAL },
  { ROW (software, software, LS_FIELD_STRING, software_name, "that of --for, or of the strategy",
         "what runs the job (lockstep list software): its defaults"), .argument = "NAME|FILE", USUAL },
  { ROW (software, for, LS_FIELD_STRING, software_name, "any",
         "the program that must be able to run it: defaults, headroom, rules"), .argument = "NAME|FILE",
    USUAL },
  { CUSTOM_ROW (memory, headroom, headroom, ls_headroom_parse, LS_HEADROOM_EXPECTED, "SIZE|PERCENT",
                "with --for what the program takes", "memory that must stay free"), USUAL },
  { ENUM_ROW (memory, memory_clock, options.memory.clock, ls_memory_clock_names, "host",
              "when a buffer counts: as the caching allocator sees it, or as tensors live") },
  { ENUM_ROW (memory, memory_allocator, options.memory.allocator, ls_memory_allocator_names, "exact",
              "the bytes asked for, or what PyTorch's caching allocator reserves for them") },
  { ROW (pipeline, order, LS_FIELD_STRING, order, "the schedule's own",
         "the order of the pipeline's actions (CSV; lockstep schedule writes one)"), .required = true,
    .argument = "FILE" },
  { FILE_ROW (measured, gpu_calibration, "own: as its GPU names",
              "what the GPU's kernels take (lockstep calibrate writes such a file)") },
  { FILE_ROW (measured, nccl, "own: as its GPU names",
              "what NCCL reaches (lockstep calibrate --nccl writes such a file)") },
  { CUSTOM_ROW (measured, measured, measured, parse_measured, LS_MEASURED_EXPECTED,
                "TIME[,KEY=VALUE][:SOURCE]", "",
                "a step that was run, to compare with: its time, other logged numbers such as "
                "tflops=145,memory=61GiB, and whose"),
    .words = measured_words },
  { CUSTOM_ROW (measured, published, measured, parse_published, LS_PUBLISHED_EXPECTED, "SECONDS[:SOURCE]", "",
                "the same, of seconds with or without a unit") },
  { ROW (simulation, steps, LS_FIELD_UINT, options.n_steps, "3",
         "steps simulated; fewer if all that follow are known to be the same"), .min = 1, .max = MAX_STEPS },
  { ENUM_ROW (simulation, network, network, network_names, "flow",
              "shared links, no contention, every message of a collective, or all: flow, and how far the "
              "others disagree") },
  { CUSTOM_ROW (simulation, slow, slow, parse_slow,
                "a list of rank=N:FACTOR (0.1 to 100), each rank once, or seed=N,sigma=X (up to 1)",
                "rank=N:FACTOR,...|seed=N,sigma=X", "none",
                "stragglers: ranks whose kernels take so many times as long, or a log-normal spread of "
                "all"),
    .words = slow_words },
  { ENUM_ROW (simulation, fold, options.fold, shortcut_names, "auto",
              "simulate ranks that behave alike once; check: both ways, exit 1 if they differ") },
  { ENUM_ROW (simulation, coarsen, options.coarsen, shortcut_names, "auto",
              "run undisturbed segments as one op, and no further step where it is known to repeat") },
  { ROW (simulation, max_memory, LS_FIELD_BYTES, options.max_memory_bytes, "16GiB",
         "memory that the simulation may take; a job that needs more is refused"), .above = true },
  { "residuals", LS_FIELD_STRING, offsetof (LsJobSpec, residuals), .required = true },
  { "debug", LS_FIELD_CUSTOM, offsetof (LsJobSpec, options), .parse = parse_debug,
    .expected = "a list of evq=ref|fast, solver=ref|fast, runahead=on|off, fold=walk|blocks, check" },
  { NULL },
};
