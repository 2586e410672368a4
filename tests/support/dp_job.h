/* tests/support/dp_job.h — a small job with data parallelism, and its last step as text:
 * a line for each communication, and for each run of kernels of one layer and pass that
 * nothing interrupts; microseconds from the start of the step. Hosts issue ops at no cost. */
#ifndef LS_TESTS_DP_JOB_H
#define LS_TESTS_DP_JOB_H

#include "ls_test.h"

#include "exec/run.h"
#include "lower/lower.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

static const LsNccl dp_nccl = {
  LS_TEST_NCCL_OF_JOB, .base_all_gather = 10 * LS_US, .base_reduce_scatter = 10 * LS_US,
  .hop_intra = LS_US,  .hop_inter = 5 * LS_US,
};

/* 12 h^2 + 2 h parameters a layer with h = 1024, h each of embedding and head times 1024, and
 * h of the last norm. */
static inline LsModel
dp_model (uint32_t n_layers, uint32_t seq)
{
  return (LsModel) {
    .name = (char *) "dp",
    .n_layers = n_layers,
    .hidden = 1024,
    .n_heads = 16,
    .n_kv_heads = 16,
    .head_dim = 64,
    .ffn = 4096,
    .vocab = 1024,
    .seq = seq,
    .mlp = LS_MLP_GELU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
  };
}

/* Nodes as tiny_dgx (), with the matrix units of an A100. */
static inline LsClusterSpec
dp_dgx (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.gpu.peak_flops[LS_DTYPE_BF16] = 312e12;
  s.gpu.vector_flops = 19.5e12;
  return s;
}

typedef struct {
  LsCluster *cluster;
  LsPlan *plan;
  LsTimeline *t; /* NULL, after a failed check, if the job is not run */
} DpRun;

