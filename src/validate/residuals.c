#include "validate/residuals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "data/text/json_out.h"
#include "validate/scores.h"

/* ---- residuals ---- */

static char *
source_of (const char *family)
{
  return g_strndup (family, strcspn (family, "-"));
}

static bool
is_refused (const LsScoreRow *row)
{
  return isnan (row->predicted_s);
}

static bool
is_same_group (const LsScoreRow *a, const LsScoreRow *b)
{
  return !is_refused (a) && !is_refused (b) && strcmp (a->family, b->family) == 0
      && strcmp (a->architecture, b->architecture) == 0 && strcmp (a->software, b->software) == 0;
}

static bool
is_first_of_group (const LsScoreRow *rows, guint i)
{
  if (is_refused (&rows[i]))
    return false;
  for (guint k = 0; k < i; k++)
    if (is_same_group (&rows[k], &rows[i]))
      return false;
  return true;
}

static void
add_group (LsResiduals *r, const LsScoreRow *rows, guint n_rows, const LsScoreRow *first)
{
  g_autofree double *residuals = g_new (double, n_rows);
  double lowest = first->mfu;
  guint n = 0;
  for (guint i = 0; i < n_rows; i++)
    if (is_same_group (&rows[i], first)) {
      residuals[n++] = ls_residual (rows[i].measured_s, rows[i].predicted_s, rows[i].mfu);
      lowest = MIN (lowest, rows[i].mfu);
    }
  g_autofree char *source = source_of (first->family);
  ls_residuals_add (r, source, first->family, first->architecture, first->software, lowest, residuals, n);
  for (guint i = 0; i < n_rows; i++)
    if (is_same_group (&rows[i], first))
      ls_residual_group_add_traits (&g_array_index (r->groups, LsResidualGroup, r->groups->len - 1),
                                    &rows[i].traits);
}

static LsResiduals *
group_rows (const LsScoreRow *rows, guint n_rows)
{
  LsResiduals *r = ls_residuals_new ();
  for (guint i = 0; i < n_rows; i++)
    if (is_first_of_group (rows, i))
      add_group (r, rows, n_rows, &rows[i]);
  return r;
}

/* ---- stretches ---- */

static void
unref_array (gpointer data)
{
  g_array_unref (data);
}

/* The distances of a source, new if it had none. */
static GArray *
distances_of (GPtrArray *sources, GPtrArray *distances, const LsScoreRow *row)
{
  g_autofree char *source = source_of (row->family);
  guint index;
  if (!g_ptr_array_find_with_equal_func (sources, source, g_str_equal, &index)) {
    index = sources->len;
    g_ptr_array_add (sources, g_steal_pointer (&source));
    g_ptr_array_add (distances, g_array_new (FALSE, FALSE, sizeof (double)));
  }
  return distances->pdata[index];
}

static double
distance_beyond (const LsScoreRow *row, const LsLeftOut *l)
{
  bool is_word = l->aspect < LS_N_WORD_ASPECTS;
  return is_word ? 0
                 : ls_aspect_distance ((LsAspect) l->aspect,
                                       row->traits.figure[l->aspect - LS_N_WORD_ASPECTS], l->figure);
}

/* What the rows that are left out need, beyond the others' ranges (analysis/interval.h); 0: no range to
 * compare with. Raises *reach to how far beyond they are. */
static double
stretch_needed (const LsScoreRow *rows, guint n_rows, const LsLeftOut *left_out, double *reach)
{
  g_autoptr (GPtrArray) sources = g_ptr_array_new_with_free_func (g_free),
                        distances = g_ptr_array_new_with_free_func (unref_array);
  g_autoptr (GArray) rest = ls_rows_without (rows, n_rows, left_out);
  g_autoptr (LsResiduals) r = group_rows ((const LsScoreRow *) (gpointer) rest->data, rest->len);
  for (guint i = 0; i < n_rows; i++) {
    double low = 0, high = 0;
    if (!ls_left_out_has (left_out, &rows[i]) || !ls_residuals_range (r, rows[i].software, &low, &high)
        || high <= low)
      continue;
    double residual = ls_residual (rows[i].measured_s, rows[i].predicted_s, rows[i].mfu);
    double distance = fabs (residual - (low + high) / 2) / ((high - low) / 2);
    g_array_append_val (distances_of (sources, distances, &rows[i]), distance);
    *reach = fmax (*reach, distance_beyond (&rows[i], left_out));
  }
  return distances->len > 0
      ? ls_stretch_needed ((GArray *const *) (gpointer) distances->pdata, distances->len)
      : 0;
}

