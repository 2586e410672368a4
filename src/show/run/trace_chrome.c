#include "show/run/trace_chrome.h"

#include <inttypes.h>
#include <stdio.h>

#include "data/text/gzip.h"
#include "network/coll.h"
#include "show/run/p2p_pairs.h"
#include "show/run/timeline_boxes.h"

/* The host has a thread after the streams, and passes one before them. */
#define TID_HOST   LS_N_STREAMS
#define TID_PASSES (TID_HOST + 1)

typedef struct {
  FILE *out;
  const LsTimeline *t;
  const LsCriticalPath *critical; /* NULL: none */
  const char *title;
  guint max_ranks;
  bool *is_shown; /* per rank */
  bool has_events;
} Trace;

typedef struct {
  LsTime at;
  int delta;
} Change;

static void
write_string (Trace *w, const char *text)
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

/* Picoseconds as exact microseconds. */
static void
write_us (Trace *w, const char *key, LsTime ps)
{
  fprintf (w->out, ",\"%s\":%" PRId64 ".%06" PRId64, key, ps / LS_US, ps % LS_US);
}

static void
begin_event (Trace *w, char phase, const char *name, uint32_t rank)
{
  fputs (w->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", w->out);
  fprintf (w->out, "%c\",\"pid\":%u,\"name\":", phase, rank);
  write_string (w, name);
  w->has_events = true;
}

static void
write_rank_names (Trace *w, uint32_t rank)
{
  const LsPlan *plan = w->t->plan;
  begin_event (w, 'M', "process_name", rank);
  fprintf (w->out, ",\"args\":{\"name\":\"rank %u (stage %u)\"}}", rank,
           plan->programs[plan->bindings[rank].role].stage);
  begin_event (w, 'M', "process_sort_index", rank);
  fprintf (w->out, ",\"args\":{\"sort_index\":%u}}", rank);
  for (int tid = 0; tid <= TID_PASSES; tid++) {
    begin_event (w, 'M', "thread_name", rank);
    fprintf (w->out, ",\"tid\":%d,\"args\":{\"name\":\"%s\"}}", tid,
             tid == TID_PASSES     ? "passes"
                 : tid == TID_HOST ? "host"
                                   : ls_stream_name ((LsStream) tid));
    begin_event (w, 'M', "thread_sort_index", rank);
    fprintf (w->out, ",\"tid\":%d,\"args\":{\"sort_index\":%d}}", tid, tid == TID_PASSES ? -1 : tid);
  }
}

static bool
is_communication (const LsOp *op)
{
  return op->kind == LS_OP_COLLECTIVE || op->kind == LS_OP_P2P;
}

static unsigned
thread_of (const LsOp *op)
{
  return op->kind == LS_OP_HOST_SYNC || op->kind == LS_OP_HOST_DELAY ? TID_HOST : op->stream;
}

/* What of a span lies in the window, as offsets from its start. */
static bool
cut (const LsTimeline *t, const LsSpan *s, LsTime *ret_from, LsTime *ret_to)
{
  LsTime end = MIN (s->end, t->window_end), start = MAX (s->start, t->window_start);
  if (start >= end)
    return false;
  *ret_from = start - t->window_start;
  *ret_to = end - t->window_start;
  return true;
}

/* "forward 3" from the first of its kernels to the last. */
static void
write_passes (Trace *w, uint32_t rank)
{
  g_autoptr (GArray) boxes = ls_timeline_boxes (w->t, rank);
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    const char *kind = ls_box_kind_name (b->kind);
    g_autofree char *name
        = b->kind == LS_BOX_OPTIMIZER ? g_strdup (kind) : g_strdup_printf ("%s %u", kind, b->mb);
    begin_event (w, 'X', name, rank);
    fprintf (w->out, ",\"tid\":%d,\"cat\":\"pass\"", TID_PASSES);
    write_us (w, "ts", b->from);
    write_us (w, "dur", b->to - b->from);
    fprintf (w->out, ",\"args\":{\"micro_batch\":%u,\"chunk\":%u}}", b->mb, b->chunk);
  }
}

static void
write_number (Trace *w, const char *key, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (w->out, ",\"%s\":%s", key, g_ascii_formatd (text, sizeof text, "%.6g", value));
}

