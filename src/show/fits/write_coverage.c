#include "show/fits/write_fits.h"

#include <math.h>

#include "show/text_table.h"

static void
write_line (LsJsonOut *w, const char *key, const LsCoverageLine *l)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_uint (w, "n", l->n);
  ls_json_out_uint (w, "unlike", l->n_unlike);
  ls_json_out_double (w, "covered_pct", 100 * l->covered);
  ls_json_out_double (w, "median_width_pct", 100 * l->width);
  ls_json_out_end_object (w);
}

void
ls_coverage_to_json (const LsCoverage *c, LsJsonOut *w)
{
  ls_json_out_begin_object (w, "coverage");
  ls_json_out_uint (w, "level_pct", (uint64_t) lround (100 * c->level));
  write_line (w, "each_source_once", &c->each);
  write_line (w, "rows", &c->rows);
  ls_json_out_begin_object (w, "by_source");
  for (guint i = 0; i < c->n_sources; i++)
    write_line (w, c->sources[i].source, &c->sources[i]);
  ls_json_out_end_object (w);
  ls_json_out_begin_object (w, "left_out");
  for (guint i = 0; i < c->n_left_out; i++)
    write_line (w, c->left_out[i].source, &c->left_out[i]);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
add_percent (LsTextTable *t, double fraction)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  ls_text_table_take (t,
                      isnan (fraction)
                          ? g_strdup ("-")
                          : g_strdup (g_ascii_formatd (text, sizeof text, "%.1f", 100 * fraction)));
}

static void
add_line (LsTextTable *t, const LsCoverageLine *l)
{
  ls_text_table_add (t, "%s", l->source);
  ls_text_table_add (t, "%u", l->n);
  ls_text_table_add (t, "%u", l->n_unlike);
  add_percent (t, l->covered);
  add_percent (t, l->width);
}

static void
begin_table (LsTextTable *t, const char *first)
{
  static const char *const heads[] = { "n", "unlike", "covered %", "median width %" };
  ls_text_table_init (t, "lrrrr");
  ls_text_table_add (t, "%s", first);
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (t, "%s", heads[i]);
}

void
ls_coverage_to_text (const LsCoverage *c, GString *out)
{
  LsTextTable t;
  g_string_append_printf (out,
                          "\nIntervals of %.0f %%, of each source by what the others measured; unlike: none, "
                          "for want of a run like it\n",
                          100 * c->level);
  begin_table (&t, "source");
  for (guint i = 0; i < c->n_sources; i++)
    add_line (&t, &c->sources[i]);
  add_line (&t, &c->each);
  add_line (&t, &c->rows);
  ls_text_table_print (&t, 0, out);
  if (c->n_left_out == 0)
    return;
  g_string_append (out,
                   "\nThe same of all runs that have something in common, by the runs without; each source "
                   "counts once\n");
  begin_table (&t, "left out");
  for (guint i = 0; i < c->n_left_out; i++)
    add_line (&t, &c->left_out[i]);
  ls_text_table_print (&t, 0, out);
}
