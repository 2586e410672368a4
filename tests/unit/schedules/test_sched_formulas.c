/* Pins what the fixed schedules take and hold against the closed forms of their
 * inventors, without communication: rows of ../shared/reference where it is, figures with
 * their source always. Times are scaled so that fractions of them are whole. */
#include <math.h>
#include <string.h>

#include "sched_run.h"

#define SCALE 1000

/* "p=4 m=8 F=10 Bi=12": the number after " key=", or after the last = of the token; 0. */
static double
number_of (const char *config, const char *key)
{
  g_auto (GStrv) tokens = g_strsplit (config, " ", -1);
  gsize n = strlen (key);
  for (guint i = 0; tokens[i]; i++)
    if (strncmp (tokens[i], key, n) == 0 && tokens[i][n] == '=')
      return g_ascii_strtod (strrchr (tokens[i], '=') + 1, NULL);
  return 0;
}

static LsTime
time_in (const char *config, const char *key)
{
  return (LsTime) lround (number_of (config, key) * SCALE);
}

/* A schedule on the shape and times of a row. F, B and W are a chunk's, or with v a whole
 * rank's; B is the full backward, Bi the input gradient. */
static LsSchedEval *
run_row (const char *schedule, const char *config)
{
  uint32_t v = MAX ((uint32_t) number_of (config, "v"), 1);
  bool is_v_of_pp = strcmp (schedule, "dualpipev") == 0;
  uint32_t pp = (uint32_t) (number_of (config, "PP") + number_of (config, "p") + number_of (config, "D"));
  LsSchedShape shape = {
    .pp = is_v_of_pp ? pp / 2 : pp,
    .vpp = v > 1 ? v : 0,
    .n_micro_batches = (uint32_t) number_of (config, "m"),
  };
  if (strcmp (schedule, "chimera") == 0)
    shape.n_micro_batches = pp;
  if (strcmp (schedule, "naive") == 0)
    shape.n_micro_batches = 1;
  if (g_str_has_prefix (schedule, "v-"))
    shape.n_micro_batches = 2 * pp;

  LsTime f = time_in (config, "F"), w = time_in (config, "W"), b = time_in (config, "B");
  LsTime i = b ? b - w : time_in (config, "Bi");
  LsSchedTimes times = times_of (f / v, i / v, w / v, time_in (config, "F&B"), 0);
  return evaluate (schedule, &shape, &times);
}

/* ---- quantities ---- */

static double
makespan (const LsSchedEval *e, const char *config)
{
  return (double) e->makespan / SCALE;
}

static double
span (const LsSchedEval *e, const char *config)
{
  return (double) e->span / SCALE;
}

static double
makespan_bubble (const LsSchedEval *e, const char *config)
{
  return (double) (e->makespan - e->ideal) / SCALE;
}

static double
span_bubble (const LsSchedEval *e, const char *config)
{
  return (double) (e->span - e->ideal) / SCALE;
}

static double
idle (const LsSchedEval *e, const char *config)
{
  return (double) max_idle (e) / SCALE;
}

static double
bubble_fraction (const LsSchedEval *e, const char *config)
{
  return 1 - (double) e->ideal / (double) e->makespan;
}

static double
peak (const LsSchedEval *e, const char *config)
{
  return max_held (e);
}

static double
peak_of_every_rank (const LsSchedEval *e, const char *config)
{
  for (uint32_t r = 1; r < e->n_ranks; r++)
    LS_CHECK_INT (e->ranks[r].held_peak, ==, e->ranks[0].held_peak);
  return e->ranks[0].held_peak;
}

static double
peak_of_first_and_last (const LsSchedEval *e, const char *config)
{
  return e->ranks[0].held_peak + e->ranks[e->n_ranks - 1].held_peak;
}

static double
least_and_most_peak (const LsSchedEval *e, const char *config)
{
  uint32_t least = UINT32_MAX;
  for (uint32_t r = 0; r < e->n_ranks; r++)
    least = MIN (least, e->ranks[r].held_peak);
  return least + max_held (e);
}

/* In micro-batches of two chunks; half of one lives from I to W. */
static double
peak_by_halves (const LsSchedEval *e, const char *config)
{
  uint32_t most = 0;
  for (uint32_t r = 0; r < e->n_ranks; r++)
    most = MAX (most, e->ranks[r].split_peak);
  return most / 4.0;
}