/* What it computes and moves, and how fast: all of its repetitions in the time of the span. */
static void
write_kernel (Trace *w, const LsSpan *s, const LsOp *op)
{
  const LsKernel *k = &w->t->plan->kernels[op->kernel];
  double n = MAX (op->repeat, 1), seconds = ls_time_to_s (s->end - s->start);
  fprintf (w->out, ",\"dtype\":\"%s\"", ls_dtype_name (k->dtype));
  if (k->m > 0 && k->n > 0)
    fprintf (w->out,
             k->k > 0 ? ",\"m\":%" PRIu64 ",\"n\":%" PRIu64 ",\"k\":%" PRIu64
                      : ",\"m\":%" PRIu64 ",\"n\":%" PRIu64,
             k->m, k->n, k->k);
  if (k->batch > 1)
    fprintf (w->out, ",\"batch\":%" PRIu64, k->batch);
  write_number (w, "flops", n * k->flops);
  write_number (w, "bytes", n * k->bytes);
  if (s->end == LS_TIME_NEVER || seconds <= 0)
    return;
  write_number (w, "tflop_per_s", n * k->flops / seconds * 1e-12);
  write_number (w, "gb_per_s", n * k->bytes / seconds * 1e-9);
}

static void
write_args (Trace *w, uint32_t rank, const LsSpan *s, const LsOp *op)
{
  const LsInstance *instance = ls_span_instance (w->t, rank, s);
  fprintf (w->out, ",\"args\":{\"micro_batch\":%u,\"chunk\":%u,\"stage\":%u", instance->mb, instance->chunk,
           instance->stage);
  if (op->layer != UINT16_MAX)
    fprintf (w->out, ",\"layer\":%u", op->layer);
  if (op->unit != UINT16_MAX)
    fprintf (w->out, ",\"unit\":%u", op->unit);
  if (op->kind == LS_OP_COLLECTIVE)
    fprintf (w->out, ",\"bytes\":%" PRIu64, op->bytes);
  const char *algorithm
      = op->kind == LS_OP_COLLECTIVE ? ls_coll_algorithm_name ((LsAlgorithm) op->algorithm) : NULL;
  if (algorithm) /* else as NCCL chooses */
    fprintf (w->out, ",\"algorithm\":\"%s\"", algorithm);
  if (op->kind == LS_OP_KERNEL && op->kernel != UINT32_MAX)
    write_kernel (w, s, op);
  for (uint16_t i = 0; op->kind == LS_OP_P2P && i < op->n_transfers; i++)
    fprintf (w->out, ",\"%s%u_bytes\":%" PRIu64, op->transfers[i].is_send ? "send" : "receive", i,
             op->transfers[i].bytes);
  fputc ('}', w->out);
}

static void
write_span (Trace *w, uint32_t rank, const LsSpan *s)
{
  const LsOp *op = ls_span_op (w->t, rank, s);
  LsTime from, to;
  if (op->kind == LS_OP_RECORD || op->kind == LS_OP_WAIT || !cut (w->t, s, &from, &to))
    return;
  begin_event (w, 'X', ls_span_name (w->t, rank, s), rank);
  fprintf (w->out, ",\"tid\":%u,\"cat\":\"%s\"", thread_of (op), ls_tag_name ((LsTag) op->tag));
  write_us (w, "ts", from);
  write_us (w, "dur", to - from);
  write_args (w, rank, s, op);
  fputc ('}', w->out);

  if (!is_communication (op))
    return;
  LsTime matched = MIN (s->matched, w->t->window_end) - w->t->window_start;
  if (matched <= from)
    return;
  begin_event (w, 'X', "waiting for partners", rank);
  fprintf (w->out, ",\"tid\":%u,\"cat\":\"wait\"", thread_of (op));
  write_us (w, "ts", from);
  write_us (w, "dur", MIN (matched, to) - from);
  fputc ('}', w->out);
}