/* Resolves *s; the caller clears it after the run. */
static inline DpRun
dp_run (const LsModel *m, LsStrategy *s, const LsClusterSpec *spec)
{
  DpRun r = { .cluster = ls_cluster_build (spec, NULL) };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsCalibration roofline;
  LsRunOptions options;
  ls_calibration_init_roofline (&roofline);
  ls_run_options_init (&options);
  memset (&options.host, 0, sizeof options.host);
  if (!ls_strategy_resolve (s, m, r.cluster->n_gpus, spec->gpus_per_node, diags)) {
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (false, __FILE__, __LINE__, "unexpectedly refused: %s", text);
  } else
    r.plan = ls_lower (m, s, NULL, &error);
  if (r.plan)
    r.t = ls_run (r.plan, r.cluster, &roofline, &dp_nccl, &options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  ls_calibration_clear (&roofline);
  return r;
}

static inline void
dp_run_clear (DpRun *r)
{
  ls_timeline_free (r->t);
  ls_plan_free (r->plan);
  ls_cluster_free (r->cluster);
}

/* --- spans of a rank ------------------------------------------------------------------ */

typedef struct {
  const LsOp *op;
  LsTime start, end; /* from the start of the step */
} DpSpan;

static inline int
dp_compare_spans (gconstpointer a, gconstpointer b)
{
  const DpSpan *x = a, *y = b;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  if (x->op->stream != y->op->stream)
    return x->op->stream < y->op->stream ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* Kernels and communication that start within the last step, by start. */
static inline GArray *
dp_spans (const LsTimeline *t, uint32_t rank)
{
  GArray *spans = g_array_new (FALSE, FALSE, sizeof (DpSpan));
  const LsRankSpans *all = &t->ranks[ls_timeline_representative (t, rank)];
  for (uint32_t i = 0; i < all->n; i++) {
    const LsSpan *s = &all->spans[i];
    DpSpan span = { ls_span_op (t, rank, s), s->start - t->window_start, s->end - t->window_start };
    if (s->start >= t->window_start && s->end <= t->window_end && span.end > span.start)
      g_array_append_val (spans, span);
  }
  g_array_sort (spans, dp_compare_spans);
  return spans;
}

/* Those of a name; n-th, or an empty one. */
static inline DpSpan
dp_nth (const GArray *spans, const char *name, guint n)
{
  for (guint i = 0; i < spans->len; i++) {
    const DpSpan *s = &g_array_index (spans, DpSpan, i);
    if (g_strcmp0 (s->op->name, name) == 0 && n-- == 0)
      return *s;
  }
  return (DpSpan) { 0 };
}

static inline guint
dp_count (const GArray *spans, const char *name)
{
  guint n = 0;
  while (dp_nth (spans, name, n).op)
    n++;
  return n;
}

/* Without kernels between two instants. */
static inline LsTime
dp_idle (const GArray *spans, LsTime from, LsTime to)
{
  LsTime idle = to - from;
  for (guint i = 0; i < spans->len; i++) {
    const DpSpan *s = &g_array_index (spans, DpSpan, i);
    LsTime start = MAX (s->start, from), end = MIN (s->end, to);
    if (s->op->kind == LS_OP_KERNEL && end > start)
      idle -= end - start;
  }
  return idle;
}

/* --- text ----------------------------------------------------------------------------------- */

static inline bool
dp_is_run (const DpSpan *a, const DpSpan *b)
{
  return a->op->kind == LS_OP_KERNEL && b->op->kind == LS_OP_KERNEL && a->op->layer == b->op->layer
      && a->end == b->start
      && (a->op->tag == LS_TAG_F || a->op->tag == LS_TAG_OPTIMIZER || a->op->tag == LS_TAG_RECOMPUTE
              ? b->op->tag == a->op->tag
              : b->op->tag == LS_TAG_I || b->op->tag == LS_TAG_W || b->op->tag == LS_TAG_B);
}

static inline void
dp_line (GString *text, const DpSpan *s, LsTime end)
{
  static const char *const passes[LS_N_TAGS] = {
    [LS_TAG_F] = "forward",  [LS_TAG_I] = "backward",      [LS_TAG_W] = "backward",
    [LS_TAG_B] = "backward", [LS_TAG_RECOMPUTE] = "again", [LS_TAG_OPTIMIZER] = "optimizer",
    [LS_TAG_SYNC] = "sync",
  };
  bool is_kernel = s->op->kind == LS_OP_KERNEL;
  g_autofree char *where = !is_kernel && s->op->unit != UINT16_MAX ? g_strdup_printf (" unit %u", s->op->unit)
      : s->op->layer != UINT16_MAX ? g_strdup_printf (" layer %u", s->op->layer)
                                   : g_strdup ("");
  g_autofree char *what = g_strconcat (is_kernel ? passes[s->op->tag] : s->op->name, where, NULL);
  g_string_append_printf (text, "%-8s %-30s %10.2f %10.2f\n", ls_stream_names[s->op->stream].name, what,
                          (double) s->start / LS_US, (double) end / LS_US);
}

/* Newly allocated. */
static inline char *
dp_timeline_text (const GArray *spans)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < spans->len; i++) {
    const DpSpan *first = &g_array_index (spans, DpSpan, i), *last = first;
    if (first->op->kind == LS_OP_KERNEL) {
      const DpSpan *before = NULL; /* the kernel before this one */
      for (guint k = i; k-- > 0 && !before;)
        if (g_array_index (spans, DpSpan, k).op->kind == LS_OP_KERNEL)
          before = &g_array_index (spans, DpSpan, k);
      if (before && dp_is_run (before, first))
        continue;
      for (guint k = i + 1; k < spans->len; k++)
        if (g_array_index (spans, DpSpan, k).op->kind == LS_OP_KERNEL) {
          if (!dp_is_run (last, &g_array_index (spans, DpSpan, k)))
            break;
          last = &g_array_index (spans, DpSpan, k);
        }
    }
    dp_line (text, first, last->end);
  }
  return g_string_free (text, FALSE);
}

/* Against section NAME of unit/exec/FILE-timelines.txt. */
static inline void
dp_check_timeline (const GArray *spans, const char *file, const char *name)
{
  g_autofree char *path = g_strconcat ("unit/exec/", file, "-timelines.txt", NULL),
                  *text = dp_timeline_text (spans);
  ls_check_section (path, name, text);
}

#endif