static const struct {
  const char *begins; /* the row's quantity */
  const char *schedule;
  double (*value) (const LsSchedEval *e, const char *config);
  const char *adds; /* to the row's config: what its name says */
} quantities[] = {
  { "naive (m=1)", "naive", makespan, "" },
  { "GPipe makespan", "gpipe", makespan, "" },
  { "GPipe peak act (mb) every rank", "gpipe", peak_of_every_rank, "" },
  { "1F1B/DAPPLE makespan", "1f1b", makespan, "" },
  { "1F1B bubble fraction", "1f1b", bubble_fraction, " F=1 B=2" },
  { "1F1B peak act rank0 / rank p-1", "1f1b", peak_of_first_and_last, "" },
  { "Interleaved 1F1B makespan", "interleaved-1f1b", makespan, "" },
  { "Interleaved 1F1B peak chunks rank0", "interleaved-1f1b", peak, "" },
  { "LoopedBFS (breadth-first) makespan", "looped-bfs", makespan, "" },
  { "LoopedBFS peak chunks", "looped-bfs", peak_of_every_rank, "" },
  { "PyTorch InterleavedZeroBubble makespan", "interleaved-zb", makespan, "" },
  { "PyTorch InterleavedZB peak chunks", "interleaved-zb", peak_of_every_rank, "" },
  { "ZB-V (fixed order", "zbv", span, "" },
  { "ZB-V peak chunks", "zbv", peak, "" },
  { "ZB-H1 (=ZB-1p) bubble", "zb-h1", makespan_bubble, "" },
  { "ZB-H1 peak act", "zb-h1", peak_of_every_rank, "" },
  { "ZB-H2/ZB-2p bubble F=Bi=W", "zb-h2", span_bubble, " F=1 Bi=1 W=1" },
  { "DualPipe bubble (max idle", "dualpipe", idle, "" },
  { "DualPipe peak chunk acts", "dualpipe", peak, "" },
  { "DualPipeV bubble (max idle", "dualpipev", idle, "" },
  { "DualPipeV peak chunk acts", "dualpipev", peak, "" },
  { "Chimera N=D B=F makespan", "chimera", makespan, " F=1 B=1" },
  { "Chimera N=D B=2F makespan", "chimera", makespan, " F=1 B=2" },
  { "Chimera peak act", "chimera", least_and_most_peak, "" },
  { "vhalf peak", "v-half", peak_by_halves, " F=1 Bi=1 W=1" },
  { "vmin peak", "v-min", peak_by_halves, " F=1 Bi=1 W=1" },
};

/* Returns whether the quantity is known. */
static gboolean
check_row (const char *quantity, const char *row_config, double expected)
{
  for (guint i = 0; i < G_N_ELEMENTS (quantities); i++)
    if (g_str_has_prefix (quantity, quantities[i].begins)) {
      g_autofree char *config = g_strconcat (row_config, quantities[i].adds, NULL);
      g_autoptr (LsSchedEval) e = run_row (quantities[i].schedule, config);
      double value = e ? quantities[i].value (e, config) : NAN;
      ls_check_impl (fabs (value - expected) <= 5e-10, __FILE__, __LINE__, "%s, %s: %.12g, not %.12g",
                     quantity, config, value, expected);
      return TRUE;
    }
  return FALSE;
}

/* ---- rows of ../shared/reference ---- */

/* The cells of a line; commas inside quotes belong to a cell. */
static GPtrArray *
split_csv (const char *line)
{
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);
  GString *cell = g_string_new (NULL);
  bool is_quoted = false;
  for (const char *c = line; *c; c++) {
    if (*c == '"') {
      is_quoted = !is_quoted;
    } else if (*c == ',' && !is_quoted) {
      g_ptr_array_add (cells, g_strdup (cell->str));
      g_string_truncate (cell, 0);
    } else if (*c != '\r') {
      g_string_append_c (cell, *c);
    }
  }
  g_ptr_array_add (cells, g_string_free (cell, FALSE));
  return cells;
}

/* Lines of a file of the reference, without the header; NULL, after saying so, if absent. */
static char **
reference_lines (const char *name)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return NULL;
  g_autofree char *path = g_build_filename (shared, "..", "reference", name, NULL);
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, NULL)) {
    printf ("skipped: %s not here\n", path);
    return NULL;
  }
  g_strchomp (text);
  const char *first = strchr (text, '\n');
  return g_strsplit (first ? first + 1 : "", "\n", -1);
}

