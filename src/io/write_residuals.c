#include "io/write_residuals.h"

#include <math.h>

#include "io/text_table.h"

/* ---- the file ---- */

static void
append_number (GString *out, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append (out, g_ascii_formatd (text, sizeof text, "%.4f", value));
}

/* before: what separates it from the member in front. */
static void
append_text (GString *out, const char *before, const char *key, const char *value)
{
  LsJsonOut w;
  g_string_append_printf (out, "%s\"%s\": ", before, key);
  ls_json_out_init (&w, out, 0);
  ls_json_out_string (&w, NULL, value);
}

static void
append_group (GString *out, const LsResidualGroup *g)
{
  append_text (out, "    { ", "source", g->source);
  append_text (out, ", ", "family", g->family);
  append_text (out, ", ", "architecture", g->architecture);
  append_text (out, ", ", "software", ls_software_name (g->software));
  g_string_append_printf (out, ",\n      \"n\": %u, \"lowest_mfu\": ", g->n);
  append_number (out, floor (1e4 * g->lowest_mfu) / 1e4); /* down: what was measured stays inside */
  g_string_append (out, ",\n      \"residuals\": [");
  for (guint k = 0; k < g->residuals->len; k++) {
    g_string_append (out, k > 0 ? ", " : "");
    append_number (out, g_array_index (g->residuals, double, k));
  }
  g_string_append (out, "] }");
}

static void
append_provenance (GString *out, const LsResidualProvenance *p, const LsCoverage *c)
{
  g_autofree char *coverage
    = c->each.n > 0 ? g_strdup_printf ("%.0f %% intervals of each source by the others hold %.1f %%, median width %.1f %% of the step",
                                       100 * c->level, 100 * c->each.covered, 100 * c->each.width)
                    : g_strdup ("too few sources to say");
  g_autofree char *cases = g_strdup_printf ("%s, sha256 %s; %u rows simulated", p->cases, p->sha256, p->n_rows);
  g_autofree char *digest = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", p->digest);
  g_string_append (out, ",\n  \"provenance\": {\n");
  append_text (out, "    ", "command", p->command);
  append_text (out, ",\n    ", "version", p->version);
  append_text (out, ",\n    ", "cases", cases);
  append_text (out, ",\n    ", "digest_of_predictions", digest);
  append_text (out, ",\n    ", "coverage", coverage);
  g_string_append (out, "\n  }");
}

char *
ls_residuals_to_json (const LsResiduals *r, const char *name, const LsResidualProvenance *p, const LsCoverage *c)
{
  GString *out = g_string_new ("{\n");
  append_text (out, "  ", "schema", "lockstep.residuals/1");
  append_text (out, ",\n  ", "name", name);
  append_text (out, ",\n  ", "source", "published steps beside simulated ones; what the figures are: analysis/interval.h");
  append_provenance (out, p, c);
  g_string_append (out, ",\n  \"groups\": [\n");
  for (guint i = 0; i < r->groups->len; i++) {
    append_group (out, &g_array_index (r->groups, LsResidualGroup, i));
    g_string_append (out, i + 1 < r->groups->len ? ",\n" : "\n");
  }
  g_string_append (out, "  ]\n}\n");
  return g_string_free (out, FALSE);
}

/* ---- coverage ---- */

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
  ls_json_out_end_object (w);
}

static void
add_percent (LsTextTable *t, double fraction)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  ls_text_table_take (t, isnan (fraction) ? g_strdup ("-") : g_strdup (g_ascii_formatd (text, sizeof text, "%.1f", 100 * fraction)));
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

void
ls_coverage_to_text (const LsCoverage *c, GString *out)
{
  static const char *const heads[] = { "source", "n", "unlike", "covered %", "median width %" };
  LsTextTable t;
  g_string_append_printf (out, "\nIntervals of %.0f %%, of each source by what the others measured; unlike: none, for want of a run like it\n",
                          100 * c->level);
  ls_text_table_init (&t, "lrrrr");
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&t, "%s", heads[i]);
  for (guint i = 0; i < c->n_sources; i++)
    add_line (&t, &c->sources[i]);
  add_line (&t, &c->each);
  add_line (&t, &c->rows);
  ls_text_table_print (&t, 0, out);
}