static int
compare_changes (const void *a, const void *b)
{
  const Change *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* Communication ops between launch and end; one event per instant at which the
 * number changes. */
static void
write_in_flight (Trace *w, uint32_t rank)
{
  g_autoptr (GArray) changes = g_array_new (FALSE, FALSE, sizeof (Change));
  const LsRankSpans *r = &w->t->ranks[rank];
  for (uint32_t i = 0; i < r->n; i++) {
    Change up = { .delta = 1 }, down = { .delta = -1 };
    if (!is_communication (ls_span_op (w->t, rank, &r->spans[i]))
        || !cut (w->t, &r->spans[i], &up.at, &down.at))
      continue;
    g_array_append_val (changes, up);
    g_array_append_val (changes, down);
  }
  g_array_sort (changes, compare_changes);

  int n = 0, n_written = -1;
  for (guint i = 0; i < changes->len; i++) {
    const Change *change = &g_array_index (changes, Change, i);
    n += change->delta;
    bool is_last = i + 1 == changes->len || change[1].at != change->at;
    if (!is_last || n == n_written)
      continue;
    begin_event (w, 'C', "communication in flight", rank);
    write_us (w, "ts", change->at);
    fprintf (w->out, ",\"args\":{\"ops\":%d}}", n);
    n_written = n;
  }
}

static void
write_arrow_end (Trace *w, char phase, uint32_t rank, const LsSpan *s, LsTime at, guint id)
{
  begin_event (w, phase, "p2p", rank);
  fprintf (w->out, ",\"tid\":%u,\"cat\":\"p2p\",\"id\":%u", thread_of (ls_span_op (w->t, rank, s)), id);
  write_us (w, "ts", at);
  fputs (phase == 'f' ? ",\"bp\":\"e\"}" : "}", w->out);
}

/* From the launch of the send to the moment when data move at the receiver. */
static void
write_arrows (Trace *w)
{
  const LsTimeline *t = w->t;
  g_autoptr (GArray) pairs = ls_p2p_pairs (t);
  for (guint i = 0; i < pairs->len; i++) {
    const LsP2pPair *pair = &g_array_index (pairs, LsP2pPair, i);
    const LsSpan *send = &t->ranks[pair->from].spans[pair->from_span];
    const LsSpan *receive = &t->ranks[pair->to].spans[pair->to_span];
    LsTime send_from, send_to, receive_from, receive_to;
    if (!w->is_shown[pair->from] || !w->is_shown[pair->to] || receive->matched > t->window_end
        || !cut (t, send, &send_from, &send_to) || !cut (t, receive, &receive_from, &receive_to))
      continue;
    LsTime arrival = MAX (receive->matched - t->window_start, MAX (receive_from, send_from));
    write_arrow_end (w, 's', pair->from, send, send_from, i);
    write_arrow_end (w, 'f', pair->to, receive, arrival, i);
  }
}

/* Its pieces in a row, each with the rank that it is on. */
static void
write_critical (Trace *w)
{
  uint32_t process = w->t->n_ranks;
  begin_event (w, 'M', "process_name", process);
  fputs (",\"args\":{\"name\":\"critical path\"}}", w->out);
  begin_event (w, 'M', "process_sort_index", process);
  fprintf (w->out, ",\"args\":{\"sort_index\":%u}}", process);
  for (guint i = 0; i < w->critical->pieces->len; i++) {
    const LsPathPiece *piece = &g_array_index (w->critical->pieces, LsPathPiece, i);
    begin_event (w, 'X', ls_path_name (w->critical, piece), process);
    fprintf (w->out, ",\"tid\":0,\"cat\":\"%s\"", ls_path_kind_name (piece->kind));
    write_us (w, "ts", piece->from - w->t->window_start);
    write_us (w, "dur", piece->to - piece->from);
    fprintf (w->out, ",\"args\":{\"rank\":%u,\"kind\":\"%s\"}}", piece->rank,
             ls_path_kind_name (piece->kind));
  }
}

static gboolean
write_trace (FILE *out, void *data, GError **error)
{
  Trace *w = data;
  w->out = out;
  fputs ("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":", out);
  write_string (w, w->title);
  fprintf (out, ",\"digest\":\"%016" PRIx64 "\"},\"traceEvents\":[", w->t->digest);
  g_autoptr (GArray) rows = ls_timeline_rows (w->t, w->max_ranks);
  w->is_shown = g_new0 (bool, w->t->n_ranks);
  for (guint row = 0; row < rows->len; row++) {
    uint32_t rank = g_array_index (rows, uint32_t, row);
    w->is_shown[rank] = true;
    write_rank_names (w, rank);
    write_passes (w, rank);
    for (uint32_t i = 0; i < w->t->ranks[rank].n; i++)
      write_span (w, rank, &w->t->ranks[rank].spans[i]);
    write_in_flight (w, rank);
  }
  write_arrows (w);
  if (w->critical)
    write_critical (w);
  fputs ("\n]}\n", out);
  g_clear_pointer (&w->is_shown, g_free);
  return TRUE;
}

gboolean
ls_trace_chrome_write (const LsTimeline *t, const LsCriticalPath *critical, const char *title,
                       guint max_ranks, const char *path, GError **error)
{
  Trace trace = { .t = t, .critical = critical, .title = title, .max_ranks = max_ranks };
  return ls_write_file_packed (path, write_trace, &trace, error);
}
