#include "show/run/trace_chrome.h"

#include <inttypes.h>

#include "data/text/write_file.h"
#include "network/coll.h"
#include "show/run/timeline_boxes.h"

/* The host has a thread after the streams, and passes one before them. */
#define TID_PASSES (LS_N_STREAMS + 1)

void
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

void
trace_put_us (Trace *w, const char *key, LsTime ps)
{
  fprintf (w->out, ",\"%s\":%" PRId64 ".%06" PRId64, key, ps / LS_US, ps % LS_US);
}

void
trace_begin_event (Trace *w, char phase, const char *name, uint32_t rank)
{
  fputs (w->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", w->out);
  fprintf (w->out, "%c\",\"pid\":%u,\"name\":", phase, rank);
  trace_put_string (w, name);
  w->has_events = true;
}

bool
trace_cut (const LsTimeline *t, const LsSpan *s, LsTime *ret_from, LsTime *ret_to)
{
  LsTime end = MIN (s->end, t->window_end), start = MAX (s->start, t->window_start);
  if (start >= end)
    return false;
  *ret_from = start - t->window_start;
  *ret_to = end - t->window_start;
  return true;
}

/* Of Catapult's colour scheme (tracing/tracing/base/color_scheme.html). */
static const char *
color_of (LsBoxKind kind)
{
  static const char *const colors[LS_N_BOX_KINDS] = {
    [LS_BOX_FORWARD] = "rail_response",
    [LS_BOX_BACKWARD] = "rail_idle",
    [LS_BOX_WEIGHT] = "rail_load",
    [LS_BOX_SYNC] = "thread_state_iowait",
    [LS_BOX_RECOMPUTE] = "light_memory_dump",
    [LS_BOX_OPTIMIZER] = "generic_work",
  };
  return colors[kind];
}

/* "forward 3", with the chunk where a rank has several; newly allocated. */
static char *
pass_name (const Trace *w, const LsTimelineBox *b)
{
  const char *kind = ls_box_kind_name (b->kind);
  if (!ls_box_has_micro_batch (b))
    return g_strdup (kind);
  return w->t->plan->n_chunks > 1 ? g_strdup_printf ("%s %u, chunk %u", kind, b->mb, b->chunk)
                                  : g_strdup_printf ("%s %u", kind, b->mb);
}

double
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

static int
compare_times (const void *a, const void *b)
{
  LsTime x = *(const LsTime *) a, y = *(const LsTime *) b;
  return (x > y) - (x < y);
}

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
  g_array_sort (starts, compare_times);
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
