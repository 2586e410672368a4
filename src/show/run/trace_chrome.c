#include "show/run/trace_chrome.h"

#include <inttypes.h>
#include <math.h>

#include "analysis/report.h"
#include "base/order.h"
#include "data/text/write_file.h"
#include "exec/memory/memory.h"
#include "network/coll.h"
#include "show/run/timeline_boxes.h"

/* The host has a thread after the streams, and passes one before them. */
#define TID_PASSES (LS_N_STREAMS + 1)

typedef struct {
  FILE *out;
  const LsChromeTrace *asked;
  const LsTimeline *t;
  LsCallLimits *calls;
  LsTime *until; /* per rank: ops that begin before it are there, from the start of the window; 0: none */
  bool *has_passes;
  bool has_events;
} Trace;

static void
trace_put_string (Trace *w, const char *text)
{
  fputc ('"', w->out);
  for (const char *c = text; *c; c++)
    if (*c == '"' || *c == '\\')
      fprintf (w->out, "\\%c", *c);
    else if ((unsigned char) *c < 0x20)
      fprintf (w->out, "\\u%04x", (unsigned) *c);
    else
      fputc (*c, w->out);
  fputc ('"', w->out);
}

static void
trace_begin_event (Trace *w, char phase, const char *name, uint32_t rank)
{
  fputs (w->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", w->out);
  fprintf (w->out, "%c\",\"pid\":%u,\"name\":", phase, rank);
  trace_put_string (w, name);
  w->has_events = true;
}

/* What of a span lies in the window, as offsets from its start; false: nothing. */
static bool
trace_cut (const LsTimeline *t, const LsSpan *s, LsTime *ret_from, LsTime *ret_to)
{
  LsTime end = MIN (s->end, t->window_end), start = MAX (s->start, t->window_start);
  if (start >= end)
    return false;
  *ret_from = start - t->window_start;
  *ret_to = end - t->window_start;
  return true;
}

/* "forward 3", with the chunk where a rank has several; newly allocated. */
static char *
pass_name (const Trace *w, const LsTimelineBox *b)
{
  const char *kind = ls_box_style (b->kind)->name;
  if (!ls_box_has_micro_batch (b))
    return g_strdup (kind);
  return w->t->plan->n_chunks > 1 ? g_strdup_printf ("%s %u, chunk %u", kind, b->mb, b->chunk)
                                  : g_strdup_printf ("%s %u", kind, b->mb);
}

/* Bytes that a member of a collective sends to others, or that a transfer sends. */
static double
trace_sent_bytes (const LsTimeline *t, uint32_t rank, const LsOp *op)
{
  double bytes = 0;
  for (uint16_t i = 0; i < op->n_transfers; i++)
    bytes += op->transfers[i].is_send ? (double) op->transfers[i].bytes : 0;
  if (!ls_op_has (op->kind, LS_HAS_CALL))
    return bytes;
  uint32_t comm = ls_plan_comm_of (t->plan, rank, op->slot);
  return (double) op->bytes
      * ls_coll_wire_factor ((LsCollKind) op->coll,
                             comm == UINT32_MAX ? 1 : ls_plan_communicator (t->plan, comm).n_ranks);
}

/* Whether a span is drawn as a slice, and where. */
static bool
is_slice (const LsTimeline *t, uint32_t rank, const LsSpan *s, LsTime *ret_from, LsTime *ret_to)
{
  return !ls_op_has (ls_span_op (t, rank, s)->kind, LS_HAS_EVENT) && trace_cut (t, s, ret_from, ret_to);
}

#include "show/trace_chrome_text.h"

/* Those of a rank; and each micro-batch from the first of its passes to the last. */
static void
write_passes (Trace *w, uint32_t rank, const GArray *boxes)
{
  g_autoptr (GHashTable) last = g_hash_table_new (NULL, NULL); /* micro-batch -> index of its last box */
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    write_pass (w, rank, b, w->out);
    if (ls_box_has_micro_batch (b))
      g_hash_table_insert (last, GUINT_TO_POINTER (b->mb), GUINT_TO_POINTER (i));
  }
  g_autoptr (GHashTable) open = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    gpointer mb = GUINT_TO_POINTER (b->mb);
    if (!ls_box_has_micro_batch (b))
      continue;
    if (g_hash_table_add (open, mb))
      write_end_of_micro_batch (w, rank, 'b', b->mb, b->from, w->out);
    if (GPOINTER_TO_UINT (g_hash_table_lookup (last, mb)) == i)
      write_end_of_micro_batch (w, rank, 'e', b->mb, b->to, w->out);
  }
}

