#include "ask/schedule.h"

#include "base/suggest.h"
#include "data/jobs/read_schedule.h"

/* --- a view of one ---------------------------------------------------------------------------------- */

double
ls_schedule_bubble (LsTime ideal, LsTime total)
{
  return total > 0 ? 1 - (double) ideal / (double) total : 0;
}

LsTime
ls_schedule_shortest (const LsScheduleView *v)
{
  LsTime shortest = LS_TIME_NEVER;
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++)
    for (guint i = 0; i < v->orders->ranks[rank]->len; i++) {
      const LsActionTime *t = &v->eval->times[rank][i];
      if (t->end > t->start)
        shortest = MIN (shortest, t->end - t->start);
    }
  return shortest;
}

double
ls_schedule_number (LsTime t, bool has_unit)
{
  return has_unit ? ls_time_to_s (t) : (double) t / (double) LS_SCHEDULE_ONE;
}

char *
ls_schedule_time_text (LsTime t, bool has_unit)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  if (has_unit)
    return ls_format_time (t);
  return g_strdup (g_ascii_formatd (buffer, sizeof buffer, "%.10g", ls_schedule_number (t, false)));
}

double
ls_schedule_peak (const LsSchedEval *e, uint32_t rank, LsPeakCount count)
{
  return count == LS_PEAK_TO_W ? e->ranks[rank].held_peak * e->per_chunk
                               : e->ranks[rank].split_peak * e->per_chunk / 2;
}

LsPeakCount
ls_schedule_count (bool is_searched)
{
  return is_searched ? LS_PEAK_BY_HALVES : LS_PEAK_TO_W;
}

/* --- by name or from a file ------------------------------------------------------------------------- */

void
ls_schedule_run_free (LsScheduleRun *run)
{
  if (!run)
    return;
  g_free ((char *) run->view.title);
  ls_orders_free ((LsOrders *) run->view.orders);
  ls_sched_eval_free ((LsSchedEval *) run->view.eval);
  g_free (run);
}

static const char *
plural (guint64 n)
{
  return n == 1 ? "" : "s";
}

char *
ls_schedule_title (const char *name, const LsLayout *l)
{
  GString *title = g_string_new (NULL);
  guint64 n_mb = (guint64) l->n_micro_batches * l->n_pipes;
  g_string_append_printf (title, "%s: %u rank%s", name, l->n_ranks, plural (l->n_ranks));
  if (l->n_pipes > 1)
    g_string_append_printf (title, " with %u replicas", l->n_pipes);
  else if (l->n_chunks > 1)
    g_string_append_printf (title, " x %u chunks", l->n_chunks);
  g_string_append_printf (title, ", %" G_GUINT64_FORMAT " micro-batch%s", n_mb, n_mb == 1 ? "" : "es");
  return g_string_free (title, FALSE);
}

/* ---- by name ---- */

static void
set_unknown (const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GString) list = g_string_new (NULL);
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++) {
    g_ptr_array_add (names, (gpointer) sched->name);
    g_string_append_printf (list, "%s\"%s\"", i > 0 ? ", " : "", sched->name);
  }
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (name, (const char *const *) names->pdata);
  g_autofree char *hint = near ? g_strdup_printf ("; did you mean \"%s\"?", near) : g_strdup ("");
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--schedule: expected one of %s; got \"%s\"%s", list->str,
               name, hint);
}

const LsSched *
ls_schedule_named (const char *name, GError **error)
{
  const LsSched *sched = ls_sched_find (name);
  if (!sched)
    set_unknown (name, error);
  return sched;
}

static gboolean
require (const LsScheduleSpec *s, GError **error)
{
  if (s->pp > 0 && s->n_micro_batches > 0)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected %s", s->pp == 0 ? "--pp" : "--micro-batches");
  return FALSE;
}

static LsOrders *
orders_by_name (const LsScheduleSpec *s, const LsSchedTimes *times, GError **error)
{
  const LsSched *sched = ls_schedule_named (s->schedule, error);
  if (!sched || !require (s, error) || !ls_schedule_spec_fits (s, sched, error))
    return NULL;
  LsSchedShape shape = ls_schedule_spec_shape (s, times);
  const char *rule = ls_sched_refusal (sched, &shape);
  if (rule) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: %s", sched->name, rule);
    return NULL;
  }
  guint64 n_cells = (guint64) s->pp * ls_sched_n_chunks (sched, &shape) * s->n_micro_batches;
  return ls_schedule_check_size (n_cells, times, error) ? ls_sched_orders (sched, &shape) : NULL;
}

/* ---- from a file ---- */

/* A file says all that there is to say about its order. */
static gboolean
check_file_knobs (const LsScheduleSpec *s, const LsLayout *l, GError **error)
{
  guint64 n_mb = (guint64) l->n_micro_batches * l->n_pipes;
  if (s->vpp > 0 || s->group > 0 || s->waves > 0 || s->pipes > 0 || s->rounds >= 0 || s->memory_limit > 0)
    g_set_error_literal (
        error, LS_ERROR, LS_ERROR_CONFLICT,
        "--vpp, --group, --rounds, --waves, --pipes and --memory-limit do not go with a file");
  else if (s->pp > 0 && s->pp != l->n_ranks)
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "--pp %u: %s has %u ranks", s->pp, s->schedule,
                 l->n_ranks);
  else if (s->n_micro_batches > 0 && s->n_micro_batches != n_mb)
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "--micro-batches %u: %s has %" G_GUINT64_FORMAT,
                 s->n_micro_batches, s->schedule, n_mb);
  else
    return TRUE;
  return FALSE;
}

static LsOrders *
orders_from_file (const LsScheduleSpec *s, const LsSchedTimes *times, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOrders) orders = ls_read_schedule (s->schedule, diags);
  if (!orders) {
    ls_diag_list_to_error (diags, error);
    return NULL;
  }
  const LsLayout *l = &orders->layout;
  guint64 n_cells = (guint64) l->n_pipes * l->n_stages * l->n_micro_batches;
  if (!check_file_knobs (s, l, error) || !ls_schedule_check_size (n_cells, times, error))
    return NULL;
  return g_steal_pointer (&orders);
}

LsScheduleRun *
ls_schedule_run_new (const LsScheduleSpec *s, GError **error)
{
  LsSchedTimes times;
  bool has_unit;
  if (!s->schedule) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, "expected --schedule or --all");
    return NULL;
  }
  if (!ls_schedule_spec_times (s, &times, &has_unit, error))
    return NULL;
  LsOrders *orders = ls_schedule_is_path (s->schedule) ? orders_from_file (s, &times, error)
                                                       : orders_by_name (s, &times, error);
  if (!orders)
    return NULL;
  LsScheduleRun *run = g_new0 (LsScheduleRun, 1);
  run->view = (LsScheduleView) {
    .title = ls_schedule_title (s->schedule, &orders->layout),
    .orders = orders,
    .eval = ls_orders_eval (orders, &times),
    .times = times.chunk,
    .comm = times.comm,
    .has_unit = has_unit,
    .is_searched = !ls_schedule_is_path (s->schedule) && ls_sched_find (s->schedule)->orders,
  };
  return run;
}
