/* job/budget.c — memory of a job: what it will take, before it is built, and how much it is to leave
 * free. */
#include "job/job_steps.h"

#include <lockstep/error.h>
#include <lockstep/units.h>

#include "exec/memory/memory.h"
#include "exec/replay/timeline.h"
#include "job/job.h"
#include "job/softwares.h"

/* --- how much memory a job is to leave free, and whose program it is ----------------------------- */

bool
ls_headroom_parse (const char *text, LsHeadroomAsk *ret_ask)
{
  const char *expected;
  LsHeadroomAsk ask = { .is_set = true };
  char *end;
  double percent = g_ascii_strtod (text, &end);
  bool is_number = g_ascii_isdigit (*text) && end != text;
  if (is_number && end[0] == '%' && end[1] == '\0' && percent < 100)
    ask.percent = percent;
  else if (!(is_number && *end == '\0' && percent == 0) && !ls_parse_bytes (text, &ask.bytes, &expected))
    return false;
  *ret_ask = ask;
  return true;
}

static void
add_part (LsHeadroom *h, const char *what, const char *source, uint64_t bytes)
{
  LsHeadroomPart part = { g_strdup (what), g_strdup (source), bytes };
  if (!h->parts)
    h->parts = g_array_new (FALSE, FALSE, sizeof (LsHeadroomPart));
  g_array_append_val (h->parts, part);
  h->bytes += bytes;
}

/* Of nodes of several kinds of the largest memory: no rank is left with less than it asks for. */
static uint64_t
share_of (const LsClusterSpec *spec, double percent)
{
  uint64_t most = 0;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (spec); k++)
    most = MAX (most, ls_cluster_spec_of_kind (spec, k)->gpu.hbm_bytes);
  return (uint64_t) (percent / 100 * (double) most);
}

void
ls_headroom_of (const LsHeadroomAsk *ask, const LsSoftwareSpec *software, const LsSoftwareSpec *own,
                int dp_kind, const LsHardware *hardware, const LsMemoryOptions *memory, LsHeadroom *ret)
{
  const char *architecture = ls_hardware_architecture (hardware);
  const LsSoftwareSpec *named = software ? NULL : own,
                       *owner = software ? software
      : named && named->headroom         ? named
      : named                            ? ls_softwares_find (dp_kind, architecture)
                                         : ls_softwares_textbook ();
  const LsClusterSpec *spec = &hardware->spec;
  *ret = (LsHeadroom) { .is_asked = ask->is_set || software };
  if (ask->is_set) {
    ret->bytes = ask->bytes + share_of (spec, ask->percent);
    return;
  }
  for (guint i = 0; owner && owner->headroom && i < owner->headroom->len; i++) {
    const LsHeadroomItem *item = &g_array_index (owner->headroom, LsHeadroomItem, i);
    bool is_simulated = item->is_of_allocator && memory->allocator == LS_MEMORY_CACHING;
    if (!is_simulated && ls_software_names_architecture (item->runs_on, architecture))
      add_part (ret, item->what, item->source, item->bytes + share_of (spec, item->percent));
  }
  bool is_others = named && ret->parts && g_strcmp0 (named->program, owner->program) != 0;
  ret->program = is_others ? g_strdup_printf ("%s, as %s has it", named->program, owner->program)
      : ret->parts         ? g_strdup (owner->program)
                           : NULL;
}

/* Ops of a step that leave a span, on one rank of each role. */
static double
count_spans (const LsPlan *plan)
{
  double n = 0;
  g_autofree uint32_t *of_segment = g_new0 (uint32_t, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      LsOpKind kind = (LsOpKind) plan->segments[s].ops[i].kind;
      of_segment[s] += ls_op_takes (kind, LS_TAKES_GPU) || ls_op_has (kind, LS_HAS_CALL);
    }
  for (uint32_t role = 0; role < plan->n_roles; role++)
    for (uint32_t i = 0; i < plan->programs[role].n_instances; i++)
      n += of_segment[plan->programs[role].instances[i].segment];
  return n;
}

gboolean
ls_budget_check_plan (const LsPlan *plan, uint64_t max_bytes, GError **error)
{
  double n = count_spans (plan), bytes = MAX (2 * n * sizeof (LsSpan), (double) ls_memory_walk_bytes (plan));
  if (max_bytes == 0 || bytes <= (double) max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)), *may = ls_format_bytes (max_bytes);
  return ls_fail (error, LS_ERROR_LIMIT,
                  "a step of %u micro-batches, %.3g ops on a rank of each stage, needs %s of memory or more;"
                  " --max-memory is %s",
                  plan->n_micro_batches, n, need, may);
}

/* Of a layer in each direction, whatever it is made of: query-key-value, attention, projection, and two
 * products of an MLP or of experts. */
#define MIN_KERNELS_OF_LAYER 5

gboolean
ls_budget_check_passes (const LsStrategy *s, const LsModel *m, uint64_t max_bytes, GError **error)
{
  uint64_t n_micro_batches = ls_strategy_most_micro_batches (s);
  double n = 2.0 * MIN_KERNELS_OF_LAYER * (double) n_micro_batches * m->n_layers,
         bytes = 2 * n * sizeof (LsSpan);
  if (max_bytes == 0 || bytes <= (double) max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)), *may = ls_format_bytes (max_bytes);
  return ls_fail (error, LS_ERROR_LIMIT,
                  "a step of %" G_GUINT64_FORMAT
                  " micro-batches through %u layers needs %s of memory or more;"
                  " --max-memory is %s",
                  n_micro_batches, m->n_layers, need, may);
}
