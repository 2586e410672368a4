/* Pins schedules whose authors' code was not found against the orders of an independent
 * implementation (ELF) where they are, both run on our evaluator: never later, never more
 * activations than their bound. */
#include <string.h>

#include "sched_run.h"

static uint32_t
number_after (const char *name, const char *key)
{
  const char *p = strstr (name, key);
  return p ? (uint32_t) g_ascii_strtoull (p + strlen (key), NULL, 10) : 0;
}

static void
append_cell (LsOrders *o, uint32_t rank, const char *cell)
{
  static const char letters[] = "FBIW";
  char *p;
  uint32_t stage = (uint32_t) g_ascii_strtoull (cell, &p, 10);
  LsAction a = {
    .chunk = ls_layout_home (&o->layout, 0, stage).chunk,
    .type = (uint8_t) (strchr (letters, *p) - letters),
    .mb = (uint32_t) g_ascii_strtoull (p + 1, NULL, 10),
  };
  g_array_append_val (o->ranks[rank], a);
}

/* The orders of a file, on the layout of ours. */
static LsOrders *
read_orders (const char *path, const LsOrders *ours)
{
  const LsLayout *l = &ours->layout;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_file_get_contents (path, &text, NULL, &error);
  if (!LS_CHECK_NO_ERROR (error))
    return NULL;
  LsOrders *o = ls_orders_new (l->n_ranks, l->n_chunks, 1, l->n_stages, l->n_micro_batches, l->stages);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (uint32_t rank = 0; rank < l->n_ranks; rank++) {
    g_auto (GStrv) cells = g_strsplit (lines[rank], ",", -1);
    for (guint i = 0; cells[i]; i++)
      append_cell (o, rank, cells[i]);
  }
  return o;
}

/* F, I, W, comm: equal, inputs dearer, forwards dearer, fused, extremes, profiled ones. */
static const LsTime costs[][4] = {
  { 1, 1, 1, 0 },
  { 10, 12, 8, 0 },
  { 12, 10, 8, 0 },
  { 1, 2, 0, 0 },
  { 2, 1, 0, 0 },
  { 10, 5, 15, 0 },
  { 20, 10, 5, 0 },
  { 10, 30, 5, 0 },
  { 10, 12, 8, 1 },
  { 10, 10, 10, 5 },
  { 10, 20, 0, 4 },
  { 18522, 18086, 9337, 601 },
  { 29718, 29444, 19927, 527 },
};

static void
compare (const char *path, const char *name, const char *schedule)
{
  LsSchedShape shape = {
    .pp = number_after (name, "_p"),
    .n_micro_batches = number_after (name, "_m"),
    .waves = number_after (name, "_waves"),
  };
  g_autoptr (LsOrders) ours = checked_orders (schedule, &shape);
  g_autoptr (LsOrders) theirs = ours ? read_orders (path, ours) : NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!theirs || !LS_CHECK (ls_orders_check (theirs, NULL, diags)))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (costs); i++) {
    LsSchedTimes times = times_of (costs[i][0], costs[i][1], costs[i][2], 0, costs[i][3]);
    g_autoptr (LsSchedEval) a = ls_orders_eval (ours, &times);
    g_autoptr (LsSchedEval) b = ls_orders_eval (theirs, &times);
    if (!LS_CHECK_INT (a->makespan, <=, b->makespan) || !LS_CHECK_INT (a->span, <=, b->span))
      printf ("  %s, times %u\n", name, i);
  }
}

static void
compare_family (const char *schedule, guint n_files)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return;
  g_autofree char *folder = g_build_filename (shared, "schedules", schedule, NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  if (!LS_CHECK (dir != NULL))
    return;
  guint n = 0;
  for (const char *name; (name = g_dir_read_name (dir)); n++) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    compare (path, name, schedule);
  }
  LS_CHECK_INT (n, ==, n_files);
}

static void
zb_h1_is_never_later (void)
{
  compare_family ("zb-h1", 10);
}

static void
zb_h2_is_never_later (void)
{
  compare_family ("zb-h2", 11);
}

static void
hanayo_is_never_later (void)
{
  compare_family ("hanayo", 44);
}

LS_TEST_MAIN ("sched_reference", LS_TEST (zb_h1_is_never_later), LS_TEST (zb_h2_is_never_later),
              LS_TEST (hanayo_is_never_later))
