/* Counters of a rank in a Chrome trace. */
#include <math.h>

#include "analysis/report.h"
#include "exec/memory/memory.h"
#include "show/run/timeline_boxes.h"
#include "show/run/trace_chrome.h"

#define N_COLUMNS 1000

typedef struct {
  LsTime at;
  double value; /* of changes: by how much */
} Point;

static LsTime
window_of (const Trace *w)
{
  return MAX (w->t->window_end - w->t->window_start, 1);
}

static guint
column_of (const Trace *w, LsTime at)
{
  return (guint) ((double) at / (double) window_of (w) * N_COLUMNS);
}

static void
put_value (Trace *w, uint32_t rank, const char *name, const char *key, LsTime at, double value)
{
  trace_begin_event (w, 'C', name, rank);
  trace_put_us (w, "ts", at);
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (w->out, ",\"args\":{\"%s\":%s}}", key, g_ascii_formatd (text, sizeof text, "%.6g", value));
}

/* Of each column the highest, and the last, which holds until the next. */
static void
put_levels (Trace *w, uint32_t rank, const char *name, const char *key, const GArray *levels)
{
  double before = NAN;
  for (guint i = 0, end; i < levels->len; i = end) {
    const Point *all = (const Point *) levels->data, *most = &all[i];
    for (end = i; end < levels->len && column_of (w, all[end].at) == column_of (w, all[i].at); end++)
      if (all[end].value > most->value)
        most = &all[end];
    const Point *last = &all[end - 1];
    if (most->value != before)
      put_value (w, rank, name, key, most->at, most->value);
    if (last->value != most->value)
      put_value (w, rank, name, key, last->at, last->value);
    before = last->value;
  }
}

/* --- in flight --------------------------------------------------------------------------------------- */

