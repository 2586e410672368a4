/* validate/scores.c — predictions next to measurements: what a calculator says, refusals, residuals and how
 * well they serve, and what is left without a mechanism. */
#include "validate/validate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/list.h"
#include "base/order.h"

/* --- what a calculator that knows one MFU would say ---------------------------------------------- */

static bool
is_refused (const LsScoreRow *row)
{
  return isnan (row->predicted_s);
}

/* A row that may teach. */
typedef struct {
  double mfu; /* first, to be sorted by */
  guint row;
  const char *family;
} Lesson;

static bool
teaches (const Lesson *lesson, guint row, const char *family, LsBaseline baseline)
{
  bool is_own = g_str_equal (lesson->family, family);
  return baseline == LS_BASELINE_OWN ? is_own && lesson->row != row : !is_own;
}

/* The median; NaN: nobody teaches. chosen: room for as many as there are lessons. */
static double
learn_mfu (const GArray *lessons, guint row, const char *family, LsBaseline baseline, double *chosen)
{
  guint n = 0;
  for (guint i = 0; i < lessons->len; i++) {
    const Lesson *lesson = &g_array_index (lessons, Lesson, i);
    if (teaches (lesson, row, family, baseline))
      chosen[n++] = lesson->mfu;
  }
  return n > 0 ? (chosen[(n - 1) / 2] + chosen[n / 2]) / 2 : NAN;
}

void
ls_baseline (LsScoreRow *rows, guint n)
{
  g_autoptr (GArray) lessons = g_array_new (FALSE, FALSE, sizeof (Lesson));
  for (guint i = 0; i < n; i++) {
    Lesson lesson = { rows[i].ideal_s / rows[i].measured_s, i, rows[i].family };
    if (!is_refused (&rows[i]) && isfinite (lesson.mfu))
      g_array_append_val (lessons, lesson);
  }
  g_array_sort (lessons, ls_compare_doubles);
  g_autofree double *room = g_new (double, lessons->len);
  for (guint i = 0; i < n; i++) {
    double own = learn_mfu (lessons, i, rows[i].family, LS_BASELINE_OWN, room);
    double others = learn_mfu (lessons, i, rows[i].family, LS_BASELINE_OTHERS, room);
    double ideal_s = is_refused (&rows[i]) ? NAN : rows[i].ideal_s;
    rows[i].baseline_s[LS_BASELINE_OWN] = ideal_s / (isnan (own) ? others : own);
    rows[i].baseline_s[LS_BASELINE_OTHERS] = ideal_s / others;
  }
}

/* --- refusals --------------------------------------------------------------------------------------- */

/* Every run of digits that stands by itself becomes "#"; in words, such as "1f1b", they stay. */
static char *
without_numbers (const char *reason)
{
  GString *out = g_string_new (NULL);
  for (const char *c = reason; *c;) {
    size_t n = strspn (c, "0123456789");
    bool is_in_word
        = n == 0 || (c > reason && (g_ascii_isalpha (c[-1]) || c[-1] == '_')) || g_ascii_isalpha (c[n]);
    if (is_in_word)
      g_string_append_len (out, c, (gssize) MAX (n, 1));
    else
      g_string_append_c (out, '#');
    c += MAX (n, 1);
  }
  return g_string_free (out, FALSE);
}

static void
add (GArray *refusals, const LsScoreRow *row)
{
  g_autofree char *pattern = without_numbers (row->reason);
  for (guint i = 0; i < refusals->len; i++) {
    LsRefusal *r = &g_array_index (refusals, LsRefusal, i);
    g_autofree char *same = without_numbers (r->reason);
    if (!g_str_equal (pattern, same))
      continue;
    r->n++;
    if (!g_str_equal (r->reason, row->reason)) {
      g_free (r->reason);
      r->reason = g_steal_pointer (&pattern);
    }
    return;
  }
  ls_list_add (refusals, &(LsRefusal) { g_strdup (row->reason), 1, row->id });
}

static const LsSortKey by_rows[] = { { LS_FALLING (LsRefusal, n) }, { 0 } };

GArray *
ls_refusals (const LsScoreRow *rows, guint n_rows)
{
  GArray *refusals = ls_list_new (sizeof (LsRefusal), ls_clear_text);
  for (guint i = 0; i < n_rows; i++)
    if (is_refused (&rows[i]) && rows[i].reason)
      add (refusals, &rows[i]);
  ls_sort_by (refusals, by_rows); /* stable */
  return refusals;
}

