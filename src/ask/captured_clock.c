/* ask/captured_clock.c — what a program's clock follows: of each line of a captured step that takes time on a
 * stream, how long it takes there in the replay, and what it costs the host. */
#include "ask/captured.h"

#include <stdlib.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/text/write_file.h"
#include "data/traces/traces.h"
#include "exec/replay/timeline.h"
#include "job/job.h"

#include "ask/captured_clock_text.h"

/* Of a line: when it was on its stream, and what the host did for it. */
typedef struct {
  LsTime begin, end; /* LS_TIME_NEVER: it is part of another one */
  LsTime host;
} Work;

/* Who was recorded in the place of the rank; each role has one. */
static uint32_t
recorded_rank (const LsTimeline *t, uint32_t rank)
{
  uint32_t found = ls_timeline_representative (t, rank);
  for (uint32_t row = 0; row < t->n_rows && ls_timeline_spans (t, found)->n == 0; row++)
    if (ls_plan_role (t->plan, ls_timeline_rank (t, row)) == ls_plan_role (t->plan, rank))
      found = ls_timeline_rank (t, row);
  return found;
}

/* What the host does for each op; of_instance: [n_instances], where its first op stands in `work`. */
static void
add_host (const LsPlan *plan, const LsProgram *p, const LsHostCosts *costs, const GArray *work,
          guint *of_instance, GArray *ret)
{
  for (guint i = 0, at = 0; i < p->n_instances; i++) {
    const LsSegment *s = &plan->segments[p->instances[i].segment];
    of_instance[i] = at;
    for (guint op = 0; op < s->n_ops && at < work->len; op++, at++) {
      int32_t line = g_array_index (work, int32_t, at);
      if (line >= 0 && (guint) line < ret->len)
        g_array_index (ret, Work, line).host += costs->cost[s->ops[op].host] * MAX (s->ops[op].repeat, 1);
    }
  }
}

static void
add_spans (const LsTimeline *t, uint32_t rank, const GArray *work, const guint *of_instance, GArray *ret)
{
  const LsRankSpans *spans = ls_timeline_spans (t, rank);
  for (guint i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    guint at = of_instance[s->instance] + s->op;
    int32_t line = at < work->len ? g_array_index (work, int32_t, at) : -1;
    if (s->step != (uint8_t) (t->n_steps - 1) || line < 0 || (guint) line >= ret->len)
      continue;
    Work *w = &g_array_index (ret, Work, line);
    bool is_first = w->begin == LS_TIME_NEVER;
    w->begin = is_first ? s->start : MIN (w->begin, s->start);
    w->end = is_first ? s->end : MAX (w->end, s->end);
  }
}

/* keys: a line of 16 digits for each line of work. */
static char *
table_of (const LsJobResult *r, const LsHostCosts *costs, const GArray *work, uint32_t rank, const char *keys)
{
  g_auto (GStrv) lines = g_strsplit (keys, "\n", -1);
  const LsProgram *p = &r->plan->programs[ls_plan_role (r->plan, rank)];
  g_autofree guint *of_instance = g_new0 (guint, p->n_instances);
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Work));
  GString *text = g_string_new (NULL);
  for (guint i = 0; lines[i] && *lines[i]; i++) {
    const Work none = { LS_TIME_NEVER, LS_TIME_NEVER, 0 };
    g_array_append_val (all, none);
  }
  add_host (r->plan, p, costs, work, of_instance, all);
  add_spans (r->timeline, recorded_rank (r->timeline, rank), work, of_instance, all);
  g_string_append_printf (text, "%" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n",
                          (gint64) costs->cost[LS_HOST_LAUNCH], (gint64) costs->cost[LS_HOST_SYNC]);
  for (guint i = 0; i < all->len; i++) {
    const Work *w = &g_array_index (all, Work, i);
    gint64 takes = w->begin == LS_TIME_NEVER || w->end == LS_TIME_NEVER ? 0 : w->end - w->begin;
    g_string_append_printf (text, "%s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n", lines[i], takes,
                            (gint64) w->host);
  }
  return g_string_free (text, FALSE);
}

static const LsCaptured *
first_like (const LsCaptured *c, const LsCaptured *rank)
{
  for (guint i = 0; i < c->ranks->len; i++)
    if (((const LsCaptured *) c->ranks->pdata[i])->rank == rank->like)
      return c->ranks->pdata[i];
  return rank;
}

static gboolean
write_tables (const LsCaptured *c, const LsJobResult *r, const LsHostCosts *costs, const LsTrace *t,
              const char *folder, GError **error)
{
  for (guint i = 0; i < c->ranks->len; i++) {
    const LsCaptured *rank = c->ranks->pdata[i], *like = first_like (c, rank);
    uint32_t role = ls_plan_role (r->plan, like->rank);
    if (!like->keys || role >= t->work->len)
      return ls_fail (error, LS_ERROR_FAILED, "--clock: no step of rank %u was recorded", like->rank);
    g_autofree char *name = g_strdup_printf ("clock-%u", rank->rank),
                    *path = g_build_filename (folder, name, NULL),
                    *text = table_of (r, costs, t->work->pdata[role], like->rank, like->keys);
    if (!ls_write_text (path, text, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
ls_captured_write_clock (const LsCaptured *c, const char *cluster, const char *folder, LsCapturedClock *ret,
                         GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *step = g_build_filename (folder, "step", NULL);
  LsJobSpec spec;
  bool ok = false;
  if (!ls_captured_write_trace (c, step, error) || !ls_job_spec_init_replay (&spec, step, cluster, error))
    return FALSE;
  g_autoptr (LsTrace) t = ls_captured_trace_load (step, 0, diags);
  g_autoptr (LsJobResult) r = t ? ls_job_spec_run (&spec, error) : NULL;
  if (!t)
    ls_diag_list_to_error (diags, error);
  if (r) {
    LsRunOptions options = ls_job_spec_options (&spec);
    ls_hardware_host (r->hardware, &r->strategy, &options.host);
    ret->step_time_s = r->report.step_time_s;
    ret->rests_on = g_strdup_printf ("kernels of %s, messages of %s; %s", r->hardware->calibration.name,
                                     r->hardware->nccl.name, r->trace_source);
    ok = write_tables (c, r, &options.host, t, folder, error);
  }
  ls_job_spec_clear (&spec);
  return ok;
}