static void
rows_of_the_closed_forms_hold (void)
{
  g_auto (GStrv) lines = reference_lines ("schedule-formulas.csv");
  guint n = 0;
  for (guint i = 0; lines && lines[i]; i++) {
    g_autoptr (GPtrArray) cells = split_csv (lines[i]);
    const char *quantity = cells->pdata[0], *config = cells->pdata[1];
    double expected = g_ascii_strtod (cells->pdata[3], NULL);
    if (g_str_has_prefix (quantity, "PipeDream weight versions")) {
      LsSchedShape shape = { (uint32_t) number_of (config, "p"), 1, 64 };
      uint32_t stage = (uint32_t) number_of (config, "stage");
      LS_CHECK_DOUBLE (ls_sched_find ("pipedream")->n_versions (&shape, stage), ==, expected);
      n++;
    } else {
      LS_CHECK (check_row (quantity, config, expected));
      n++;
    }
  }
  if (lines)
    LS_CHECK_INT (n, ==, 140);
}

static void
check_dualpipe (const double row[8])
{
  LsSchedShape shape = { (uint32_t) row[0], 0, (uint32_t) row[1] };
  LsSchedTimes times = times_of (lround (row[2] * SCALE), lround (row[3] * SCALE), lround (row[4] * SCALE),
                                 lround (row[5] * SCALE), 0);
  g_autoptr (LsSchedEval) e = evaluate ("dualpipe", &shape, &times);
  LS_CHECK_INT (max_idle (e), ==, lround (row[6] * SCALE));
  LS_CHECK_INT (e->makespan, ==, lround (row[7] * SCALE));
}

static void
rows_of_dualpipe_hold (void)
{
  g_auto (GStrv) lines = reference_lines ("dualpipe-bubbles.csv");
  static const guint columns[] = { 0, 1, 2, 3, 4, 5, 8, 9 };
  guint n = 0;
  for (; lines && lines[n]; n++) {
    g_autoptr (GPtrArray) cells = split_csv (lines[n]);
    double row[8];
    for (guint k = 0; k < G_N_ELEMENTS (columns); k++)
      row[k] = g_ascii_strtod (cells->pdata[columns[k]], NULL);
    check_dualpipe (row);
  }
  if (lines)
    LS_CHECK_INT (n, ==, 420);
}

/* ---- always ---- */