/* --- without some of the rows ----------------------------------------------------------------------- */

/* A scoreboard without the rows that have a trait in common, to see what the others say
 * of them. */

/* All rows with a word; or all of a source, or with a software. */
typedef struct {
  int aspect;           /* LsAspect                        */
  const char *word;     /* interned or static; of a word   */
  const char *source;   /* NULL: of an aspect              */
  const char *software; /* likewise                        */
} LeftOut;

static bool
is_of (const LsScoreRow *row, const char *source)
{
  size_t n = strlen (source);
  return strncmp (row->family, source, n) == 0 && (row->family[n] == '-' || row->family[n] == '\0');
}

static const char *
word_of (const LsScoreRow *row, int aspect)
{
  return aspect == LS_ASPECT_ARCHITECTURE ? row->architecture : row->traits.word[aspect];
}

/* False of a refused row. */
static bool
is_left_out (const LeftOut *l, const LsScoreRow *row)
{
  if (is_refused (row))
    return false;
  if (l->source)
    return is_of (row, l->source);
  return g_strcmp0 (l->software ? row->software : word_of (row, l->aspect),
                    l->software ? l->software : l->word)
      == 0;
}

static bool
is_listed (const GArray *list, const LeftOut *one)
{
  for (guint i = 0; i < list->len; i++)
    if (g_str_equal (g_array_index (list, LeftOut, i).word, one->word))
      return true;
  return false;
}

static bool
divides (const LeftOut *l, const LsScoreRow *rows, guint n_rows)
{
  guint n_out = 0, n_in = 0;
  for (guint i = 0; i < n_rows; i++) {
    bool is_out = is_left_out (l, &rows[i]);
    n_out += is_out;
    n_in += !is_out && !is_refused (&rows[i]);
  }
  return n_out > 0 && n_in > 0;
}

/* LeftOut: each word of the rows that leaves some out and some in, in the order of the rows. */
static GArray *
list_left_out (const LsScoreRow *rows, guint n_rows, LsAspect aspect)
{
  GArray *list = g_array_new (FALSE, TRUE, sizeof (LeftOut));
  for (guint i = 0; i < n_rows; i++) {
    if (is_refused (&rows[i]))
      continue;
    const LeftOut l = { .aspect = (int) aspect, .word = word_of (&rows[i], (int) aspect) };
    if (l.word && !is_listed (list, &l) && divides (&l, rows, n_rows))
      g_array_append_val (list, l);
  }
  return list;
}

/* The rows that are not left out, and not refused. LsScoreRow, whose strings are borrowed. */
static GArray *
rows_without (const LsScoreRow *rows, guint n_rows, const LeftOut *left_out)
{
  GArray *some = g_array_new (FALSE, FALSE, sizeof (LsScoreRow));
  for (guint i = 0; i < n_rows; i++)
    if (!is_refused (&rows[i]) && !is_left_out (left_out, &rows[i]))
      g_array_append_val (some, rows[i]);
  return some;
}

/* ---- residuals ---- */

static bool
is_same_group (const LsScoreRow *a, const LsScoreRow *b)
{
  return !is_refused (a) && !is_refused (b) && strcmp (a->family, b->family) == 0
      && strcmp (a->architecture, b->architecture) == 0 && strcmp (a->software, b->software) == 0;
}

/* What was predicted before anybody had seen the row, if that is known. */
static double
first_of (const LsScoreRow *row)
{
  return row->first_s > 0 ? row->first_s : row->predicted_s;
}

static double
residual_of (const LsScoreRow *row)
{
  double predicted_s = first_of (row);
  return ls_residual (row->measured_s, predicted_s, row->mfu * row->predicted_s / predicted_s);
}