/* From the launch of the send to the moment when data move at the receiver. */
static void
write_arrows (Trace *w)
{
  const LsTimeline *t = w->t;
  g_autoptr (GArray) pairs = ls_p2p_pairs (t);
  for (guint i = 0; i < pairs->len; i++) {
    const LsP2pPair *pair = &g_array_index (pairs, LsP2pPair, i);
    const LsSpan *send = &ls_timeline_spans (t, pair->from)->spans[pair->from_span];
    const LsSpan *receive = &ls_timeline_spans (t, pair->to)->spans[pair->to_span];
    LsTime send_from, send_to, receive_from, receive_to;
    if (receive->matched > t->window_end || !trace_cut (t, send, &send_from, &send_to)
        || !trace_cut (t, receive, &receive_from, &receive_to) || send_from >= w->until[pair->from]
        || receive_from >= w->until[pair->to])
      continue;
    LsTime arrival = MAX (receive->matched - t->window_start, MAX (receive_from, send_from));
    write_arrow_end (w, 's', pair->from, send, send_from, i, w->out);
    write_arrow_end (w, 'f', pair->to, receive, arrival, i, w->out);
  }
}

/* --- how much of it ---------------------------------------------------------------------------------- */

/* Until when ops of a rank begin of which there are *left; how many are not there is added. */
static LsTime
cut_ops (const LsTimeline *t, uint32_t rank, guint64 *left, guint64 *left_out)
{
  const LsRankSpans *r = ls_timeline_spans (t, rank);
  g_autoptr (GArray) starts = g_array_new (FALSE, FALSE, sizeof (LsTime));
  LsTime from, to, until = G_MAXINT64;
  for (uint32_t i = 0; i < r->n; i++)
    if (is_slice (t, rank, &r->spans[i], &from, &to))
      g_array_append_val (starts, from);
  g_array_sort (starts, ls_compare_int64);
  guint n = starts->len;
  if (n > *left) {
    until = g_array_index (starts, LsTime, *left);
    for (n = (guint) *left; n > 0 && g_array_index (starts, LsTime, n - 1) >= until;)
      n--;
  }
  *left_out += starts->len - n;
  *left = n < starts->len ? 0 : *left - n;
  return until;
}

/* Passes first: of all ranks they are few. */
static guint64
cut_trace (const LsTimeline *t, const LsTraceSize *size, const GArray *rows, bool *has_passes, LsTime *until)
{
  guint64 left = size->max_ops > 0 ? size->max_ops : G_MAXUINT64, left_out = 0;
  for (guint row = 0; row < rows->len; row++) {
    uint32_t rank = g_array_index (rows, uint32_t, row);
    g_autoptr (GArray) boxes = ls_timeline_boxes (t, rank, LS_TIME_NEVER);
    has_passes[rank] = boxes->len <= left;
    left -= has_passes[rank] ? boxes->len : 0;
    left_out += has_passes[rank] ? 0 : boxes->len;
  }
  for (guint row = 0; row < rows->len; row++) {
    uint32_t rank = g_array_index (rows, uint32_t, row);
    until[rank] = cut_ops (t, rank, &left, &left_out);
  }
  return left_out;
}

static GArray *
rows_of (const LsTimeline *t, const LsTraceSize *size)
{
  return ls_timeline_rows (t, size->max_ranks > 0 ? size->max_ranks : G_MAXUINT);
}

guint64
ls_trace_chrome_left_out (const LsTimeline *t, const LsTraceSize *size)
{
  g_autoptr (GArray) rows = rows_of (t, size);
  g_autofree bool *has_passes = g_new0 (bool, t->n_ranks);
  g_autofree LsTime *until = g_new0 (LsTime, t->n_ranks);
  return cut_trace (t, size, rows, has_passes, until);
}

/* ---- counters of a rank in a Chrome trace ---- */

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
      write_value (w, rank, name, key, most->at, most->value, w->out);
    if (last->value != most->value)
      write_value (w, rank, name, key, last->at, last->value, w->out);
    before = last->value;
  }
}

/* --- in flight --------------------------------------------------------------------------------------- */

static const LsSortKey by_instant[] = { { LS_RISING (Point, at) }, { 0 } };