static void
add_stretch (LsResiduals *r, const LsScoreRow *rows, guint n_rows, LsAspect aspect)
{
  g_autoptr (GArray) list = ls_left_out_list (rows, n_rows, aspect),
                     needed = g_array_new (FALSE, FALSE, sizeof (double));
  double reach = 0;
  for (guint i = 0; i < list->len; i++) {
    double factor = stretch_needed (rows, n_rows, &g_array_index (list, LsLeftOut, i), &reach);
    if (factor > 0)
      g_array_append_val (needed, factor);
  }
  ls_residuals_add_stretch (r, aspect, needed, reach);
}

LsResiduals *
ls_residuals_of_rows (const LsScoreRow *rows, guint n_rows)
{
  LsResiduals *r = group_rows (rows, n_rows);
  for (LsAspect a = 0; a < LS_N_ASPECTS; a++)
    add_stretch (r, rows, n_rows, a);
  return r;
}

guint64
ls_predictions_digest (const LsScoreRow *rows, guint n_rows)
{
  LsDigest d;
  ls_digest_init (&d);
  for (guint i = 0; i < n_rows; i++) {
    guint64 bits;
    memcpy (&bits, &rows[i].predicted_s, sizeof bits);
    ls_digest_u64 (&d, is_refused (&rows[i]) ? 0 : bits);
  }
  return ls_digest_get (&d);
}

/* ---- coverage ---- */

/* A row with an interval. */
typedef struct {
  double width, weight;
  bool is_covered;
  const LsScoreRow *row;
} Tried;

struct LsCoverageRun {
  GPtrArray *names; /* char *: of the lines, owned                     */
  GArray *lines;    /* LsCoverageLine, of each source                  */
  GArray *left_out; /* LsCoverageLine, of each word that was left out  */
  LsCoverage result;
};

void
ls_coverage_run_free (LsCoverageRun *run)
{
  if (!run)
    return;
  g_ptr_array_unref (run->names);
  g_array_unref (run->lines);
  g_array_unref (run->left_out);
  g_free (run);
}

static int
by_width (const void *a, const void *b)
{
  double x = ((const Tried *) a)->width, y = ((const Tried *) b)->width;
  return (x > y) - (x < y);
}

/* Share that is covered and median width, by weight; sorts. */
static void
sum_up (GArray *tried, LsCoverageLine *line)
{
  Tried *t = (Tried *) (gpointer) tried->data;
  double all = 0, covered = 0, below = 0;
  for (guint i = 0; i < tried->len; i++) {
    all += t[i].weight;
    covered += t[i].is_covered ? t[i].weight : 0;
  }
  line->n = tried->len;
  line->covered = line->width = NAN;
  if (tried->len == 0)
    return;
  line->covered = covered / all;
  qsort (t, tried->len, sizeof *t, by_width);
  for (guint i = 0; i < tried->len && below < all / 2; below += t[i++].weight)
    line->width = t[i].width;
}

/* Its interval by those residuals, appended to `tried`; or another row without. */
static void
try_row (const LsResiduals *r, const LsScoreRow *row, GArray *tried, guint *n_unlike)
{
  const LsIntervalJob job = { row->architecture, row->software, row->mfu, row->traits };
  double over = row->measured_s / row->predicted_s;
  LsInterval interval;
  ls_interval_find (r, NULL, &job, &interval);
  Tried t = { interval.high - interval.low, 1, interval.low <= over && over <= interval.high, row };
  if (interval.none)
    ++*n_unlike;
  else
    g_array_append_val (tried, t);
  ls_interval_clear (&interval);
}

static bool
is_of (const LsScoreRow *row, const char *source)
{
  size_t n = strlen (source);
  return strncmp (row->family, source, n) == 0 && (row->family[n] == '-' || row->family[n] == '\0');
}

static LsResiduals *
residuals_without (const LsScoreRow *rows, guint n_rows, const char *source)
{
  g_autoptr (GArray) rest = g_array_new (FALSE, FALSE, sizeof (LsScoreRow));
  for (guint i = 0; i < n_rows; i++)
    if (!is_of (&rows[i], source))
      g_array_append_val (rest, rows[i]);
  return ls_residuals_of_rows ((const LsScoreRow *) (gpointer) rest->data, rest->len);
}

/* The rows of one source by the others; appends those with an interval to `each` and `rows`. */
static LsCoverageLine
try_source (const char *source, const LsScoreRow *rows, guint n_rows, GArray *each, GArray *all)
{
  LsCoverageLine line = { .source = source };
  g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried));
  g_autoptr (LsResiduals) r = residuals_without (rows, n_rows, source);
  for (guint i = 0; i < n_rows; i++)
    if (!is_refused (&rows[i]) && is_of (&rows[i], source))
      try_row (r, &rows[i], tried, &line.n_unlike);
  sum_up (tried, &line);
  g_array_append_vals (all, tried->data, tried->len);
  for (guint i = 0; i < tried->len; i++)
    g_array_index (tried, Tried, i).weight = 1.0 / tried->len;
  g_array_append_vals (each, tried->data, tried->len);
  return line;
}

