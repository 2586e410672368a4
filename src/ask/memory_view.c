#include "ask/memory_view.h"

#include <math.h>

#include <lockstep/error.h>

static LsMemoryRow
row_of (const LsJobResult *r, const LsClassMemory *m)
{
  const LsProgram *p = &r->plan->programs[m->role];
  LsMemoryRow row = { .m = m, .stage = p->stage, .formula = { NAN, NAN, NAN, NAN } };
  if (m->peak_op != UINT16_MAX) {
    const LsInstance *instance = &p->instances[m->peak_instance];
    const LsSegment *seg = &r->plan->segments[instance->segment];
    row.peak_mb = instance->mb;
    row.peak_segment = seg->name;
    row.peak_op = seg->ops[m->peak_op].name ? seg->ops[m->peak_op].name : "op";
  }
  if (r->model.name)
    row.formula = ls_memory_formula (&r->model, &r->strategy, p->stage, p->n_params);
  return row;
}

static int
compare_rows (gconstpointer x, gconstpointer y)
{
  const LsMemoryRow *a = x, *b = y;
  if (a->stage != b->stage)
    return a->stage < b->stage ? -1 : 1;
  return a->m->rank < b->m->rank ? -1 : a->m->rank > b->m->rank;
}

void
ls_memory_table_init (LsMemoryTable *t, const LsJobResult *r, const char *title, const char *subtitle,
                      const LsMemoryAdvice *advice)
{
  *t = (LsMemoryTable) {
    .title = title,
    .subtitle = subtitle,
    .memory = r->memory,
    .rows = g_array_new (FALSE, FALSE, sizeof (LsMemoryRow)),
    .step_time_s = r->report.step_time_s,
    .capacity_bytes = r->report.capacity_bytes,
    .context_bytes = r->report.context_bytes,
    .fits = r->report.fits,
    .headroom = &r->report.headroom,
    .advice = advice,
  };
  for (uint32_t i = 0; i < r->memory->n_classes; i++)
    if (r->memory->classes[i].count > 0) {
      LsMemoryRow row = row_of (r, &r->memory->classes[i]);
      g_array_append_val (t->rows, row);
    }
  g_array_sort (t->rows, compare_rows);
}

static gboolean
check_rank (const LsJobResult *r, uint32_t rank, GError **error)
{
  if (rank < r->plan->n_ranks)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "there is no rank %u: the job has %u", rank,
               r->plan->n_ranks);
  return FALSE;
}

static gboolean
check_spans (const LsJobResult *r, uint32_t rank, GError **error)
{
  if (r->timeline->ranks[ls_timeline_representative (r->timeline, rank)].n > 0)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               "rank %u has no spans of its own: the table of `lockstep memory` names ranks that have", rank);
  return FALSE;
}

GArray *
ls_memory_curve_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank, GError **error)
{
  if (!check_rank (r, rank, error) || !check_spans (r, rank, error))
    return NULL;
  const LsMemoryInput in = ls_job_result_memory_input (r, r->hardware, options);
  return ls_memory_curve (&in, ls_timeline_representative (r->timeline, rank));
}

static gboolean
check_history (const LsMemoryHistory *h, GError **error)
{
  if (h->blocks->len > 0 || h->n_changes > 0)
    return TRUE;
  g_set_error_literal (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                       "the trace says nothing of memory: no op allocates, and nothing is held throughout");
  return FALSE;
}

LsMemoryHistory *
ls_memory_history_of (const LsJobResult *r, const LsMemoryOptions *options, uint32_t rank,
                      uint64_t max_changes, GError **error)
{
  if (r->cluster->spec.interior == LS_INTERIOR_TORUS) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                         "TPUs have no caching allocator of PyTorch, whose work a snapshot shows: XLA places "
                         "buffers when it compiles");
    return NULL;
  }
  if (!check_rank (r, rank, error) || (r->memory->is_timed && !check_spans (r, rank, error)))
    return NULL;
  const LsMemoryInput in = ls_job_result_memory_input (r, r->hardware, options);
  g_autoptr (LsMemoryHistory) h = ls_memory_history_new (&in, rank, max_changes);
  return check_history (h, error) ? g_steal_pointer (&h) : NULL;
}

void
ls_memory_table_clear (LsMemoryTable *t)
{
  g_clear_pointer (&t->rows, g_array_unref);
}