/* Changes become levels: one for each instant. */
static void
add_up (GArray *points)
{
  ls_sort_by (points, by_instant);
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

/* --- of a rank --------------------------------------------------------------------------------------- */

/* In flight is what lies between launch and end. Of what is sent and computed the share that lies in the
 * window goes by time. */
static void
put_ops (Trace *w, uint32_t rank)
{
  g_autoptr (GArray) ops = g_array_new (FALSE, FALSE, sizeof (Point)),
                     bytes = g_array_new (FALSE, FALSE, sizeof (Point));
  g_autofree double *flops = g_new0 (double, N_COLUMNS), *sent = g_new0 (double, N_COLUMNS);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free),
                        busy = g_ptr_array_new_with_free_func (g_free);
  Links links = { w, names, busy };
  const LsRankSpans *r = ls_timeline_spans (w->t, rank);
  bool has_flops = false, has_links = w->asked->cluster && w->asked->nccl;
  for (uint32_t i = 0; i < r->n; i++) {
    LsSpan s = r->spans[i];
    const LsOp *op = ls_span_op (w->t, rank, &s);
    bool moves = ls_op_is_communication (op->kind);
    double amount = moves ? trace_sent_bytes (w->t, rank, op) : 0;
    LsTime from, to;
    if (moves && trace_cut (w->t, &s, &from, &to)) {
      add_change (ops, from, to, 1);
      add_change (bytes, from, to, amount);
    }
    if (s.end == LS_TIME_NEVER || (moves && s.matched == LS_TIME_NEVER))
      continue;
    s.start = moves ? MAX (s.start, s.matched) : s.start;
    if (!trace_cut (w->t, &s, &from, &to))
      continue;
    double share = (double) (to - from) / (double) (s.end - s.start);
    if (moves)
      spread (w, sent, from, to, share * amount);
    if (moves && has_links)
      add_call (&links, rank, op, from, to, share);
    if (!ls_op_has (op->kind, LS_HAS_KERNEL) || op->kernel == UINT32_MAX)
      continue;
    spread (w, flops, from, to, share * MAX (op->repeat, 1) * w->t->plan->kernels[op->kernel].flops);
    has_flops = true;
  }
  add_up (ops);
  add_up (bytes);
  put_levels (w, rank, "communication in flight", "ops", ops);
  put_levels (w, rank, "bytes in flight", "bytes", bytes);
  if (has_flops)
    put_rates (w, rank, "TFLOP/s", "tflop_per_s", flops, 1e12);
  put_rates (w, rank, "sent to others, GB/s", "gb_per_s", sent, 1e9);
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *name = g_strdup_printf ("busy by its calls, %%: %s", (const char *) names->pdata[i]);
    put_rates (w, rank, name, "percent", busy->pdata[i], 0.01);
  }
}

static void
trace_put_counters (Trace *w, uint32_t rank)
{
  put_ops (w, rank);
  g_autoptr (GArray) samples = w->asked->memory ? w->asked->memory (w->asked->user, rank) : NULL;
  if (!samples)
    return;
  g_autoptr (GArray) thin = ls_memory_samples_thin (samples, window_of (w), N_COLUMNS);
  for (guint i = 0; i < thin->len; i++)
    write_sample (w, rank, &g_array_index (thin, LsMemorySample, i), w->out);
}

/* --- the file ---------------------------------------------------------------------------------------- */

static void
write_rank (Trace *w, uint32_t rank)
{
  write_rank_names (w, rank, w->out);
  if (w->has_passes[rank]) {
    g_autoptr (GArray) boxes = ls_timeline_boxes (w->t, rank, LS_TIME_NEVER);
    write_passes (w, rank, boxes);
  }
  for (uint32_t i = 0; i < ls_timeline_spans (w->t, rank)->n; i++)
    write_span (w, rank, &ls_timeline_spans (w->t, rank)->spans[i], w->out);
  trace_put_counters (w, rank);
}

static gboolean
write_trace (FILE *out, void *data, GError **error)
{
  Trace *w = data;
  g_autoptr (GArray) rows = rows_of (w->t, &w->asked->size);
  guint64 left_out = cut_trace (w->t, &w->asked->size, rows, w->has_passes, w->until);
  w->out = out;
  fputs ("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":", out);
  trace_put_string (w, w->asked->title);
  if (left_out > 0)
    fprintf (out, ",\"left_out\":%" PRIu64, left_out);
  fprintf (out, ",\"digest\":\"%016" PRIx64 "\"},\"traceEvents\":[", w->t->digest);
  for (guint row = 0; row < rows->len; row++)
    write_rank (w, g_array_index (rows, uint32_t, row));
  write_arrows (w);
  if (w->asked->critical)
    write_critical (w, w->asked->critical, out);
  fputs ("\n]}\n", out);
  return TRUE;
}

gboolean
ls_trace_chrome_write (const LsChromeTrace *asked, const char *path, GError **error)
{
  const LsTimeline *t = asked->timeline;
  g_autoptr (LsCallLimits) calls = ls_call_limits_new (t->plan, asked->cluster, asked->nccl);
  g_autofree bool *has_passes = g_new0 (bool, t->n_ranks);
  g_autofree LsTime *until = g_new0 (LsTime, t->n_ranks);
  Trace trace = { .asked = asked, .t = t, .calls = calls, .until = until, .has_passes = has_passes };
  return ls_write_file_packed (path, write_trace, &trace, error);
}
