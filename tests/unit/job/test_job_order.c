/* Pins: a job in the order of a file is the job of the schedule that wrote the file, to the
 * picosecond; a file of another shape or placement is refused with the difference. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "job/job.h"
#include "schedules/sched_layout.h"

static char *
write_order (const char *schedule, uint32_t vpp, uint32_t n_micro_batches)
{
  LsSchedShape shape = { .pp = 2, .vpp = vpp, .n_micro_batches = n_micro_batches };
  LsOrders *orders = ls_sched_orders (ls_sched_find (schedule), &shape);
  g_autoptr (GString) text = g_string_new (NULL);
  for (uint32_t r = 0; r < 2; r++) {
    ls_orders_append_rank (orders, r, text);
    g_string_append_c (text, '\n');
  }
  ls_orders_free (orders);
  char *path = NULL;
  int fd = g_file_open_tmp ("order-XXXXXX.csv", &path, NULL);
  LS_CHECK (fd >= 0 && g_close (fd, NULL) && g_file_set_contents (path, text->str, -1, NULL));
  return path;
}

static LsJobResult *
run (const char *schedule, const char *order, GError **error)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  const char *const knobs[][2]
      = { { "model", "tiny" },     { "cluster", "pair" },    { "pp", "2" },     { "dp", "1" },
          { "global-batch", "4" }, { "schedule", schedule }, { "order", order } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i][1])
      LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  LsJobResult *r = ls_job_spec_run (&spec, error);
  ls_job_spec_clear (&spec);
  return r;
}

static void
a_file_is_the_schedule_that_wrote_it (void)
{
  g_autofree char *path = write_order ("zb-h1", 1, 4);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) own = run ("zb-h1", NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsJobResult) given = run ("1f1b", path, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (own && given && own->timeline->digest == given->timeline->digest);
  LS_CHECK (own && given && own->timeline->window_end == given->timeline->window_end);
  g_unlink (path);
}

static void
a_file_may_have_pipes_both_ways (void)
{
  g_autofree char *path = write_order ("dualpipe", 1, 4);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) own = run ("dualpipe", NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsJobResult) given = run ("chimera", path, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (own && given && own->timeline->digest == given->timeline->digest);
  LS_CHECK (!run ("pipedream", path, &error)); /* whose steps have no order of their own */
  g_unlink (path);
}

static void
refuse (const char *schedule, uint32_t vpp, uint32_t n_micro_batches, const char *said)
{
  g_autofree char *path = write_order (schedule, vpp, n_micro_batches);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = run ("1f1b", path, &error);
  LS_CHECK (!r && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  if (error && !LS_CHECK (strstr (error->message, said) != NULL))
    fprintf (stderr, "%s\n", error->message);
  g_unlink (path);
}

static void
other_shapes_are_refused (void)
{
  refuse ("1f1b", 1, 8, "8 micro-batches; expected pp 2, vpp 1, 4 micro-batches");
  refuse ("zbv", 2, 4, "vpp 2");
  refuse ("dualpipe", 1, 4, "replicas");
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (a_file_is_the_schedule_that_wrote_it),
                    LS_TEST (a_file_may_have_pipes_both_ways), LS_TEST (other_shapes_are_refused))
