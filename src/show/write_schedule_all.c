#include "show/write_schedule.h"

#include <math.h>

#include "data/text/json_out.h"
#include "show/text_table.h"

static const LsScheduleRow *
row_at (const LsScheduleTable *t, guint i)
{
  return &g_array_index (t->rows, LsScheduleRow, i);
}

/* ---- text ---- */

static void
add_row (LsTextTable *table, const LsScheduleTable *t, const LsScheduleRow *r)
{
  ls_text_table_add (table, "%s", r->schedule);
  ls_text_table_add (table, "%u", r->vpp);
  ls_text_table_take (table, ls_schedule_time_text (r->makespan, t->has_unit));
  ls_text_table_take (table, ls_schedule_time_text (r->span, t->has_unit));
  ls_text_table_add (table, "%.1f %%", 100 * ls_schedule_bubble (r->ideal, r->makespan));
  ls_text_table_add (table, "%.1f %%", 100 * ls_schedule_bubble (r->ideal, r->span));
  ls_text_table_add (table, "%.4g", r->to_w);
  ls_text_table_add (table, "%.4g", r->by_halves);
  ls_text_table_add (table, "%.4g x", r->copies);
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
  static const char *const titles[]
      = { "schedule", "chunks",      "makespan",  "span",       "bubble",
          "of span",  "activations", "by halves", "parameters", "communication" };
  LsTextTable table;
  GString *out = g_string_new (NULL);
  guint n_refused = 0;
  ls_text_table_init (&table, t->memory_limit > 0 ? "lrrrrrrrrrl" : "lrrrrrrrrr");
  for (guint i = 0; i < G_N_ELEMENTS (titles); i++)
    ls_text_table_add (&table, "%s", titles[i]);
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
    if (row_at (t, i)->refusal) {
      ls_text_table_add (&table, "%s", row_at (t, i)->schedule);
      ls_text_table_add (&table, "%s", row_at (t, i)->refusal);
    }
  if (n_refused > 0)
    g_string_append (out, "\nNot for this job\n");
  ls_text_table_print (&table, 2, out);
  return g_string_free (out, FALSE);
}

/* ---- for programs ---- */

static void
add_figures (LsJsonOut *w, const LsScheduleTable *t, const LsScheduleRow *r)
{
  ls_json_out_uint (w, "vpp", r->vpp);
  ls_json_out_double (w, "makespan", ls_schedule_number (r->makespan, t->has_unit));
  ls_json_out_double (w, "span", ls_schedule_number (r->span, t->has_unit));
  ls_json_out_double (w, "ideal", ls_schedule_number (r->ideal, t->has_unit));
  ls_json_out_double (w, "bubble_frac", ls_schedule_bubble (r->ideal, r->makespan));
  ls_json_out_double (w, "bubble_frac_span", ls_schedule_bubble (r->ideal, r->span));
  ls_json_out_double (w, "peak_activations", r->is_searched ? r->by_halves : r->to_w);
  ls_json_out_double (w, "peak_activations_to_w", r->to_w);
  ls_json_out_double (w, "peak_activations_by_halves", r->by_halves);
  ls_json_out_double (w, "parameter_copies", r->copies);
  ls_json_out_double (w, "communication", r->communication);
  if (t->memory_limit > 0)
    ls_json_out_bool (w, "fits_memory_limit", ls_schedule_row_fits (t, r));
}

char *
ls_schedule_all_to_json (const LsScheduleTable *t)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "schedule");
  ls_json_out_string (&w, "unit", t->has_unit ? "s" : NULL);
  if (t->memory_limit > 0)
    ls_json_out_double (&w, "memory_limit", t->memory_limit);
  ls_json_out_begin_array (&w, "rows");
  for (guint i = 0; i < t->rows->len; i++) {
    const LsScheduleRow *r = row_at (t, i);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_string (&w, "schedule", r->schedule);
    ls_json_out_string (&w, "refusal", r->refusal);
    if (!r->refusal)
      add_figures (&w, t, r);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}

static void
add_number (GString *out, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (out, ",%s",
                          isnan (value) ? "" : g_ascii_formatd (buffer, sizeof buffer, "%.17g", value));
}

char *
ls_schedule_all_to_csv (const LsScheduleTable *t)
{
  GString *out
      = g_string_new ("schedule,vpp,makespan,span,ideal,bubble_frac,bubble_frac_span,peak_activations_to_w,"
                      "peak_activations_by_halves,parameter_copies,communication,refusal");
  g_string_append (out, t->memory_limit > 0 ? ",fits_memory_limit\n" : "\n");
  for (guint i = 0; i < t->rows->len; i++) {
    const LsScheduleRow *r = row_at (t, i);
    if (r->refusal) {
      g_string_append_printf (out, "%s,,,,,,,,,,,\"%s\"%s\n", r->schedule, r->refusal,
                              t->memory_limit > 0 ? "," : "");
      continue;
    }
    g_string_append_printf (out, "%s,%u", r->schedule, r->vpp);
    add_number (out, ls_schedule_number (r->makespan, t->has_unit));
    add_number (out, ls_schedule_number (r->span, t->has_unit));
    add_number (out, ls_schedule_number (r->ideal, t->has_unit));
    add_number (out, ls_schedule_bubble (r->ideal, r->makespan));
    add_number (out, ls_schedule_bubble (r->ideal, r->span));
    add_number (out, r->to_w);
    add_number (out, r->by_halves);
    add_number (out, r->copies);
    add_number (out, r->communication);
    g_string_append (out,
                     t->memory_limit == 0              ? ",\n"
                         : ls_schedule_row_fits (t, r) ? ",,true\n"
                                                       : ",,false\n");
  }
  return g_string_free (out, FALSE);
}
