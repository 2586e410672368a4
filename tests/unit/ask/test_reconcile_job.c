/* Pins that a simulated step, written as torch.profiler writes one and read back, is the
 * predicted step: every op matched, all ratios 1; and what comes out when kernels are slower, when
 * some are missing, without annotations, without sizes, packed, and of the wrong rank. Simulates the
 * small job of tests/golden/data. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "ask/profile/profile_step.h"
#include "ask/profile/reconcile_job.h"
#include "kineto_writer.h"

static void
init_small (LsJobSpec *spec)
{
  static const char *const knobs[][2]
      = { { "model", "tiny" }, { "cluster", "pair" }, { "tp", "2" },  { "pp", "2" },
          { "dp", "2" },       { "sp", "1" },         { "zero", "1" } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_job_spec_init (spec);
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_spec_set (spec, knobs[i][0], knobs[i][1], diags));
}

static char *
simulated (const LsJobSpec *spec, uint32_t rank, const KinetoForm *form)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) job = ls_job_spec_run (spec, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsStepSide) side = ls_step_side_of_timeline (job->timeline, rank, &error);
  LS_CHECK_NO_ERROR (error);
  return kineto_of_side (side, form);
}

/* The file, for others to remove. */
static char *
written (const char *text, bool packed)
{
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("kineto-XXXXXX.json", &path, NULL);
  close (fd);
  if (packed) {
    gzFile out = gzopen (path, "wb");
    LS_CHECK_INT (gzwrite (out, text, (unsigned) strlen (text)), ==, strlen (text));
    gzclose (out);
  } else {
    LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  }
  return g_steal_pointer (&path);
}

static LsReconcileReport *
reconciled (const LsJobSpec *spec, const char *text, bool packed, const char *step, int64_t rank,
            GError **error)
{
  g_autofree char *path = written (text, packed);
  const LsReconcileSpec r = { .job = spec, .path = path, .step = step, .rank = rank };
  LsReconcileReport *run = ls_reconcile_report_new (&r, error);
  g_unlink (path);
  return run;
}

static LsTime
total (const LsStepTime *t)
{
  LsTime sum = t->idle_host + t->idle_device;
  for (int tier = 0; tier < LS_N_TIERS; tier++)
    sum += t->matched[tier] + t->unmatched[tier];
  return sum;
}

/* Everything matched; times are the same up to the nanoseconds of the format. */
static void
check_same (const LsReconciled *r)
{
  LS_CHECK_INT (total (&r->measured), ==, r->measured.step);
  LS_CHECK_INT (total (&r->predicted), ==, r->predicted.step);
  LS_CHECK (ABS (r->measured.step - r->predicted.step) <= 1000);
  for (int tier = 0; tier < LS_N_TIERS; tier++) {
    LS_CHECK_INT (r->measured.unmatched[tier], ==, 0);
    LS_CHECK_INT (r->predicted.unmatched[tier], ==, 0);
    LS_CHECK (ABS (r->measured.matched[tier] - r->predicted.matched[tier]) < LS_US);
  }
  LS_CHECK (ABS (r->measured.idle_host - r->predicted.idle_host) < LS_US);
  for (guint i = 0; i < r->classes->len; i++) {
    const LsReconcileRow *c = &g_array_index (r->classes, LsReconcileRow, i);
    LS_CHECK_INT (c->n_measured, ==, c->n_predicted);
    LS_CHECK_INT (c->n_measured, ==, c->n_matched);
    LS_CHECK_NEAR ((double) c->predicted / (double) c->measured, 1.0, 1e-3);
  }
  LS_CHECK (r->classes->len >= 6);
  LS_CHECK_INT (r->words->len, ==, 0);
}

static void
a_simulated_step_is_itself (void)
{
  LsJobSpec spec;
  init_small (&spec);
  for (uint32_t rank = 0; rank < 8; rank += 3)
    for (guint n_steps = 2; n_steps <= 3; n_steps++) {
      const KinetoForm form = { .n_steps = n_steps, .rank = rank, .world_size = 8 };
      g_autofree char *text = simulated (&spec, rank, &form);
      g_autoptr (GError) error = NULL;
      g_autoptr (LsReconcileReport) run = reconciled (&spec, text, n_steps == 2, NULL, -1, &error);
      LS_CHECK_NO_ERROR (error);
      if (!run)
        continue;
      LS_CHECK_INT (run->rank, ==, rank);
      LS_CHECK_INT (run->trace->notes->len, ==, 0);
      LS_CHECK_STR (run->step, n_steps == 2 ? "ProfilerStep#10" : "ProfilerStep#11");
      check_same (run->reconciled);
    }
  ls_job_spec_clear (&spec);
}

/* The first of two stages sends two micro-batches and receives two, one of each at the same time: three ops,
 * with a tensor-parallel rank's half of the activations of 1,024 tokens. Kernels have no size. */
static void
messages_between_stages_have_sizes_and_kernels_none (void)
{
  LsJobSpec spec;
  init_small (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (&spec, "micro-batch", "1", diags)
            && ls_job_spec_set (&spec, "global-batch", "4", diags));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) job = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsStepSide) side = job ? ls_step_side_of_timeline (job->timeline, 0, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  guint n_messages = 0;
  for (guint i = 0; side && i < side->ops->len; i++) {
    const LsStepOp *op = &g_array_index (side->ops, LsStepOp, i);
    LS_CHECK ((op->bytes > 0) == ls_op_class_is_communication ((LsOpClass) op->class));
    if (op->class != LS_CLASS_SEND_RECV)
      continue;
    LS_CHECK_INT (op->bytes, ==, 1024 * 1024 * 2 / 2);
    n_messages++;
  }
  LS_CHECK_INT (n_messages, ==, 3);
  ls_job_spec_clear (&spec);
}

