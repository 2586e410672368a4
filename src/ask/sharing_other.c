/* ask/sharing_other.c — what other starts, and other nodes, would give the jobs. */
#include <string.h>

#include "ask/sharing_jobs.h"
#include "base/order.h"

/* --- other starts ------------------------------------------------------------------------------ */

static void
shift_clear (gpointer shift)
{
  LsSharingShift *s = shift;
  g_free (s->shift);
  g_free (s->slowdown);
}

/* As they are. */
static LsSharingShift
no_shift (const LsSharing *s)
{
  LsSharingShift none
      = { 0, g_new0 (LsTime, s->n_jobs), g_new (double, s->n_jobs), .mean = s->mean_slowdown };
  for (guint i = 0; i < s->n_jobs; i++)
    none.slowdown[i] = s->jobs[i].slowdown;
  return none;
}

static LsSharingShift
shift_of (const LsSharing *s, guint job, const SharedAsk *ask)
{
  LsSharingShift shift
      = { job, g_memdup2 (ask->shift, s->n_jobs * sizeof *ask->shift), g_new (double, s->n_jobs), 0 };
  for (guint i = 0; i < s->n_jobs; i++) {
    shift.slowdown[i] = ask->result->jobs[i].step_ps / 1e12 / s->jobs[i].alone_s;
    shift.mean += shift.slowdown[i] / s->n_jobs;
  }
  return shift;
}

static const LsSharingShift *
best_of (const LsSharing *s)
{
  return &g_array_index (s->shifts, LsSharingShift, s->best);
}

/* One job, the others where they were best so far. */
static gboolean
shift_job (const SharedJobs *jobs, guint job, const LsSharingOptions *options, guint n_threads,
           const LsProgress *progress, LsSharing *s, GError **error)
{
  guint n = options->n_shifts - 1;
  SharedAsk *asks = g_new0 (SharedAsk, n);
  for (guint i = 0; i < n; i++) {
    asks[i].only = LS_SHARE_ALL;
    asks[i].shift = g_memdup2 (best_of (s)->shift, s->n_jobs * sizeof *asks[i].shift);
    asks[i].shift[job] = ls_time_from_s (s->jobs[job].alone_s * (i + 1) / options->n_shifts);
  }
  gboolean ok = shared_jobs_ask (jobs, options, asks, n, n_threads, progress, error);
  for (guint i = 0; ok && i < n; i++) {
    LsSharingShift shift = shift_of (s, job, &asks[i]);
    g_array_append_val (s->shifts, shift);
    if (shift.mean < best_of (s)->mean)
      s->best = s->shifts->len - 1;
  }
  shared_asks_free (asks, n);
  return ok;
}

gboolean
sharing_shift (const SharedJobs *jobs, const LsSharingOptions *options, guint n_threads,
               const LsProgress *progress, LsSharing *s, GError **error)
{
  if (options->n_shifts == 0)
    return TRUE;
  LsSharingShift none = no_shift (s);
  s->shifts = g_array_new (FALSE, FALSE, sizeof (LsSharingShift));
  g_array_set_clear_func (s->shifts, shift_clear);
  g_array_append_val (s->shifts, none);
  s->n_points = options->n_shifts;
  gboolean ok = TRUE;
  for (guint job = 1; ok && job < s->n_jobs; job++)
    ok = shift_job (jobs, job, options, n_threads, progress, s, error);
  return ok;
}

/* --- other nodes -------------------------------------------------------------------------------- */

/* [n] newly allocated: the nodes of a job as they are. */
static uint32_t *
own_nodes (const SharedJobs *jobs, guint i)
{
  const LsAllocation *a = jobs->jobs[i].allocation;
  uint32_t *nodes = g_new (uint32_t, a->n_seats);
  for (uint32_t k = 0; k < a->n_seats; k++)
    nodes[k] = a->seats[k].node;
  return nodes;
}

/* "0-3,7". */
static char *
list_text (const uint32_t *nodes, uint32_t n)
{
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0, last; i < n; i = last + 1) {
    for (last = i; last + 1 < n && nodes[last + 1] == nodes[last] + 1;)
      last++;
    g_string_append_printf (out, "%s%u", i > 0 ? "," : "", nodes[i]);
    if (last > i)
      g_string_append_printf (out, "-%u", nodes[last]);
  }
  return g_string_free (out, FALSE);
}

/* uint32_t: the nodes of all, in the order of the cluster. */
static GArray *
all_nodes (const SharedJobs *jobs)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < jobs->n; i++) {
    g_autofree uint32_t *own = own_nodes (jobs, i);
    g_array_append_vals (all, own, jobs->jobs[i].allocation->n_seats);
  }
  g_array_sort (all, ls_compare_uint32);
  return all;
}

static gboolean
run_packed (const SharedJobs *jobs, const LsSharingOptions *options, LsSharing *s, GError **error)
{
  SharedAsk *ask = g_new0 (SharedAsk, 1);
  ask->only = LS_SHARE_ALL;
  gboolean ok = shared_jobs_ask (jobs, options, ask, 1, 1, NULL, error);
  s->packed_s = ok ? g_new (double, s->n_jobs) : NULL;
  for (guint i = 0; ok && i < s->n_jobs; i++)
    s->packed_s[i] = ask->result->jobs[i].step_ps / 1e12;
  shared_asks_free (ask, 1);
  return ok;
}

gboolean
sharing_pack (const SharedJobs *jobs, const LsSharingOptions *options, LsSharing *s, GError **error)
{
  g_autoptr (GArray) all = all_nodes (jobs);
  bool is_other = false, has_room = true;
  char **texts = g_new0 (char *, jobs->n + 1);
  for (guint i = 0, first = 0; i < jobs->n; first += jobs->jobs[i++].allocation->n_seats) {
    const uint32_t *nodes = &g_array_index (all, uint32_t, first);
    uint32_t n = jobs->jobs[i].allocation->n_seats;
    g_autofree uint32_t *own = own_nodes (jobs, i);
    is_other |= memcmp (own, nodes, n * sizeof *own) != 0;
    texts[i] = list_text (nodes, n);
    has_room &= shared_job_has_room (jobs, i, nodes);
    if (has_room)
      shared_job_place (jobs, i, nodes);
  }
  gboolean ok = !is_other || !has_room || run_packed (jobs, options, s, error);
  for (guint i = 0; i < jobs->n; i++) {
    g_autofree uint32_t *own = own_nodes (jobs, i);
    shared_job_place (jobs, i, own);
  }
  if (s->packed_s)
    s->packed_nodes = texts;
  else
    g_strfreev (texts);
  return ok;
}