static void
add_group (LsResiduals *r, const LsScoreRow *rows, guint n_rows, const LsScoreRow *first)
{
  g_autofree double *residuals = g_new (double, n_rows);
  double lowest = first->mfu;
  guint n = 0;
  for (guint i = 0; i < n_rows; i++)
    if (is_same_group (&rows[i], first)) {
      residuals[n++] = residual_of (&rows[i]);
      lowest = MIN (lowest, rows[i].mfu);
    }
  g_autofree char *source = ls_residual_source (first->family);
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
  for (guint i = 0; i < n_rows; i++) {
    guint first = 0;
    while (first < i && !is_same_group (&rows[first], &rows[i]))
      first++;
    if (first == i && !is_refused (&rows[i]))
      add_group (r, rows, n_rows, &rows[i]);
  }
  return r;
}

/* ---- jobs unlike the runs ---- */

/* What a row weighs: w_k / n_k of its source (analysis/interval.h). */
static double
weight_of (const LsScoreRow *rows, guint n_rows, const LsScoreRow *of)
{
  guint n = 0;
  g_autofree char *source = ls_residual_source (of->family);
  for (guint i = 0; i < n_rows; i++)
    n += !is_refused (&rows[i]) && is_of (&rows[i], source);
  return 1.0 / (n + 1.0);
}

typedef struct {
  double size; /* first, to be sorted by */
  double weight;
} Sized;

/* The least size up to which there is a share `level` of the weight; sorts. NaN: of none. */
static double
quantile (GArray *sized, double level)
{
  double all = 0, held = 0;
  guint i = 0;
  for (guint k = 0; k < sized->len; k++)
    all += g_array_index (sized, Sized, k).weight;
  g_array_sort (sized, ls_compare_doubles);
  while (i + 1 < sized->len && held + g_array_index (sized, Sized, i).weight < level * all)
    held += g_array_index (sized, Sized, i++).weight;
  return sized->len > 0 ? g_array_index (sized, Sized, i).size : NAN;
}

/* How many times as wide intervals by the others must be to hold the rows that are left out; NaN: there are
 * no others. */
static double
width_needed (const LsScoreRow *rows, guint n_rows, const LeftOut *left_out)
{
  g_autoptr (GArray) rest = rows_without (rows, n_rows, left_out),
                     sized = g_array_new (FALSE, FALSE, sizeof (Sized));
  const LsScoreRow *others = (const LsScoreRow *) (gpointer) rest->data;
  g_autoptr (LsResiduals) r = group_rows (others, rest->len);
  for (guint i = 0; i < n_rows; i++) {
    double spread = is_left_out (left_out, &rows[i]) ? ls_residuals_spread (r, rows[i].software) : 0;
    if (spread > 0)
      ls_list_add (sized,
                   &(Sized) { fabs (residual_of (&rows[i])) / spread, weight_of (rows, n_rows, &rows[i]) });
  }
  return quantile (sized, LS_INTERVAL_LEVEL);
}

LsResiduals *
ls_residuals_of_rows (const LsScoreRow *rows, guint n_rows)
{
  LsResiduals *r = group_rows (rows, n_rows);
  g_autoptr (GArray) needed = g_array_new (FALSE, FALSE, sizeof (double));
  for (LsAspect a = 0; a < LS_N_WORD_ASPECTS; a++) {
    g_autoptr (GArray) list = list_left_out (rows, n_rows, a);
    for (guint i = 0; i < list->len; i++) {
      double factor = width_needed (rows, n_rows, &g_array_index (list, LeftOut, i));
      if (!isnan (factor))
        g_array_append_val (needed, factor);
    }
  }
  ls_residuals_set_unlike (r, needed);
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
  double width; /* high over low; first, to be sorted by */
  double weight;
  bool is_covered;
  const LsScoreRow *row;
} Tried;

void
ls_coverage_free (LsCoverage *c)
{
  if (!c)
    return;
  g_ptr_array_unref (c->names);
  g_array_unref (c->sources);
  g_array_unref (c->softwares);
  g_array_unref (c->left_out);
  g_free (c);
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
  line->covered = line->width = line->narrowest = NAN;
  if (tried->len == 0)
    return;
  line->covered = covered / all;
  qsort (t, tried->len, sizeof *t, ls_compare_doubles);
  for (guint i = 0; i < tried->len && below < all / 2; below += t[i++].weight)
    line->width = t[i].width;
}