/* A sample of the two files above. */
static void
a_row_of_each_closed_form_holds (void)
{
  static const struct {
    const char *quantity, *config;
    double value;
  } rows[] = {
    { "naive (m=1)", "p=8 F=7 B=14", 168 },
    { "GPipe makespan", "p=8 m=16 F=7 B=14", 483 },
    { "GPipe peak act (mb) every rank", "p=4 m=8", 8 },
    { "1F1B/DAPPLE makespan", "p=4 m=8 F=10 B=20", 330 },
    { "1F1B bubble fraction", "p=8 m=16", 7.0 / 23 },
    { "1F1B peak act rank0 / rank p-1", "p=8 m=16", 9 },
    { "Interleaved 1F1B makespan", "p=4 m=16 v=2 F=3 B=6", 157.5 },
    { "Interleaved 1F1B peak chunks rank0", "p=8 m=32 v=2", 23 },
    { "LoopedBFS (breadth-first) makespan", "p=8 m=16 v=2 F=7 B=14", 409.5 },
    { "LoopedBFS peak chunks", "p=4 m=16 v=2", 32 },
    { "PyTorch InterleavedZeroBubble makespan", "p=8 m=16 v=2 F=7 Bi=9 W=5", 374.5 },
    { "PyTorch InterleavedZB peak chunks", "p=8 m=16 v=2", 16 },
    { "ZB-V (fixed order", "p=8 m=16 F=7 Bi=9 W=5", 728 },
    { "ZB-V peak chunks", "p=8 m=32", 16 },
    { "ZB-H1 (=ZB-1p) bubble", "p=8 m=16 F=10 Bi=14 W=6", 126 },
    { "ZB-H1 peak act", "p=16 m=48", 16 },
    { "ZB-H2/ZB-2p bubble F=Bi=W", "p=4 m=12", 0 },
    { "DualPipe bubble (max idle", "PP=8 m=20 F=6 B=10 W=4 F&B=12", 30 },
    { "DualPipe peak chunk acts", "PP=16 m=64", 17 },
    { "DualPipeV bubble (max idle", "PP=16 m=64 F=1 B=2 W=1 F&B=2.5", 10.5 },
    { "DualPipeV peak chunk acts", "PP=8 m=32", 9 },
    { "Chimera N=D B=F makespan", "D=N=12", 34 },
    { "Chimera N=D B=2F makespan", "D=N=12", 56 },
    { "Chimera peak act", "D=N=8", 13 },
    { "vhalf peak", "p=4", 3 },
    { "vmin peak", "p=4", 2 },
  };
  G_STATIC_ASSERT (G_N_ELEMENTS (rows) == G_N_ELEMENTS (quantities));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    LS_CHECK (check_row (rows[i].quantity, rows[i].config, rows[i].value));

  /* PP, m, F, I, W, FB, idle, makespan */
  static const double dualpipe[][8] = {
    { 4, 8, 10, 22, 5, 37, 39, 335 },         { 4, 16, 3, 4, 2, 6.75, 5.75, 125 },
    { 8, 16, 4, 8, 4, 12, 32, 260 },          { 8, 32, 12, 10, 8, 18, 42, 726 },
    { 10, 20, 10, 15, 8, 24.75, 85, 670.75 }, { 16, 64, 10, 20, 5, 26.25, 243.75, 2072.5 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (dualpipe); i++)
    check_dualpipe (dualpipe[i]);
}

/* Bubble rates with communication, of the zero-bubble authors' own schedulers at times
 * that they measured: 1F1B, and interleaved 1F1B with every wrap-around awaited
 * (sail-sg/zero-bubble, their branch of the paper). */
static void
profiled_settings_have_their_bubble_rates (void)
{
  static const struct {
    uint32_t pp, m, vpp;
    LsTime f, i, w, comm;
    double rate_1f1b, rate_interleaved;
  } rows[] = {
    { 8, 24, 3, 18522, 18086, 9337, 601, .2431, .1090 },
    { 8, 32, 3, 18513, 18086, 9331, 626, .1985, .0847 },
    { 8, 64, 3, 18546, 18097, 9321, 762, .1240, .0461 },
    { 8, 24, 4, 29718, 29444, 19927, 527, .2347, .0827 },
    { 8, 32, 4, 29802, 29428, 19530, 577, .1898, .0644 },
    { 8, 64, 4, 29935, 29621, 19388, 535, .1091, .0328 },
    { 16, 48, 3, 11347, 11248, 8132, 377, .2552, .1136 },
    { 16, 64, 3, 11307, 11254, 8101, 379, .2082, .0878 },
    { 16, 128, 3, 11325, 11308, 8109, 378, .1251, .0459 },
  };
  for (guint k = 0; k < G_N_ELEMENTS (rows); k++) {
    LsSchedShape shape = { rows[k].pp, 1, rows[k].m };
    LsSchedTimes times = times_of (rows[k].f * 12, rows[k].i * 12, rows[k].w * 12, 0, rows[k].comm * 12);
    g_autoptr (LsSchedEval) plain = evaluate ("1f1b", &shape, &times);
    LS_CHECK_NEAR (bubble_fraction (plain, NULL), rows[k].rate_1f1b, 5e-5 / rows[k].rate_1f1b);

    shape.vpp = rows[k].vpp;
    LsTime v = 12 / rows[k].vpp;
    LsSchedTimes chunk = times_of (rows[k].f * v, rows[k].i * v, rows[k].w * v, 0, rows[k].comm * 12);
    g_autoptr (LsSchedEval) interleaved = evaluate ("interleaved-1f1b", &shape, &chunk);
    LS_CHECK_NEAR (bubble_fraction (interleaved, NULL), rows[k].rate_interleaved,
                   5e-5 / rows[k].rate_interleaved);
  }
}

/* bub-1 (arXiv 2104.04473): of the ideal time. */
static void
worked_examples_of_bubbles_hold (void)
{
  LsSchedShape shape = { 8, 1, 64 };
  LsSchedTimes times = times_of (3000, 3000, 3000, 0, 0);
  g_autoptr (LsSchedEval) plain = evaluate ("1f1b", &shape, &times);
  LS_CHECK_DOUBLE ((double) (plain->makespan - plain->ideal) / (double) plain->ideal, ==, 7.0 / 64);
  shape.vpp = 3;
  LsSchedTimes chunk = times_of (1000, 1000, 1000, 0, 0);
  g_autoptr (LsSchedEval) interleaved = evaluate ("interleaved-1f1b", &shape, &chunk);
  LS_CHECK_DOUBLE ((double) (interleaved->makespan - interleaved->ideal) / (double) interleaved->ideal, ==,
                   7.0 / (3 * 64));
}

LS_TEST_SUITE (LS_TEST (a_row_of_each_closed_form_holds), LS_TEST (rows_of_the_closed_forms_hold),
               LS_TEST (rows_of_dualpipe_hold), LS_TEST (profiled_settings_have_their_bubble_rates),
               LS_TEST (worked_examples_of_bubbles_hold))
