#include "analysis/seen_software.h"

#include <string.h>

#include "base/order.h"

#define MIN_LAUNCHES 6 /* of a median, see above */

static const LsStepOp *
op_at (const LsStepSide *side, guint i)
{
  return &g_array_index (side->ops, LsStepOp, i);
}

/* ---- what a launch costs ---- */

/* A launch, and whether the GPU had nothing left to do then. */
typedef struct {
  LsTime at;
  bool finds_idle, is_kernel;
  bool is_behind_unknown; /* of the kernel before it no launch is in the trace */
} Launch;

static bool
is_kernel (const LsStepOp *op)
{
  return op->class != LS_CLASS_COPY && !ls_op_class_is_communication ((LsOpClass) op->class) && !op->in_graph;
}

static int
launches_by_time (gconstpointer a, gconstpointer b)
{
  const Launch *x = a, *y = b;
  return x->at != y->at ? (x->at < y->at ? -1 : 1) : 0;
}

static GArray *
launches_of (const LsStepSide *side)
{
  GArray *launches = g_array_new (FALSE, FALSE, sizeof (Launch));
  LsTime busy_until = 0;
  bool is_behind_unknown = false;
  for (guint i = 0; i < side->ops->len; i++) {
    const LsStepOp *op = op_at (side, i);
    const Launch l = { .at = op->launch,
                       .finds_idle = i > 0 && busy_until <= op->launch,
                       .is_kernel = is_kernel (op),
                       .is_behind_unknown = is_behind_unknown };
    if (op->launch != LS_TIME_NEVER)
      g_array_append_val (launches, l);
    is_behind_unknown = op->launch == LS_TIME_NEVER;
    busy_until = MAX (busy_until, op->end);
  }
  g_array_sort (launches, launches_by_time);
  return launches;
}

static void
find_host_launch (const LsStepSide *side, LsSeenSoftware *seen)
{
  g_autoptr (GArray) launches = launches_of (side);
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (LsTime));
  for (guint i = 1; i < launches->len; i++) {
    const Launch *before = &g_array_index (launches, Launch, i - 1),
                 *l = &g_array_index (launches, Launch, i);
    LsTime time = l->at - before->at;
    if (l->finds_idle && l->is_kernel && before->is_kernel && !l->is_behind_unknown && time > 0)
      g_array_append_val (times, time);
  }
  g_array_sort (times, ls_compare_int64);
  seen->n_launches = times->len;
  seen->host_launch = times->len < MIN_LAUNCHES ? -1 : g_array_index (times, LsTime, times->len / 2);
}

/* ---- graphs ---- */

typedef struct {
  LsTime launch;
  guint n_forward, n_backward; /* attentions */
  bool is_behind_attention;    /* its last op: several kernels of one */
} Graph;

static Graph *
graph_of (GArray *graphs, LsTime launch)
{
  for (guint i = 0; i < graphs->len; i++)
    if (g_array_index (graphs, Graph, i).launch == launch)
      return &g_array_index (graphs, Graph, i);
  const Graph blank = { .launch = launch };
  g_array_append_val (graphs, blank);
  return &g_array_index (graphs, Graph, graphs->len - 1);
}

static void
add_to_graph (Graph *g, const LsStepOp *op)
{
  bool is_forward = op->class == LS_CLASS_ATTENTION_FWD, is_backward = op->class == LS_CLASS_ATTENTION_BWD;
  g->n_forward += is_forward && !g->is_behind_attention;
  g->n_backward += is_backward && !g->is_behind_attention;
  g->is_behind_attention = is_forward || is_backward;
}

static void
find_graphs (const LsStepSide *side, LsSeenSoftware *seen)
{
  g_autoptr (GArray) graphs = g_array_new (FALSE, FALSE, sizeof (Graph));
  bool is_step = false, is_layers = true;
  for (guint i = 0; i < side->ops->len; i++)
    if (op_at (side, i)->in_graph)
      add_to_graph (graph_of (graphs, op_at (side, i)->launch), op_at (side, i));
  for (guint i = 0; i < graphs->len; i++) {
    const Graph *g = &g_array_index (graphs, Graph, i);
    is_step |= g->n_forward > 0 && g->n_backward > 0;
    is_layers &= g->n_forward + g->n_backward == 1;
  }
  seen->n_graphs = graphs->len;
  seen->cuda_graphs = is_step ? LS_GRAPHS_STEP : is_layers && graphs->len > 1 ? LS_GRAPHS_LAYER : -1;
}

/* ---- attention ---- */

static const struct {
  const char *part; /* of a name in small letters */
  LsAttentionKernel kernel;
} attentions[] = {
  { "flashattnfwd", LS_ATTENTION_KERNEL_FA3 },  { "flashattnbwd", LS_ATTENTION_KERNEL_FA3 },
  { "flash_fwd", LS_ATTENTION_KERNEL_FA2 },     { "flash_bwd", LS_ATTENTION_KERNEL_FA2 },
  { "fmha_fwd_loop", LS_ATTENTION_KERNEL_FA1 }, { "fmha_bwd_dq_dk_dv_loop", LS_ATTENTION_KERNEL_FA1 },
  { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
};

static void
find_attention (const LsStepSide *side, LsSeenSoftware *seen)
{
  for (guint i = 0; i < side->ops->len && !seen->attention_name; i++) {
    const LsStepOp *op = op_at (side, i);
    if (op->class == LS_CLASS_ATTENTION_FWD || op->class == LS_CLASS_ATTENTION_BWD)
      seen->attention_name = op->name;
  }
  g_autofree char *small = g_ascii_strdown (seen->attention_name ? seen->attention_name : "", -1);
  for (guint i = 0; i < G_N_ELEMENTS (attentions) && seen->attention < 0; i++)
    if (strstr (small, attentions[i].part))
      seen->attention = attentions[i].kernel;
}

LsSeenSoftware
ls_software_seen (const LsStepSide *side)
{
  LsSeenSoftware seen = { .host_launch = -1, .cuda_graphs = -1, .attention = -1 };
  find_host_launch (side, &seen);
  find_graphs (side, &seen);
  find_attention (side, &seen);
  return seen;
}