/* Its interval by those residuals, appended to `tried`; or another row without. */
static void
try_row (const LsResiduals *r, const LsScoreRow *row, GArray *tried, guint *n_unlike)
{
  double predicted_s = first_of (row), over = row->measured_s / predicted_s;
  const LsIntervalJob job = { .architecture = row->architecture,
                              .software = row->software,
                              .mfu = row->mfu * row->predicted_s / predicted_s,
                              .traits = row->traits };
  LsInterval interval;
  ls_interval_find (r, &job, &interval);
  Tried t = { interval.high / interval.low, 1, interval.low <= over && over <= interval.high, row };
  if (interval.none)
    ++*n_unlike;
  else
    g_array_append_val (tried, t);
  ls_interval_clear (&interval);
}

/* The rows that are left out by the others; those with an interval are appended to `tried`. */
static LsCoverageLine
try_left_out (const LeftOut *l, const char *name, const LsScoreRow *rows, guint n_rows, GArray *tried)
{
  LsCoverageLine line = { .source = name };
  g_autoptr (GArray) rest = rows_without (rows, n_rows, l);
  g_autoptr (LsResiduals) r = ls_residuals_of_rows ((const LsScoreRow *) (gpointer) rest->data, rest->len);
  for (guint i = 0; i < n_rows; i++)
    if (is_left_out (l, &rows[i]))
      try_row (r, &rows[i], tried, &line.n_unlike);
  return line;
}

/* The rows of one source; appends those with an interval to `each` and `all`. */
static LsCoverageLine
try_source (const char *source, const LsScoreRow *rows, guint n_rows, GArray *each, GArray *all)
{
  g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried));
  const LeftOut l = { .source = source };
  LsCoverageLine line = try_left_out (&l, source, rows, n_rows, tried);
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
    g_autofree char *source = ls_residual_source (t[i].row->family);
    for (guint k = 0; k < tried->len; k++)
      n += is_of (t[k].row, source);
    t[i].weight = 1.0 / n;
  }
}

/* High over low of the narrowest range of measured over predicted with a share LS_INTERVAL_LEVEL of the rows
 * with that software that are not of the source; NaN: there are none. */
static double
narrowest_of_others (const GArray *tried, const char *software, const char *source)
{
  g_autoptr (GArray) over = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < tried->len; i++) {
    const LsScoreRow *row = g_array_index (tried, Tried, i).row;
    double value = row->measured_s / first_of (row);
    if (g_str_equal (row->software, software) && !is_of (row, source))
      g_array_append_val (over, value);
  }
  g_array_sort (over, ls_compare_doubles);
  guint n = (guint) ceil (LS_INTERVAL_LEVEL * over->len - 1e-9);
  const double *v = (const double *) (gpointer) over->data;
  double least = NAN;
  for (guint i = 0; n > 0 && i + n <= over->len; i++)
    least = fmin (least, v[i + n - 1] / v[i]);
  return least;
}

/* The rows with a software, each by the other sources. */
static LsCoverageLine
sum_up_software (const GArray *all, const char *software)
{
  g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried)),
                     narrowest = g_array_new (FALSE, FALSE, sizeof (Sized));
  g_autoptr (GHashTable) by_source = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  LsCoverageLine line = { .source = software };
  for (guint i = 0; i < all->len; i++) {
    const Tried *t = &g_array_index (all, Tried, i);
    if (!g_str_equal (t->row->software, software))
      continue;
    g_autofree char *source = ls_residual_source (t->row->family);
    double *least = g_hash_table_lookup (by_source, source);
    if (!least) {
      least = g_new (double, 1);
      *least = narrowest_of_others (all, software, source);
      g_hash_table_insert (by_source, g_steal_pointer (&source), least);
    }
    g_array_append_val (tried, *t);
    if (!isnan (*least))
      ls_list_add (narrowest, &(Sized) { *least, 1 });
  }
  sum_up (tried, &line);
  line.narrowest = quantile (narrowest, 0.5);
  return line;
}

/* By software: as each source by the others, and as all its rows by those with other software. */
static void
try_softwares (LsCoverage *c, const LsScoreRow *rows, guint n_rows, const GArray *all)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < all->len; i++) {
    const char *software = g_array_index (all, Tried, i).row->software;
    if (!g_hash_table_add (seen, (gpointer) software))
      continue;
    LsCoverageLine line = sum_up_software (all, software);
    g_array_append_val (c->softwares, line);
    const LeftOut l = { .software = software };
    g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried));
    g_ptr_array_add (c->names, g_strconcat ("software ", software, NULL));
    line = try_left_out (&l, c->names->pdata[c->names->len - 1], rows, n_rows, tried);
    weigh_by_source (tried);
    sum_up (tried, &line);
    if (g_array_index (c->softwares, LsCoverageLine, 0).n < all->len) /* there are others */
      g_array_append_val (c->left_out, line);
  }
}

