#include "show/write_schedule.h"

#include <math.h>

#include "data/text/json_out.h"

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

/* Activations that ranks hold at most: of the one with least and with most. */
typedef struct {
  double least, most;
  uint32_t fullest;
} Peaks;

static Peaks
peaks_of (const LsScheduleView *v, LsPeakCount count)
{
  Peaks p = { INFINITY, 0, 0 };
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++) {
    double peak = ls_schedule_peak (v->eval, rank, count);
    p.fullest = peak > p.most ? rank : p.fullest;
    p.most = fmax (p.most, peak);
    p.least = fmin (p.least, peak);
  }
  return p;
}

static const LsScheduleRow *
row_at (const LsScheduleTable *t, guint i)
{
  return &g_array_index (t->rows, LsScheduleRow, i);
}

static bool
has_refusal (const LsScheduleTable *t)
{
  bool is_there = false;
  for (guint i = 0; i < t->rows->len; i++)
    is_there |= row_at (t, i)->refusal != NULL;
  return is_there;
}

#include "show/schedule_text.h"

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

char *
ls_schedule_all_to_json (const LsScheduleTable *t)
{
  return to_json (NULL, t);
}
