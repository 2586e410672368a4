/* tests/support/dp_timeline.h — jobs of the tiny model (tests/golden/data) under some way to be
 * data parallel on a shipped cluster, their spans as text, and what can be counted in them. For
 * tests that link sweep/; dp_job.h is for rooms below. Needs LS_DATA_DIR, which tests have. */
#ifndef LS_TESTS_DP_TIMELINE_H
#define LS_TESTS_DP_TIMELINE_H

#include <string.h>

#include "data/jobs/job_files.h"
#include "job/job.h"
#include "lower/lower.h"
#include "ls_test.h"

typedef struct {
  LsJobSpec spec;
  LsModel model;
  LsHardware *hardware;
  LsJobResult *result; /* NULL: failed, which has been checked */
} DpRun;

/* What flags say of a job of the tiny model; TRUE if all of it can be read. */
static inline gboolean
dp_read (const char *flags, void (*edit) (LsModel *m), LsJobSpec *ret_spec, LsModel *ret_model,
         LsDiagList *diags)
{
  g_auto (GStrv) words = g_strsplit (flags, " ", -1);
  ls_job_spec_init (ret_spec);
  for (guint i = 0; words[i] && words[i + 1]; i += 2)
    LS_CHECK (ls_job_spec_set (ret_spec, words[i] + strlen ("--"), words[i + 1], diags));
  g_autofree char *file
      = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", "models", "tiny.json", NULL);
  LS_CHECK (ls_model_load (file, ret_model, NULL, diags));
  if (edit)
    edit (ret_model);
  return ls_diag_list_n (diags) == 0;
}

/* Its plan alone, for what no GPU of the cluster computes in; NULL: failed, which has been
 * checked. For ls_plan_free(). */