/* Each word of an aspect, the rows with it by those without, and all of them together. */
static void
try_words (LsCoverage *c, const LsScoreRow *rows, guint n_rows, LsAspect aspect)
{
  const char *of = ls_aspect_names[aspect].name;
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Tried)),
                     list = list_left_out (rows, n_rows, aspect);
  g_ptr_array_add (c->names, g_strconcat ("any ", of, NULL));
  LsCoverageLine total = { .source = c->names->pdata[c->names->len - 1] };
  for (guint i = 0; i < list->len; i++) {
    const LeftOut *l = &g_array_index (list, LeftOut, i);
    g_autoptr (GArray) tried = g_array_new (FALSE, FALSE, sizeof (Tried));
    g_ptr_array_add (c->names, g_strjoin (" ", of, l->word, NULL));
    LsCoverageLine line = try_left_out (l, c->names->pdata[c->names->len - 1], rows, n_rows, tried);
    weigh_by_source (tried);
    sum_up (tried, &line);
    total.n_unlike += line.n_unlike;
    g_array_append_val (c->left_out, line);
    g_array_append_vals (all, tried->data, tried->len);
  }
  sum_up (all, &total);
  if (list->len > 1)
    g_array_append_val (c->left_out, total);
}

LsCoverage *
ls_coverage_new (const LsScoreRow *rows, guint n_rows)
{
  LsCoverage *c = g_new (LsCoverage, 1);
  *c = (LsCoverage) { .level = LS_INTERVAL_LEVEL,
                      .names = g_ptr_array_new_with_free_func (g_free),
                      .sources = g_array_new (FALSE, TRUE, sizeof (LsCoverageLine)),
                      .softwares = g_array_new (FALSE, TRUE, sizeof (LsCoverageLine)),
                      .left_out = g_array_new (FALSE, TRUE, sizeof (LsCoverageLine)),
                      .each = { .source = "each source once" },
                      .rows = { .source = "each row once" } };
  g_autoptr (GArray) each = g_array_new (FALSE, FALSE, sizeof (Tried));
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Tried));
  for (guint i = 0; i < n_rows; i++) {
    g_autofree char *source = ls_residual_source (rows[i].family);
    if (!is_refused (&rows[i]) && !g_ptr_array_find_with_equal_func (c->names, source, g_str_equal, NULL))
      g_ptr_array_add (c->names, g_steal_pointer (&source));
  }
  guint n_sources = c->names->len;
  for (guint k = 0; k < n_sources; k++) {
    LsCoverageLine line = try_source (c->names->pdata[k], rows, n_rows, each, all);
    c->each.n_unlike += line.n_unlike;
    g_array_append_val (c->sources, line);
  }
  c->rows.n_unlike = c->each.n_unlike;
  try_softwares (c, rows, n_rows, all);
  sum_up (each, &c->each);
  sum_up (all, &c->rows);
  for (LsAspect a = 0; a < LS_N_WORD_ASPECTS; a++)
    try_words (c, rows, n_rows, a);
  return c;
}

/* ---- residuals as a file ---- */

static char *
four_digits (double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_formatd (text, sizeof text, "%.4f", value));
}

/* Six digits; of what is no share all that it has: the run itself might lie beyond it. */
static char *
figure_text (double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  double read = g_ascii_strtod (g_ascii_formatd (text, sizeof text, "%.6g", value), NULL);
  bool is_whole = value <= 1 || (read >= value && read <= value);
  return g_strdup (is_whole ? text : g_ascii_formatd (text, sizeof text, "%.17g", value));
}

#include "validate/residuals_text.h"

/* ---- ablation ---- */

static void
ablate_contention (LsAblated *a)
{
  a->options.network = LS_NETWORK_ALPHABETA;
}