static int
compare_points (const void *a, const void *b)
{
  const Point *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* Changes become levels: one for each instant. */
static void
add_up (GArray *points)
{
  g_array_sort (points, compare_points);
  Point *all = (Point *) points->data;
  double level = 0;
  guint n = 0;
  for (guint i = 0; i < points->len; i++) {
    level += all[i].value;
    if (i + 1 == points->len || all[i + 1].at != all[i].at)
      all[n++] = (Point) { all[i].at, level };
  }
  g_array_set_size (points, n);
}

static void
add_change (GArray *points, LsTime from, LsTime to, double value)
{
  const Point both[] = { { from, value }, { to, -value } };
  g_array_append_vals (points, both, 2);
}

/* Between launch and end. */
static void
put_in_flight (Trace *w, uint32_t rank)
{
  g_autoptr (GArray) ops = g_array_new (FALSE, FALSE, sizeof (Point)),
                     bytes = g_array_new (FALSE, FALSE, sizeof (Point));
  const LsRankSpans *r = ls_timeline_spans (w->t, rank);
  for (uint32_t i = 0; i < r->n; i++) {
    const LsOp *op = ls_span_op (w->t, rank, &r->spans[i]);
    LsTime from, to;
    if (!ls_op_is_communication (op->kind) || !trace_cut (w->t, &r->spans[i], &from, &to))
      continue;
    add_change (ops, from, to, 1);
    add_change (bytes, from, to, trace_sent_bytes (w->t, rank, op));
  }
  add_up (ops);
  add_up (bytes);
  put_levels (w, rank, "communication in flight", "ops", ops);
  put_levels (w, rank, "bytes in flight", "bytes", bytes);
}

/* --- rates ------------------------------------------------------------------------------------------- */

/* An amount that is spread over an interval evenly, by columns. */
static void
spread (const Trace *w, double columns[N_COLUMNS], LsTime from, LsTime to, double amount)
{
  double width = (double) window_of (w) / N_COLUMNS, left = (double) from / width,
         right = (double) to / width;
  for (guint c = (guint) left; c < N_COLUMNS && c < right; c++)
    columns[c] += amount * (fmin (right, c + 1) - fmax (left, c)) / (right - left);
}

/* Amounts of columns, each over its time; `unit` of them a second is 1. */
static void
put_rates (Trace *w, uint32_t rank, const char *name, const char *key, const double columns[N_COLUMNS],
           double unit)
{
  g_autoptr (GArray) levels = g_array_new (FALSE, FALSE, sizeof (Point));
  double seconds = ls_time_to_s (window_of (w)) / N_COLUMNS;
  for (guint c = 0; c < N_COLUMNS; c++) {
    const Point point = { (LsTime) ((double) window_of (w) * c / N_COLUMNS), columns[c] / seconds / unit };
    g_array_append_val (levels, point);
  }
  put_levels (w, rank, name, key, levels);
}

/* The share of an op's amount that lies in the window goes by time. */
static void
put_op_rates (Trace *w, uint32_t rank)
{
  g_autofree double *flops = g_new0 (double, N_COLUMNS), *sent = g_new0 (double, N_COLUMNS);
  const LsRankSpans *r = ls_timeline_spans (w->t, rank);
  bool has_flops = false;
  for (uint32_t i = 0; i < r->n; i++) {
    LsSpan s = r->spans[i];
    const LsOp *op = ls_span_op (w->t, rank, &s);
    LsTime from, to;
    if (s.end == LS_TIME_NEVER || (ls_op_is_communication (op->kind) && s.matched == LS_TIME_NEVER))
      continue;
    s.start = ls_op_is_communication (op->kind) ? MAX (s.start, s.matched) : s.start;
    if (!trace_cut (w->t, &s, &from, &to))
      continue;
    double share = (double) (to - from) / (double) (s.end - s.start);
    if (ls_op_is_communication (op->kind))
      spread (w, sent, from, to, share * trace_sent_bytes (w->t, rank, op));
    if (!ls_op_has (op->kind, LS_HAS_KERNEL) || op->kernel == UINT32_MAX)
      continue;
    spread (w, flops, from, to, share * MAX (op->repeat, 1) * w->t->plan->kernels[op->kernel].flops);
    has_flops = true;
  }
  if (has_flops)
    put_rates (w, rank, "TFLOP/s", "tflop_per_s", flops, 1e12);
  put_rates (w, rank, "sent to others, GB/s", "gb_per_s", sent, 1e9);
}

/* --- links ------------------------------------------------------------------------------------------- */

/* Busy seconds of the link that limits each call, by columns, of links that are alike. */
typedef struct {
  const Trace *w;
  GPtrArray *names; /* char * */
  GPtrArray *busy;  /* double[N_COLUMNS] */
} Links;

static double *
columns_of_link (Links *l, uint32_t link)
{
  g_autofree char *name = ls_cluster_resource_name (l->w->asked->cluster, link),
                  *alike = ls_link_pattern (name);
  guint i;
  if (g_ptr_array_find_with_equal_func (l->names, alike, g_str_equal, &i))
    return l->busy->pdata[i];
  g_ptr_array_add (l->names, g_steal_pointer (&alike));
  g_ptr_array_add (l->busy, g_new0 (double, N_COLUMNS));
  return l->busy->pdata[l->busy->len - 1];
}

static void
add_limit (Links *l, const LsCallLimit *limit, LsTime from, LsTime to, double share)
{
  if (limit->link != UINT32_MAX)
    spread (l->w, columns_of_link (l, limit->link), from, to, share * limit->busy_s);
}

/* A collective, or what the rank sends of a group of messages. */
static void
add_call (Links *l, uint32_t rank, const LsOp *op, LsTime from, LsTime to, double share)
{
  const Trace *w = l->w;
  if (ls_op_has (op->kind, LS_HAS_CALL) && op->recorded == LS_TIME_NEVER) {
    const LsCallLimit limit = ls_limit_of_call (w->calls, rank, op);
    add_limit (l, &limit, from, to, share);
  }
  for (uint16_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    uint32_t peer = ls_plan_peer (w->t->plan, rank, t->slot == LS_SLOT_NEXT);
    if (!t->is_send || peer == UINT32_MAX)
      continue;
    const LsCallLimit limit = ls_limit_of_transfer (w->calls, rank, peer, t);
    add_limit (l, &limit, from, to, share);
  }
}

static void
put_links (Trace *w, uint32_t rank)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free),
                        busy = g_ptr_array_new_with_free_func (g_free);
  Links links = { w, names, busy };
  const LsRankSpans *r = ls_timeline_spans (w->t, rank);
  for (uint32_t i = 0; w->asked->cluster && w->asked->nccl && i < r->n; i++) {
    LsSpan s = r->spans[i];
    const LsOp *op = ls_span_op (w->t, rank, &s);
    LsTime from, to;
    if (!ls_op_is_communication (op->kind) || s.end == LS_TIME_NEVER || s.matched == LS_TIME_NEVER)
      continue;
    s.start = MAX (s.start, s.matched);
    if (trace_cut (w->t, &s, &from, &to))
      add_call (&links, rank, op, from, to, (double) (to - from) / (double) (s.end - s.start));
  }
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *name = g_strdup_printf ("busy by its calls, %%: %s", (const char *) names->pdata[i]);
    put_rates (w, rank, name, "percent", busy->pdata[i], 0.01);
  }
}

/* --- memory ------------------------------------------------------------------------------------------ */

static void
put_sample (Trace *w, uint32_t rank, const LsMemorySample *s)
{
  trace_begin_event (w, 'C', "memory", rank);
  trace_put_us (w, "ts", s->at);
  fputs (",\"args\":{", w->out);
  for (int c = 0, n = 0; c < LS_N_MEM; c++)
    if (s->alive[c] > 0)
      fprintf (w->out, "%s\"%s\":%" G_GUINT64_FORMAT, n++ > 0 ? "," : "",
               ls_mem_category_name ((LsMemCategory) c), s->alive[c]);
  fputs ("}}", w->out);
}

static void
put_memory (Trace *w, uint32_t rank)
{
  g_autoptr (GArray) samples = w->asked->memory ? w->asked->memory (w->asked->user, rank) : NULL;
  if (!samples)
    return;
  g_autoptr (GArray) thin = ls_memory_samples_thin (samples, window_of (w), N_COLUMNS);
  for (guint i = 0; i < thin->len; i++)
    put_sample (w, rank, &g_array_index (thin, LsMemorySample, i));
}

void
trace_put_counters (Trace *w, uint32_t rank)
{
  put_in_flight (w, rank);
  put_op_rates (w, rank);
  put_links (w, rank);
  put_memory (w, rank);
}
