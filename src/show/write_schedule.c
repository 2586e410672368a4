#include "show/write_schedule.h"

#include <math.h>

#include "data/text/json_out.h"
#include "show/text_table.h"

/* --- one -------------------------------------------------------------------------------------------- */

/* ---- text ---- */

static void
add_time (GString *out, const LsScheduleView *v, const char *before, LsTime t)
{
  g_autofree char *text = ls_schedule_time_text (t, v->has_unit);
  g_string_append_printf (out, "%s%s", before, text);
}

static bool
has_type (const LsOrders *orders, LsActionType type, bool is_paired)
{
  for (uint32_t rank = 0; rank < orders->layout.n_ranks; rank++) {
    const GArray *actions = orders->ranks[rank];
    for (guint i = 0; i < actions->len; i++) {
      const LsAction *a = &g_array_index (actions, LsAction, i);
      if (a->type == type && (!is_paired || a->is_paired))
        return true;
    }
  }
  return false;
}

/* The times that the schedule uses. */
static void
add_times (GString *out, const LsScheduleView *v)
{
  const LsOrders *o = v->orders;
  bool has_pairs = has_type (o, LS_ACTION_F, true) || has_type (o, LS_ACTION_B, true);
  add_time (out, v, o->layout.n_chunks > 1 ? "times of a chunk: F " : "times: F ", v->times.f);
  if (has_type (o, LS_ACTION_B, false))
    add_time (out, v, ", B ", v->times.b);
  if (has_type (o, LS_ACTION_I, false))
    add_time (out, v, ", I ", v->times.i);
  if (has_type (o, LS_ACTION_W, false))
    add_time (out, v, ", W ", v->times.w);
  if (has_pairs)
    add_time (out, v, ", F with B ", v->times.fb);
  if (v->comm > 0)
    add_time (out, v, ", between ranks ", v->comm);
  g_string_append_c (out, '\n');
}

static void
add_peaks (GString *out, const LsScheduleView *v, LsPeakCount count, const char *before)
{
  double low = INFINITY, high = 0;
  uint32_t fullest = 0;
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++) {
    double peak = ls_schedule_peak (v->eval, rank, count);
    fullest = peak > high ? rank : fullest;
    high = fmax (high, peak);
    low = fmin (low, peak);
  }
  g_string_append_printf (out, "%s%.4g micro-batch%s at most, on rank %u", before, high,
                          high == 1 ? "" : "es", fullest);
  if (low < high)
    g_string_append_printf (out, "; %.4g at least", low);
}

char *
ls_schedule_to_text (const LsScheduleView *v, const LsScheduleText *text)
{
  const LsSchedEval *e = v->eval;
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s\n", v->title);
  add_times (out, v);
  g_string_append_c (out, '\n');
  ls_schedule_chart (v, text, out);
  add_time (out, v, "\nmakespan     ", e->makespan);
  add_time (out, v, "   span ", e->span);
  add_time (out, v, "   ideal ", e->ideal);
  g_string_append_printf (
      out, "\nbubble       %.1f %% of the makespan, %.1f %% of the span, %.1f %% of the ideal time\n",
      100 * ls_schedule_bubble (e->ideal, e->makespan), 100 * ls_schedule_bubble (e->ideal, e->span),
      e->ideal > 0 ? 100 * ((double) e->makespan / (double) e->ideal - 1) : 0.0);
  add_peaks (out, v, LS_PEAK_TO_W, "activations  ");
  if (has_type (v->orders, LS_ACTION_I, false))
    add_peaks (out, v, LS_PEAK_BY_HALVES, ", held until W;\n             if half of one is free after I, ");
  g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}

/* ---- for programs ---- */

static void
add_orders (LsJsonOut *w, const LsScheduleView *v)
{
  ls_json_out_begin_array (w, "orders");
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++) {
    g_autoptr (GString) cells = g_string_new (NULL);
    ls_orders_append_rank (v->orders, rank, cells);
    g_auto (GStrv) parts = g_strsplit (cells->str, ",", -1);
    ls_json_out_begin_array (w, NULL);
    for (char **part = parts; *part; part++)
      ls_json_out_string (w, NULL, *part);
    ls_json_out_end_array (w);
  }
  ls_json_out_end_array (w);
}

#include "show/schedule_keys.h"

/* One of them is NULL. */
static char *
to_json (const LsScheduleView *v, const LsScheduleTable *t)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "schedule");
  ls_keys_schedule (&w, v, t);
  return ls_json_out_close (&w);
}

char *
ls_schedule_to_json (const LsScheduleView *v)
{
  return to_json (v, NULL);
}

char *
ls_schedule_to_csv (const LsScheduleView *v)
{
  GString *out = g_string_new (NULL);
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++) {
    ls_orders_append_rank (v->orders, rank, out);
    g_string_append_c (out, '\n');
  }
  return g_string_free (out, FALSE);
}

/* --- beside each other ------------------------------------------------------------------------------ */

static const LsScheduleRow *
row_at (const LsScheduleTable *t, guint i)
{
  return &g_array_index (t->rows, LsScheduleRow, i);
}

/* ---- text ---- */

static void
add_row (LsTextTable *table, const LsScheduleTable *t, const LsScheduleRow *r)
{
  ls_text_table_add (table, "%s\v%u", r->schedule, r->vpp);
  ls_text_table_take (table, ls_schedule_time_text (r->makespan, t->has_unit));
  ls_text_table_take (table, ls_schedule_time_text (r->span, t->has_unit));
  ls_text_table_add (table, "%.1f %%\v%.1f %%\v%.4g\v%.4g\v%.4g x",
                     100 * ls_schedule_bubble (r->ideal, r->makespan),
                     100 * ls_schedule_bubble (r->ideal, r->span), r->to_w, r->by_halves, r->copies);
  if (isnan (r->communication))
    ls_text_table_add (table, "-");
  else
    ls_text_table_add (table, "%.4g x", r->communication);
  if (t->memory_limit > 0)
    ls_text_table_add (table, "%s", ls_schedule_row_fits (t, r) ? "fits" : "over");
}

char *
ls_schedule_all_to_text (const LsScheduleTable *t)
{
  LsTextTable table;
  GString *out = g_string_new (NULL);
  guint n_refused = 0;
  ls_text_table_init (&table, t->memory_limit > 0 ? "lrrrrrrrrrl" : "lrrrrrrrrr");
  ls_text_table_add (
      &table,
      "schedule\vchunks\vmakespan\vspan\vbubble\vof span\vactivations\vby halves\vparameters\vcommunication");
  if (t->memory_limit > 0)
    ls_text_table_add (&table, "at most %.4g", t->memory_limit);
  for (guint i = 0; i < t->rows->len; i++) {
    if (!row_at (t, i)->refusal)
      add_row (&table, t, row_at (t, i));
    n_refused += row_at (t, i)->refusal != NULL;
  }
  g_string_append_printf (out, "%s\n\n", t->title);
  ls_text_table_print (&table, 0, out);

  ls_text_table_init (&table, "ll");
  for (guint i = 0; i < t->rows->len; i++)
    if (row_at (t, i)->refusal)
      ls_text_table_add (&table, "%s\v%s", row_at (t, i)->schedule, row_at (t, i)->refusal);
  if (n_refused > 0)
    g_string_append (out, "\nNot for this job\n");
  ls_text_table_print (&table, 2, out);
  return g_string_free (out, FALSE);
}

/* ---- for programs ---- */

char *
ls_schedule_all_to_json (const LsScheduleTable *t)
{
  return to_json (NULL, t);
}