static void
ablate_slowdown (LsAblated *a)
{
  LsNccl *n = &a->hardware.nccl;
  n->sm_share_per_channel = n->stall_per_byte = 0;
  n->hbm_per_wire_all_reduce = n->hbm_per_wire_all_gather = n->hbm_per_wire_reduce_scatter
      = n->hbm_per_wire_p2p = 0;
}

static void
ablate_host (LsAblated *a)
{
  a->options.host = (LsHostCosts) { .is_final = true };
}

static void
ablate_grad_norm (LsAblated *a)
{
  a->strategy.opt.grad_norm = false;
}

static void
ablate_p2p (LsAblated *a)
{
  LsStrategy *s = &a->strategy;
  if (s->pp > 1 && s->schedule && ls_sched_find (s->schedule) != ls_sched_usual (s->pp, 1))
    s->mp.p2p = LS_P2P_OVERLAPPED;
}

static void
ablate_latency (LsAblated *a)
{
  const LsHardware whole = a->hardware;
  ls_scaled_init (&a->scaled, &whole.spec, &whole, &a->options.host, LS_SCALE_NETWORK_LATENCY, 0);
  a->hardware = (LsHardware) { a->scaled.spec, a->scaled.calibration, a->scaled.nccl };
}

static void
ablate_clocks (LsAblated *a)
{
  a->hardware.calibration.sustained = 1;
  a->hardware.calibration.sustained_fp8 = a->hardware.calibration.sustained_nvfp4 = 0;
  a->hardware.spec.gpu.clock_spread = a->hardware.spec.gpu.power_limited_flops = 0;
  for (int i = 0; i < LS_N_ENTRIES; i++)
    a->hardware.calibration.kind[i].throttle = 0;
}

static void
ablate_tiles (LsAblated *a)
{
  for (int i = 0; i < LS_N_ENTRIES; i++)
    a->hardware.calibration.kind[i].wave_rounding = a->hardware.calibration.kind[i].tail = 0;
}

static void
ablate_hbm (LsAblated *a)
{
  a->hardware.spec.gpu.hbm_efficiency = 1;
  for (int i = 0; i < LS_N_ENTRIES; i++) {
    a->hardware.calibration.kind[i].memory_efficiency = 1;
    a->hardware.calibration.kind[i].bytes_half = 0;
  }
}

/* "is_fitted" stays: by it an implementation of attention is known. */
static void
ablate_kernels (LsAblated *a)
{
  LsKindFit *kind = a->hardware.calibration.kind;
  ablate_clocks (a);
  ablate_hbm (a);
  for (int i = 0; i < LS_N_ENTRIES; i++)
    kind[i] = (LsKindFit) { .is_fitted = kind[i].is_fitted, .compute_efficiency = 1, .memory_efficiency = 1 };
  a->hardware.calibration.measured = NULL;
}

const LsAblationRow ls_ablations[LS_N_ABLATIONS] = {
  [LS_ABLATE_CONTENTION] = { "contention", "shared links", ablate_contention },
  [LS_ABLATE_SLOWDOWN] = { "slowdown", "slowdown of kernels", ablate_slowdown },
  [LS_ABLATE_HOST] = { "host", "host costs", ablate_host },
  [LS_ABLATE_GRAD_NORM] = { "grad_norm", "gradient norm", ablate_grad_norm },
  [LS_ABLATE_P2P] = { "p2p", "waits for p2p", ablate_p2p },
  [LS_ABLATE_LATENCY] = { "latency", "network latency", ablate_latency },
  [LS_ABLATE_CLOCKS] = { "clocks", "sustained clocks", ablate_clocks },
  [LS_ABLATE_TILES] = { "tiles", "tiles and waves", ablate_tiles },
  [LS_ABLATE_HBM] = { "hbm", "HBM efficiency", ablate_hbm },
  [LS_ABLATE_KERNELS] = { "kernels", "kernels but roofline", ablate_kernels },
};

void
ls_ablated_init (LsAblated *a, LsAblation ablation, const LsHardware *hardware, const LsStrategy *strategy,
                 const LsRunOptions *options)
{
  *a = (LsAblated) { .hardware = *hardware, .options = *options };
  ls_strategy_copy (&a->strategy, strategy);
  ls_ablations[ablation].apply (a);
}

void
ls_ablated_clear (LsAblated *a)
{
  ls_strategy_clear (&a->strategy);
  ls_scaled_clear (&a->scaled);
}
