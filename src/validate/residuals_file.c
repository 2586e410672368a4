/* validate/residuals_file.c — residuals as a file. */
#include "validate/residuals.h"

#include <math.h>

#include "data/text/json_out.h"

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

/* What the rows of a group have; nothing where that is not known. */
static void
append_traits (GString *out, const LsResidualGroup *g)
{
  for (guint k = 0; k < LS_N_FIGURE_ASPECTS; k++)
    if (g->figures[k] > 0) {
      char text[G_ASCII_DTOSTR_BUF_SIZE];
      g_ascii_formatd (text, sizeof text, "%.6g", g->figures[k]);
      double read = g_ascii_strtod (text, NULL);
      if (g->figures[k] > 1
          && (read < g->figures[k]
              || read > g->figures[k])) /* no share: the run itself might lie beyond it */
        g_ascii_formatd (text, sizeof text, "%.17g", g->figures[k]);
      g_string_append_printf (out, ", \"%s\": %s", ls_aspect_key (LS_N_WORD_ASPECTS + k), text);
    }
  for (guint i = 0; g->traits && i < g->traits->len; i++) {
    LsJsonOut w;
    g_string_append (out, i == 0 ? ",\n      \"traits\": [" : ", ");
    ls_json_out_init (&w, out, 0);
    ls_json_out_string (&w, NULL, g_array_index (g->traits, char *, i));
    g_string_append (out, i + 1 == g->traits->len ? "]" : "");
  }
}

static void
append_stretches (GString *out, const LsResiduals *r)
{
  for (guint i = 0; i < r->stretches->len; i++) {
    const LsStretch *s = &g_array_index (r->stretches, LsStretch, i);
    g_string_append (out, i == 0 ? ",\n  \"stretches\": [\n" : ",\n");
    append_text (out, "    { ", "aspect", ls_aspect_key ((LsAspect) s->aspect));
    g_string_append (out, ", \"factor\": ");
    append_number (out, s->factor);
    if (s->reach > 0) {
      g_string_append (out, ", \"reach\": ");
      append_number (out, s->reach);
    }
    g_string_append_printf (out, ", \"n\": %u }%s", s->n, i + 1 == r->stretches->len ? "\n  ]" : "");
  }
}

static void
append_group (GString *out, const LsResidualGroup *g)
{
  append_text (out, "    { ", "source", g->source);
  append_text (out, ", ", "family", g->family);
  append_text (out, ", ", "architecture", g->architecture);
  append_text (out, ", ", "software", g->software);
  g_string_append_printf (out, ",\n      \"n\": %u, \"lowest_mfu\": ", g->n);
  append_number (out, floor (1e4 * g->lowest_mfu) / 1e4); /* down: what was measured stays inside */
  append_traits (out, g);
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
  g_autofree char *coverage = c->each.n > 0
      ? g_strdup_printf (
          "%.0f %% intervals of each source by the others hold %.1f %%, median width %.1f %% of the step",
          100 * c->level, 100 * c->each.covered, 100 * c->each.width)
      : g_strdup ("too few sources to say");
  g_autofree char *cases
      = g_strdup_printf ("%s, sha256 %s; %u rows simulated", p->cases, p->sha256, p->n_rows);
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
ls_residuals_to_json (const LsResiduals *r, const char *name, const LsResidualProvenance *p,
                      const LsCoverage *c)
{
  GString *out = g_string_new ("{\n");
  append_text (out, "  ", "schema", "lockstep.residuals/1");
  append_text (out, ",\n  ", "name", name);
  append_text (out, ",\n  ", "source",
               "published steps next to simulated ones; what the figures are: analysis/interval.h");
  append_provenance (out, p, c);
  append_stretches (out, r);
  g_string_append (out, ",\n  \"groups\": [\n");
  for (guint i = 0; i < r->groups->len; i++) {
    append_group (out, &g_array_index (r->groups, LsResidualGroup, i));
    g_string_append (out, i + 1 < r->groups->len ? ",\n" : "\n");
  }
  g_string_append (out, "  ]\n}\n");
  return g_string_free (out, FALSE);
}