static inline LsPlan *
dp_plan (const char *flags, void (*edit) (LsModel *m))
{
  LsJobSpec spec;
  LsModel model = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsPlan *plan = NULL;
  if (LS_CHECK (dp_read (flags, edit, &spec, &model, diags)
                && ls_strategy_resolve (&spec.strategy, &model, 8, 8, diags)))
    plan = ls_lower (&model, &spec.strategy, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  ls_model_clear (&model);
  ls_job_spec_clear (&spec);
  return plan;
}

/* flags: "--zero 3 --gpus 8": each with a value. The cluster is the made-up node of 8 GPUs, whose numbers are
 * round: no fit moves a timeline. edit: changes the model; NULL: not at all. For dp_clear(). */
static inline DpRun
dp_run (const char *flags, void (*edit) (LsModel *m))
{
  DpRun run = { .result = NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  gboolean is_read = dp_read (flags, edit, &run.spec, &run.model, diags);
  g_autofree char *eight = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data",
                                             "topologies", "eight.json", NULL);
  run.hardware
      = ls_hardware_load_with (eight, &(LsMeasuredFiles) { run.spec.gpu_calibration, run.spec.nccl }, diags);
  const LsRunOptions options = ls_job_spec_options (&run.spec);
  if (LS_CHECK (is_read && ls_diag_list_n (diags) == 0 && run.hardware))
    run.result = ls_job_simulate (&run.model, run.hardware, 0, &run.spec.strategy, &options, &error);
  LS_CHECK_NO_ERROR (error);
  return run;
}

static inline void
dp_clear (DpRun *run)
{
  ls_job_result_free (run->result);
  ls_hardware_free (run->hardware);
  ls_model_clear (&run->model);
  ls_job_spec_clear (&run->spec);
}

/* What a step of such a job takes; 0: it did not run. */
static inline LsTime
dp_step (const char *flags)
{
  DpRun r = dp_run (flags, NULL);
  LsTime t = r.result ? r.result->timeline->window_end - r.result->timeline->window_start : 0;
  dp_clear (&r);
  return t;
}

/* Bytes of the last step that leave GPU 0 by NVLink. */
static inline double
dp_bytes_sent (const DpRun *run)
{
  const LsCluster *cluster = run->result->cluster;
  for (uint32_t t = 0; t < cluster->n_trunks; t++) {
    g_autofree char *name = ls_cluster_resource_name (cluster, t);
    if (g_str_equal (name, "node0/gpu0>nvswitch"))
      return ls_timeline_bytes (run->result->timeline, t);
  }
  g_assert_not_reached ();
}

static inline const LsOp *
dp_op (const DpRun *run, const LsSpan *s)
{
  return ls_span_op (run->result->timeline, 0, s);
}

static inline const char *
dp_name (const DpRun *run, const LsSpan *s)
{
  return ls_span_name (run->result->timeline, 0, s);
}

static inline gint
dp_by_start (gconstpointer a, gconstpointer b)
{
  const LsSpan *x = *(const LsSpan *const *) a, *y = *(const LsSpan *const *) b;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return (x > y) - (x < y);
}

/* Spans of rank 0 that start in the window, by their start; borrowed. */
static inline GPtrArray *
dp_spans (const DpRun *run)
{
  const LsTimeline *t = run->result->timeline;
  GPtrArray *spans = g_ptr_array_new ();
  for (uint32_t i = 0; i < t->ranks[0].n; i++) {
    LsSpan *s = &t->ranks[0].spans[i];
    if (s->start >= t->window_start && s->start < t->window_end)
      g_ptr_array_add (spans, s);
  }
  g_ptr_array_sort (spans, dp_by_start);
  return spans;
}

static inline double
dp_us (const DpRun *run, LsTime t)
{
  return (double) (t - run->result->timeline->window_start) / (double) LS_US;
}

/* Lines of spans of a stream that begin where the one before ends: stream, start in us of the window, and name with unit or
 * layer and end of each. A span of another stream begins a line, as does what is behind 90 letters. */
static inline char *
dp_text (const DpRun *run)
{
  GString *out = g_string_new (NULL);
  gsize begin = 0; /* of the line */
  LsTime end = -1;
  int stream = -1;
  g_autoptr (GPtrArray) spans = dp_spans (run);
  for (guint i = 0; i < spans->len; i++) {
    const LsSpan *s = spans->pdata[i];
    const LsOp *op = dp_op (run, s);
    char where[16] = "";
    if (op->unit != UINT16_MAX)
      g_snprintf (where, sizeof where, "/%u", op->unit);
    else if (op->layer != UINT16_MAX)
      g_snprintf (where, sizeof where, "(%u)", op->layer);
    if (op->stream != stream || s->start != end || out->len - begin >= 90) {
      if (i > 0)
        g_string_append_c (out, '\n');
      begin = out->len;
      g_string_append_printf (out, "%-8s %.1f", ls_stream_names[op->stream].name, dp_us (run, s->start));
    }
    g_string_append_printf (out, " %s%s %.1f", dp_name (run, s), where, dp_us (run, s->end));
    end = s->end;
    stream = op->stream;
  }
  g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}

/* Holds the text against section NAME of unit/job/FILE-timelines.txt. */
static inline void
dp_check_golden (const DpRun *run, const char *file, const char *name)
{
  g_autofree char *path = g_strconcat ("unit/job/", file, "-timelines.txt", NULL), *text = dp_text (run);
  ls_check_section (path, name, text);
}

/* Most ops of a stream that the host has issued and that have not ended. */
static inline guint
dp_most_pending (const DpRun *run, LsStream stream)
{
  g_autoptr (GPtrArray) spans = dp_spans (run);
  guint most = 0;
  for (guint i = 0; i < spans->len; i++) {
    const LsSpan *a = spans->pdata[i];
    guint n = 0;
    for (guint j = 0; j < spans->len && dp_op (run, a)->stream == stream; j++) {
      const LsSpan *b = spans->pdata[j];
      n += dp_op (run, b)->stream == stream && b->issued <= a->issued && b->end > a->issued;
    }
    most = MAX (most, n);
  }
  return most;
}

static inline double
dp_part_s (const DpRun *run, LsPart part)
{
  return run->result->report.breakdown_s[part];
}

/* Edits: embedding and head apart; and so wide that compute takes longer than what runs beside. */
static inline uint64_t
dp_n_params (const DpRun *r)
{
  return r->result->plan->programs[0].n_params;
}

static inline void
dp_untied (LsModel *m)
{
  m->tied_embeddings = false;
}

static inline void
dp_wide (LsModel *m)
{
  m->hidden = 4096;
  m->n_heads = m->n_kv_heads = 32;
  m->head_dim = 128;
  m->ffn = 16384;
  m->seq = 2048;
  m->tied_embeddings = false;
}

#endif