/* So that each source of them counts once. */
static void
weigh_by_source (GArray *tried)
{
  Tried *t = (Tried *) (gpointer) tried->data;
  for (guint i = 0; i < tried->len; i++) {
    guint n = 0;
    g_autofree char *source = source_of (t[i].row->family);
    for (guint k = 0; k < tried->len; k++)
      n += is_of (t[k].row, source);
    t[i].weight = 1.0 / n;
  }
}

/* All rows with a word by those without it. */
static void
try_left_out (LsCoverageRun *run, const LsLeftOut *l, const LsScoreRow *rows, guint n_rows, GArray *all)
{
  g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried)),
                     rest = ls_rows_without (rows, n_rows, l);
  g_autoptr (LsResiduals) r = ls_residuals_of_rows ((const LsScoreRow *) (gpointer) rest->data, rest->len);
  char *name = g_strjoin (" ", ls_aspect_key ((LsAspect) l->aspect), l->word, NULL);
  LsCoverageLine line = { .source = name };
  g_ptr_array_add (run->names, name);
  for (guint i = 0; i < n_rows; i++)
    if (ls_left_out_has (l, &rows[i]))
      try_row (r, &rows[i], tried, &line.n_unlike);
  weigh_by_source (tried);
  sum_up (tried, &line);
  g_array_append_val (run->left_out, line);
  g_array_append_vals (all, tried->data, tried->len);
}

/* Each word of an aspect, and all of them together. */
static void
try_words (LsCoverageRun *run, const LsScoreRow *rows, guint n_rows, LsAspect aspect)
{
  char *name = g_strconcat ("any ", ls_aspect_key (aspect), NULL);
  LsCoverageLine total = { .source = name };
  g_ptr_array_add (run->names, name);
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Tried)),
                     list = ls_left_out_list (rows, n_rows, aspect);
  for (guint i = 0; i < list->len; i++) {
    try_left_out (run, &g_array_index (list, LsLeftOut, i), rows, n_rows, all);
    total.n_unlike += g_array_index (run->left_out, LsCoverageLine, run->left_out->len - 1).n_unlike;
  }
  sum_up (all, &total);
  if (list->len > 1)
    g_array_append_val (run->left_out, total);
}

static GPtrArray *
list_sources (const LsScoreRow *rows, guint n_rows)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < n_rows; i++) {
    g_autofree char *source = source_of (rows[i].family);
    if (!is_refused (&rows[i]) && !g_ptr_array_find_with_equal_func (names, source, g_str_equal, NULL))
      g_ptr_array_add (names, g_steal_pointer (&source));
  }
  return names;
}

LsCoverageRun *
ls_coverage_run_new (const LsScoreRow *rows, guint n_rows)
{
  LsCoverageRun *run = g_new0 (LsCoverageRun, 1);
  run->names = list_sources (rows, n_rows);
  run->lines = g_array_new (FALSE, TRUE, sizeof (LsCoverageLine));
  run->left_out = g_array_new (FALSE, TRUE, sizeof (LsCoverageLine));
  g_autoptr (GArray) each = g_array_new (FALSE, FALSE, sizeof (Tried));
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Tried));
  LsCoverageLine once = { .source = "each source once" }, every = { .source = "each row once" };
  guint n_sources = run->names->len;
  for (guint k = 0; k < n_sources; k++) {
    LsCoverageLine line = try_source (run->names->pdata[k], rows, n_rows, each, all);
    once.n_unlike += line.n_unlike;
    g_array_append_val (run->lines, line);
  }
  every.n_unlike = once.n_unlike;
  sum_up (each, &once);
  sum_up (all, &every);
  for (LsAspect a = 0; a < LS_N_WORD_ASPECTS; a++)
    try_words (run, rows, n_rows, a);
  run->result = (LsCoverage) {
    .level = LS_INTERVAL_LEVEL,
    .n_sources = run->lines->len,
    .sources = (const LsCoverageLine *) (gpointer) run->lines->data,
    .each = once,
    .rows = every,
    .n_left_out = run->left_out->len,
    .left_out = (const LsCoverageLine *) (gpointer) run->left_out->data,
  };
  return run;
}

const LsCoverage *
ls_coverage_run_result (const LsCoverageRun *run)
{
  return &run->result;
}

/* ---- residuals as a file ---- */

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