/* NCCL's arguments are the plan's bytes; without them sizes are taken from what matched. */
static void
collectives_are_told_by_size (void)
{
  LsJobSpec spec;
  init_small (&spec);
  for (int without = 0; without < 2; without++) {
    const KinetoForm form = { .n_steps = 3, .world_size = 8, .no_args = without };
    g_autofree char *text = simulated (&spec, 0, &form);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsReconcileReport) run = reconciled (&spec, text, false, NULL, -1, &error);
    LS_CHECK_NO_ERROR (error);
    const GArray *rows = run->reconciled->collectives;
    LS_CHECK (rows->len >= 3);
    for (guint i = 0; i < rows->len; i++) {
      LS_CHECK (g_array_index (rows, LsReconcileRow, i).bytes > 0);
      LS_CHECK_INT (g_array_index (rows, LsReconcileRow, i).n_matched, ==,
                    g_array_index (rows, LsReconcileRow, i).n_predicted);
    }
  }
  ls_job_spec_clear (&spec);
}

static void
steps_are_found_by_period (void)
{
  LsJobSpec spec;
  init_small (&spec);
  const KinetoForm form = { .n_steps = 4, .no_annotations = true, .world_size = 8 };
  g_autofree char *text = simulated (&spec, 0, &form);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsReconcileReport) run = reconciled (&spec, text, false, NULL, -1, &error);
  LS_CHECK_NO_ERROR (error);
  if (run)
    LS_CHECK (g_str_has_prefix (run->step, "a period of "));
  if (run)
    check_same (run->reconciled);
  ls_job_spec_clear (&spec);
}

static const LsReconcileRow *
row_of (const LsReconciled *r, LsOpClass class)
{
  for (guint i = 0; i < r->classes->len; i++)
    if (g_array_index (r->classes, LsReconcileRow, i).class == class)
      return &g_array_index (r->classes, LsReconcileRow, i);
  return NULL;
}

static void
what_differs_is_said (void)
{
  LsJobSpec spec;
  init_small (&spec);
  const KinetoForm form = { .n_steps = 3, .stretch = 1.5, .drop = 4, .rank = 1, .world_size = 16 };
  g_autofree char *text = simulated (&spec, 0, &form);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsReconcileReport) run = reconciled (&spec, text, false, NULL, 0, &error);
  LS_CHECK_NO_ERROR (error);
  const LsReconciled *r = run->reconciled;
  const LsReconcileRow *gemm = row_of (r, LS_CLASS_GEMM), *elementwise = row_of (r, LS_CLASS_ELEMENTWISE);
  LS_CHECK_NEAR ((double) gemm->predicted / (double) gemm->measured, 1 / 1.5, 1e-3);
  LS_CHECK_INT (gemm->n_matched, ==, gemm->n_predicted);
  LS_CHECK_INT (elementwise->n_measured, <, elementwise->n_predicted);
  LS_CHECK_INT (elementwise->n_matched, ==, elementwise->n_measured);
  LS_CHECK_INT (total (&r->measured), ==, r->measured.step);
  bool has_gemm = false;
  for (guint i = 0; i < r->words->len; i++)
    has_gemm = has_gemm
        || g_str_has_prefix (g_ptr_array_index (r->words, i),
                             "gemm: those that match are predicted 0.67 times");
  LS_CHECK (has_gemm);
  LS_CHECK (run->trace->notes->len >= 2); /* another rank, another world; stretched kernels overlap */
  ls_job_spec_clear (&spec);
}

static void
steps_are_chosen (void)
{
  static const struct {
    const char *step, *says;
    LsErrorCode code;
  } wrong[] = {
    { "99", "no ProfilerStep#99", LS_ERROR_INPUT },
    { "1s:2s", "nothing ran", LS_ERROR_INPUT },
    { "soon", "--step: expected", LS_ERROR_USAGE },
    { "2ms:1ms", "--step: expected", LS_ERROR_USAGE },
  };
  LsJobSpec spec;
  init_small (&spec);
  const KinetoForm form = { .n_steps = 3, .world_size = 8 };
  g_autofree char *text = simulated (&spec, 0, &form);
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (LsReconcileReport) run = reconciled (&spec, text, false, wrong[i].step, -1, &error);
    LS_CHECK (!run && g_error_matches (error, LS_ERROR, wrong[i].code)
              && strstr (error->message, wrong[i].says));
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (LsReconcileReport) last = reconciled (&spec, text, false, "12", -1, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (last && last->trace->notes->len == 1); /* it ends with its last kernel */
  g_autoptr (LsReconcileReport) nobody = reconciled (&spec, text, false, NULL, 8, &error);
  LS_CHECK (!nobody && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  ls_job_spec_clear (&spec);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (a_simulated_step_is_itself),
                    LS_TEST (messages_between_stages_have_sizes_and_kernels_none),
                    LS_TEST (collectives_are_told_by_size), LS_TEST (steps_are_found_by_period),
                    LS_TEST (what_differs_is_said), LS_TEST (steps_are_chosen))
