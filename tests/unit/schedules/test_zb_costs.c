/* Pins how the automatic schedulers compare with their inventors' heuristics: the rows of
 * ../shared/data/schedules/zero-bubble-costs.csv, each a job and the best span reached
 * there. Every 41st row by default; all with LS_CASES=500, where the table that is printed
 * must be the pinned one. */
#include "zb_case.h"

#define N_ROWS     500
#define EFFORT     (10 * 1000 * 1000) /* that of schedules/zb_auto.c for these sizes */
#define MAX_STAGES 32

typedef struct {
  const char *schedule;
  guint n, n_reached, n_better;
} Share;

/* All 500, as LS_CASES=500 prints them. */
static const Share pinned[] = {
  { "zb-auto", 322, 321, 22 },
  { "zbv-auto", 62, 61, 41 },
  { "v-half", 66, 66, 53 },
  { "v-min", 50, 50, 45 },
};

static uint32_t
limit_of (const char *schedule, uint32_t p, uint32_t v, const char *cell)
{
  if (strcmp (schedule, "v-half") == 0)
    return (p + 2) / 2 * 4;
  if (strcmp (schedule, "v-min") == 0)
    return (p + 4) / 3 * 4;
  return *cell ? (uint32_t) (g_ascii_strtod (cell, NULL) * 2 * v) : LS_ZB_UNLIMITED;
}

static void
check_row (char **cells, Share *share)
{
  LsTime f[MAX_STAGES], i[MAX_STAGES], w[MAX_STAGES];
  uint32_t p = (uint32_t) g_ascii_strtoull (cells[1], NULL, 10),
           v = strcmp (cells[0], "zb-auto") == 0 ? 1 : 2;
  for (guint s = 0; s < MAX_STAGES; s++) {
    f[s] = g_ascii_strtoll (cells[3], NULL, 10);
    i[s] = g_ascii_strtoll (cells[4], NULL, 10);
    w[s] = g_ascii_strtoll (cells[5], NULL, 10);
  }
  LsZbJob job = {
    .p = p,
    .v = v,
    .m = (uint32_t) g_ascii_strtoull (cells[2], NULL, 10),
    .f = f,
    .i = i,
    .w = w,
    .comm = g_ascii_strtoll (cells[6], NULL, 10),
    .limit = limit_of (cells[0], p, v, cells[7]),
  };
  double theirs = g_ascii_strtod (cells[9], NULL);
  g_autoptr (LsSchedEval) e = zb_evaluate (&job, EFFORT);
  share->n++;
  share->n_reached += e && (double) e->span <= theirs;
  share->n_better += e && (double) e->span < theirs;
  if (e && (double) e->span > theirs)
    printf ("  later: %s p %s m %s F %s I %s W %s comm %s limit %s: %" G_GINT64_FORMAT ", theirs %g\n",
            cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], *cells[7] ? cells[7] : "-",
            e->span, theirs);
}

static void
spans_are_at_most_those_of_the_inventors (void)
{
  const char *root = ls_test_shared_data ();
  if (root == NULL)
    return;
  guint n_rows = (guint) g_ascii_strtoull (g_getenv ("LS_CASES") ? g_getenv ("LS_CASES") : "12", NULL, 10);
  guint step = MAX (1, N_ROWS / MAX (1, n_rows));
  g_autofree char *path = g_build_filename (root, "schedules", "zero-bubble-costs.csv", NULL);
  g_autofree char *text = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return;

  Share shares[G_N_ELEMENTS (pinned)] = { 0 };
  Share all = { "all", 0, 0, 0 };
  g_auto (GStrv) lines = g_strsplit (g_strchomp (text), "\n", -1);
  if (!LS_CHECK (g_strv_length (lines) == N_ROWS + 1))
    return;
  for (guint k = 1; k <= N_ROWS; k += step) {
    g_auto (GStrv) cells = g_strsplit (lines[k], ",", -1);
    for (guint i = 0; i < G_N_ELEMENTS (pinned); i++)
      if (strcmp (cells[0], pinned[i].schedule) == 0)
        check_row (cells, &shares[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (pinned); i++) {
    printf ("  %-8s %3u rows, reached %3u, better %3u\n", pinned[i].schedule, shares[i].n,
            shares[i].n_reached, shares[i].n_better);
    all.n += shares[i].n;
    all.n_reached += shares[i].n_reached;
    if (step == 1) {
      LS_CHECK_INT (shares[i].n, ==, pinned[i].n);
      LS_CHECK_INT (shares[i].n_reached, ==, pinned[i].n_reached);
      LS_CHECK_INT (shares[i].n_better, ==, pinned[i].n_better);
    }
  }
  LS_CHECK_INT (100 * all.n_reached, >=, 99 * all.n);
}

LS_TEST_MAIN ("zb costs", LS_TEST (spans_are_at_most_those_of_the_inventors))
