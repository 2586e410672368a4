#include "ask/profile/profile_step.h"

#include <lockstep/error.h>

#include "base/list.h"
#include "base/order.h"

#define PS_PER_NS 1000

/* --- one step cut out of a profile -------------------------------------------------------------------- */

void
ls_measured_step_clear (LsMeasuredStep *step)
{
  ls_step_side_free (step->side);
  g_clear_pointer (&step->chosen, g_array_unref);
  g_free (step->what);
  *step = (LsMeasuredStep) { 0 };
}

static const LsKinetoOp *
kineto_op (const LsKineto *k, guint i)
{
  return &g_array_index (k->ops, LsKinetoOp, i);
}

static gboolean
fail (GError **error, const LsKineto *k, const char *message, const char *hint)
{
  return ls_fail (error, LS_ERROR_INPUT, "%s: error: %s\nnote: %s", k->path, message, hint);
}

/* ---- which ---- */

typedef struct {
  bool is_range;
  uint64_t number;
  LsTime from, to;
} Which;

static gboolean
parse_which (const char *text, Which *ret, GError **error)
{
  guint64 number;
  const char *expected;
  g_auto (GStrv) ends = g_strsplit (text, ":", 2);
  *ret = (Which) { 0 };
  if (g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT64, &number, NULL)) {
    ret->number = number;
    return TRUE;
  }
  ret->is_range = true;
  if (g_strv_length (ends) == 2 && ls_parse_time (ends[0], &ret->from, &expected)
      && ls_parse_time (ends[1], &ret->to, &expected) && ret->from < ret->to)
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE,
                  "--step: expected the N of ProfilerStep#N, or FROM:TO such as \"120ms:180ms\"; got \"%s\"",
                  text);
}

gboolean
ls_measured_step_check (const char *which, GError **error)
{
  Which parsed;
  return !which || parse_which (which, &parsed, error);
}

/* ---- by annotations ---- */

static int64_t
issue_time (const LsKinetoOp *op)
{
  return op->launch == LS_KINETO_NONE ? op->start : op->launch;
}

/* The op with which the GPU begins a step; NULL: none. */
static const LsKinetoOp *
first_op (const LsKineto *k, guint step)
{
  const LsKinetoStep *s = &g_array_index (k->steps, LsKinetoStep, step);
  for (guint i = 0; i < k->ops->len; i++) {
    int64_t at = issue_time (kineto_op (k, i));
    if (at >= s->start && at < s->end)
      return kineto_op (k, i);
  }
  return NULL;
}

static void
end_with (LsMeasuredStep *cut, const LsKinetoOp *next)
{
  cut->end = next ? next->start : LS_KINETO_NONE;
  cut->next_launch = next ? next->launch : LS_KINETO_NONE;
}

static gboolean
find_step (const LsKineto *k, const Which *which, guint *ret_step, GError **error)
{
  guint n = k->steps->len;
  if (!which) {
    *ret_step = n > 1 && first_op (k, n - 1) ? n - 2 : n - 1;
    return TRUE;
  }
  for (guint i = 0; i < n; i++)
    if (g_array_index (k->steps, LsKinetoStep, i).number == which->number) {
      *ret_step = i;
      return TRUE;
    }
  g_autofree char *message = g_strdup_printf ("no ProfilerStep#%" G_GUINT64_FORMAT, which->number);
  g_autofree char *hint = n > 0
      ? g_strdup_printf ("it has ProfilerStep#%" G_GUINT64_FORMAT " to #%" G_GUINT64_FORMAT,
                         g_array_index (k->steps, LsKinetoStep, 0).number,
                         g_array_index (k->steps, LsKinetoStep, n - 1).number)
      : g_strdup ("it has no steps at all: call prof.step() after each, or give --step FROM:TO");
  return fail (error, k, message, hint);
}

static gboolean
cut_annotated (const LsKineto *k, const Which *which, LsMeasuredStep *ret, GError **error)
{
  guint step = 0;
  if (!find_step (k, which, &step, error))
    return FALSE;
  const LsKinetoStep *s = &g_array_index (k->steps, LsKinetoStep, step);
  for (guint i = 0; i < k->ops->len; i++) {
    int64_t at = issue_time (kineto_op (k, i));
    if (at >= s->start && at < s->end)
      g_array_append_val (ret->chosen, i);
  }
  ret->what = g_strdup_printf ("ProfilerStep#%" G_GUINT64_FORMAT, s->number);
  ret->host_end = s->end;
  ret->thread = s->thread;
  end_with (ret, step + 1 < k->steps->len ? first_op (k, step + 1) : NULL);
  return TRUE;
}

/* ---- by range ---- */

static void
cut_range (const LsKineto *k, const Which *which, const char *text, LsMeasuredStep *ret)
{
  int64_t from = which->from / PS_PER_NS, to = which->to / PS_PER_NS;
  for (guint i = 0; i < k->ops->len; i++)
    if (kineto_op (k, i)->start >= from && kineto_op (k, i)->start < to)
      g_array_append_val (ret->chosen, i);
  ret->start = from;
  ret->end = to;
  ret->what = g_strdup (text);
}

/* ---- by periodicity ---- */

/* Of the names of all kernels; 0: none of which two fit. Names are interned: equal names are
 * one pointer. */
static guint
find_period (const LsKineto *k)
{
  guint n = k->ops->len;
  g_autofree guint *border = g_new0 (guint, n + 1);
  for (guint i = 1, m = 0; i < n; i++) {
    while (m > 0 && kineto_op (k, i)->name != kineto_op (k, m)->name)
      m = border[m];
    if (kineto_op (k, i)->name == kineto_op (k, m)->name)
      m++;
    border[i + 1] = m;
  }
  guint period = n - border[n];
  return n > 1 && period <= n / 2 ? period : 0;
}

/* A step begins where the longest stretch without an optimizer does; without any, where the
 * trace does. */
static guint
find_phase (const LsKineto *k, guint period)
{
  guint best = 0, longest = 0, run = 0;
  for (guint i = 0; i < 2 * period; i++) {
    run = kineto_op (k, i % period)->class == LS_CLASS_OPTIMIZER ? 0 : run + 1;
    if (run > longest && run <= period) {
      longest = run;
      best = i + 1 - run;
    }
  }
  return longest == period ? 0 : best % period;
}

static gboolean
cut_periodic (const LsKineto *k, LsMeasuredStep *ret, GError **error)
{
  guint period = find_period (k);
  if (period == 0)
    return fail (error, k, "no steps: neither ProfilerStep#N annotations, nor kernels that repeat",
                 "call prof.step() after each step, or say which range is one: --step FROM:TO");
  guint n = k->ops->len, begin = find_phase (k, period);
  while (begin + 2 * period < n)
    begin += period;
  if (begin + period > n)
    begin -= period;
  for (guint i = begin; i < begin + period; i++)
    g_array_append_val (ret->chosen, i);
  end_with (ret, begin + period < n ? kineto_op (k, begin + period) : NULL);
  ret->what = g_strdup_printf ("a period of %u kernels and copies, from record %u", period,
                               kineto_op (k, begin)->record);
  return TRUE;
}

/* ---- the side ---- */

static LsTime
ps (int64_t ns)
{
  return ns * PS_PER_NS;
}

static void
fill_side (const LsKineto *k, LsMeasuredStep *step)
{
  step->side = ls_step_side_new ();
  for (guint i = 0; i < step->chosen->len; i++) {
    const LsKinetoOp *op = kineto_op (k, g_array_index (step->chosen, guint, i));
    const LsStepOp row = { .start = ps (op->start),
                           .end = ps (op->end),
                           .bytes = op->bytes,
                           .name = op->name,
                           .class = op->class,
                           .in_graph = op->in_graph,
                           .launch = op->launch == LS_KINETO_NONE ? LS_TIME_NEVER : ps (op->launch) };
    g_array_append_val (step->side->ops, row);
  }
  step->side->length = ps (step->end - step->start);
  ls_step_side_finish (step->side, ps (step->start));
}

/* Where it begins and ends, if that is not said. */
static gboolean
bound (const LsKineto *k, LsMeasuredStep *ret, GError **error)
{
  g_autofree char *message = g_strdup_printf ("%s: nothing ran on the GPU", ret->what);
  if (ret->chosen->len == 0)
    return fail (error, k, message, "was the profiler's schedule still warming up? Try another --step");
  int64_t last = 0;
  for (guint i = 0; i < ret->chosen->len; i++)
    last = MAX (last, kineto_op (k, g_array_index (ret->chosen, guint, i))->end);
  if (ret->start < 0)
    ret->start = kineto_op (k, g_array_index (ret->chosen, guint, 0))->start;
  ret->is_open = ret->end == LS_KINETO_NONE || ret->end <= ret->start;
  if (ret->is_open)
    ret->end = last;
  if (ret->end <= ret->start)
    return fail (error, k, message, "its kernels take no time");
  fill_side (k, ret);
  return ret->side->ops->len > 0 || fail (error, k, "its kernels take no time", "try another --step");
}

gboolean
ls_measured_step_cut (const LsKineto *k, const char *which, LsMeasuredStep *ret_step, GError **error)
{
  Which parsed;
  *ret_step = (LsMeasuredStep) { 0 };
  if (which && !parse_which (which, &parsed, error))
    return FALSE;
  *ret_step = (LsMeasuredStep) { .chosen = g_array_new (FALSE, FALSE, sizeof (guint)),
                                 .start = -1,
                                 .end = LS_KINETO_NONE,
                                 .host_end = LS_KINETO_NONE,
                                 .next_launch = LS_KINETO_NONE,
                                 .thread = -1 };
  gboolean ok = TRUE;
  if (which && parsed.is_range)
    cut_range (k, &parsed, which, ret_step);
  else if (which || k->steps->len > 0)
    ok = cut_annotated (k, which ? &parsed : NULL, ret_step, error);
  else
    ok = cut_periodic (k, ret_step, error);
  if (ok && bound (k, ret_step, error))
    return TRUE;
  ls_measured_step_clear (ret_step);
  return FALSE;
}

/* --- as a program: which ops, and on which streams ---------------------------------------------------- */

#define OVERLAP_NS  1000 /* clocks of a profiler agree to less        */
#define MAX_STREAMS 256  /* that are told apart: more than a GPU needs */

void
ls_profile_step_free (LsProfileStep *step)
{
  if (!step)
    return;
  g_array_unref (step->ops);
  g_array_unref (step->waits);
  g_array_unref (step->syncs);
  g_free (step);
}

bool
ls_profile_is_known (const LsKinetoOp *op)
{
  return ls_op_class_is_communication ((LsOpClass) op->class) && op->class != LS_CLASS_SEND_RECV
      && op->bytes > 0 && op->group > 0;
}

/* ---- ops ---- */

static int64_t
issued_at (const LsProfileOp *op)
{
  return op->launch == LS_KINETO_NONE ? op->start : op->launch;
}

static int
by_issue (gconstpointer a, gconstpointer b)
{
  const LsProfileOp *x = a, *y = b;
  LS_SMALLER_FIRST (issued_at (x), issued_at (y));
  LS_SMALLER_FIRST (x->start, y->start);
  return LS_ORDER (x->op->record, y->op->record);
}

static uint8_t
kind_of (const LsKinetoOp *op, const uint8_t *slot_of, bool as_measured)
{
  if (op->class == LS_CLASS_COPY)
    return LS_PROFILE_BESIDE;
  if (!ls_op_class_is_communication ((LsOpClass) op->class))
    return LS_PROFILE_KERNEL;
  bool is_ours = !as_measured && ls_profile_is_known (op) && slot_of[op->group - 1] < LS_N_SLOTS;
  return is_ours ? LS_PROFILE_COLLECTIVE : LS_PROFILE_BESIDE;
}

static void
add_ops (LsProfileStep *step, const uint8_t *slot_of, bool as_measured)
{
  const LsMeasuredStep *cut = step->cut;
  for (guint i = 0; i < cut->chosen->len; i++) {
    const LsKinetoOp *op
        = &g_array_index (step->profile->ops, LsKinetoOp, g_array_index (cut->chosen, guint, i));
    LsProfileOp p = { .op = op,
                      .start = op->start - cut->start,
                      .end = op->end - cut->start,
                      .launch = op->launch == LS_KINETO_NONE ? op->launch : op->launch - cut->start,
                      .issue = LS_KINETO_NONE,
                      .kind = kind_of (op, slot_of, as_measured),
                      .slot = LS_N_SLOTS };
    if (p.kind == LS_PROFILE_COLLECTIVE)
      p.slot = slot_of[op->group - 1];
    if (op->end > op->start || p.kind == LS_PROFILE_COLLECTIVE)
      g_array_append_val (step->ops, p);
  }
  g_array_sort (step->ops, by_issue);
}

/* ---- streams ---- */

/* Of the GPU that was profiled. */
typedef struct {
  int32_t id;
  guint first;              /* in issue order */
  int64_t kernels;          /* ns */
  uint8_t prefers, becomes; /* LsStream */
  bool is_beside;
} Stream;

static LsStream
preferred (const LsProfileOp *op, const uint8_t *slot_of)
{
  static const uint8_t of_slot[LS_N_SLOTS + 1] = {
    [LS_SLOT_TP] = LS_STREAM_TP,  [LS_SLOT_DP] = LS_STREAM_DP,           [LS_SLOT_CP] = LS_STREAM_CP,
    [LS_SLOT_EP] = LS_STREAM_EP,  [LS_SLOT_SHARD] = LS_STREAM_DP,        [LS_SLOT_ETP] = LS_STREAM_TP,
    [LS_SLOT_EDP] = LS_STREAM_DP, [LS_SLOT_REPLICA] = LS_STREAM_REPLICA, [LS_SLOT_PIPES] = LS_STREAM_DP,
  };
  uint32_t group = op->op->group;
  uint8_t stream = group > 0 ? of_slot[slot_of[group - 1]] : 0;
  return op->op->class == LS_CLASS_COPY     ? LS_STREAM_COPY
      : op->op->class == LS_CLASS_SEND_RECV ? LS_STREAM_PP_FWD
      : stream > 0                          ? (LsStream) stream
                                            : LS_STREAM_GLOBAL;
}

/* Of so many that they are not told apart the last; NULL: a new one. */
static Stream *
stream_called (GArray *streams, int32_t id)
{
  for (guint i = 0; i < streams->len; i++)
    if (g_array_index (streams, Stream, i).id == id || i == MAX_STREAMS - 1)
      return &g_array_index (streams, Stream, i);
  return NULL;
}

static GArray *
list_streams (const LsProfileStep *step, const uint8_t *slot_of)
{
  GArray *streams = g_array_new (FALSE, FALSE, sizeof (Stream));
  for (guint i = 0; i < step->ops->len; i++) {
    const LsProfileOp *op = &g_array_index (step->ops, LsProfileOp, i);
    Stream *s = stream_called (streams, op->op->stream);
    if (!s) {
      const Stream own = { .id = op->op->stream, .first = i, .prefers = (uint8_t) preferred (op, slot_of) };
      s = ls_list_add (streams, &own);
    }
    if (op->kind == LS_PROFILE_KERNEL)
      s->kernels += op->end - op->start;
  }
  return streams;
}

static const LsSortKey busiest_first[]
    = { { LS_FALLING (Stream, kernels) }, { LS_RISING (Stream, first) }, { 0 } };

/* The busiest computes; the others get what they prefer, or what is free. */
static void
name_streams (LsProfileStep *step, GArray *streams)
{
  bool taken[LS_N_STREAMS] = { false };
  ls_sort_by (streams, busiest_first);
  for (guint i = 0; i < streams->len; i++) {
    Stream *s = &g_array_index (streams, Stream, i);
    uint8_t at = i == 0 ? LS_STREAM_COMPUTE : s->prefers;
    for (uint8_t other = 1; taken[at] && other < LS_N_STREAMS; other++)
      at = taken[other] ? at : other;
    step->n_shared += taken[at];
    taken[at] = true;
    s->becomes = at;
  }
}

static int
by_start (gconstpointer a, gconstpointer b)
{
  const LsProfileOp *const *x = a, *const *y = b;
  LS_SMALLER_FIRST ((*x)->start, (*y)->start);
  return LS_ORDER (*x, *y);
}

/* LsProfileOp of a kind. */
static GPtrArray *
ops_by_start (const LsProfileStep *step, LsProfileKind kind)
{
  GPtrArray *ops = g_ptr_array_new ();
  for (guint i = 0; i < step->ops->len; i++)
    if (g_array_index (step->ops, LsProfileOp, i).kind == kind)
      g_ptr_array_add (ops, &g_array_index (step->ops, LsProfileOp, i));
  g_ptr_array_sort (ops, by_start);
  return ops;
}

/* Of two streams whose kernels overlap, the one that is less busy: it is behind the other in the list. */
static void
mark_beside (const LsProfileStep *step, GArray *streams)
{
  g_autoptr (GPtrArray) kernels = ops_by_start (step, LS_PROFILE_KERNEL);
  const Stream *last = NULL;
  int64_t end = G_MININT64;
  for (guint i = 0; i < kernels->len; i++) {
    const LsProfileOp *op = kernels->pdata[i];
    Stream *s = stream_called (streams, op->op->stream);
    if (last && last != s && op->start + OVERLAP_NS < end)
      (s > last ? s : (Stream *) last)->is_beside = true;
    if (op->end > end) {
      end = op->end;
      last = s;
    }
  }
}

static void
find_streams (LsProfileStep *step, const uint8_t *slot_of)
{
  g_autoptr (GArray) streams = list_streams (step, slot_of);
  name_streams (step, streams);
  mark_beside (step, streams);
  for (guint i = 0; i < step->ops->len; i++) {
    LsProfileOp *op = &g_array_index (step->ops, LsProfileOp, i);
    const Stream *s = stream_called (streams, op->op->stream);
    op->stream = s->becomes;
    if (op->kind == LS_PROFILE_KERNEL && s->is_beside)
      op->kind = LS_PROFILE_BESIDE;
  }
}

/* ---- kernels beside communication ---- */

typedef struct {
  int64_t start, end;
} Interval;

/* Interval: when some collective by our network ran, in order and apart. */
static GArray *
busy_intervals (const LsProfileStep *step)
{
  g_autoptr (GPtrArray) calls = ops_by_start (step, LS_PROFILE_COLLECTIVE);
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Interval));
  for (guint i = 0; i < calls->len; i++) {
    const LsProfileOp *op = calls->pdata[i];
    const Interval it = { op->start, op->end };
    Interval *last = all->len > 0 ? &g_array_index (all, Interval, all->len - 1) : NULL;
    if (last && it.start <= last->end)
      last->end = MAX (last->end, it.end);
    else
      g_array_append_val (all, it);
  }
  return all;
}

static void
find_beside (LsProfileStep *step)
{
  g_autoptr (GArray) busy = busy_intervals (step);
  g_autoptr (GPtrArray) kernels = ops_by_start (step, LS_PROFILE_KERNEL);
  const Interval *all = (const Interval *) (gpointer) busy->data;
  for (guint i = 0, first = 0; i < kernels->len; i++) {
    LsProfileOp *op = kernels->pdata[i];
    while (first < busy->len && all[first].end <= op->start)
      first++;
    for (guint k = first; k < busy->len && all[k].start < op->end; k++)
      op->beside += MIN (all[k].end, op->end) - MAX (all[k].start, op->start);
  }
}

/* ---- who waits for what ---- */

#define CLOCK_NS        1000  /* to which the clocks of a profiler agree                         */
#define LATE_NS         10000 /* a start later than this is explained by something of the profile */
#define MOST_LATENCY_NS 20000 /* where all ops wait for others */
#define LOOK_BACK       256   /* ops of a stream */
#define NO_OP           G_MAXUINT

typedef struct {
  LsProfileStep *step;
  guint last[LS_N_STREAMS];    /* op that was issued last; NO_OP: none                           */
  guint *before;               /* of each op that of its stream before it; NO_OP: none           */
  guint awaited[LS_N_STREAMS]; /* of communication: 1 + the last op that the compute stream waits for */
  GHashTable *records;         /* by correlation: LsKinetoCall of those that recorded an event */
  GHashTable *told; /* stream of the GPU -> GArray of guint: what its next op is told to wait for */
  guint n_unsaid;   /* waits without streams since the last launch                    */
  guint call;       /* next of the profile's calls                                    */
  bool has_calls;   /* the profile has waits at all                                   */
} Waits;

static LsProfileOp *
op_at (const LsProfileStep *step, guint i)
{
  return &g_array_index (step->ops, LsProfileOp, i);
}

static bool
is_communication (const LsProfileOp *op)
{
  return ls_op_class_is_communication ((LsOpClass) op->op->class);
}

static bool
ended_before (const LsProfileStep *step, guint i, int64_t at)
{
  return i != NO_OP && op_at (step, i)->end <= at + CLOCK_NS;
}

/* ---- latency ---- */

/* Median of those that found their stream idle; communication waits for others there. Of none the shortest of
 * all. */
static int64_t
find_latency (const LsProfileStep *step)
{
  int64_t end[LS_N_STREAMS] = { 0 }, least = MOST_LATENCY_NS;
  g_autoptr (GArray) found = g_array_new (FALSE, FALSE, sizeof (int64_t));
  for (guint i = 0; i < step->ops->len; i++) {
    const LsProfileOp *op = op_at (step, i);
    int64_t latency = op->launch == LS_KINETO_NONE ? -1 : op->start - op->launch;
    if (latency >= 0 && end[op->stream] <= op->launch && !is_communication (op))
      g_array_append_val (found, latency);
    end[op->stream] = MAX (end[op->stream], op->end);
    least = latency >= 0 ? MIN (least, latency) : least;
  }
  g_array_sort (found, ls_compare_int64);
  return found->len > 0 ? g_array_index (found, int64_t, found->len / 2) : least;
}

/* ---- waits ---- */

static void
add_wait (Waits *w, LsProfileOp *op, guint on)
{
  const LsProfileOp *other = op_at (w->step, on);
  if (other->stream == op->stream)
    return;
  for (guint i = 0; i < op->n_waits; i++)
    if (g_array_index (w->step->waits, guint, op->first_wait + i) == on)
      return;
  g_array_append_val (w->step->waits, on);
  op->n_waits++;
  if (op->stream == LS_STREAM_COMPUTE)
    w->awaited[other->stream] = MAX (w->awaited[other->stream], on + 1);
}

/* Unless the times contradict it. */
static void
infer_wait (Waits *w, LsProfileOp *op, guint on)
{
  guint before = op->n_waits;
  if (ended_before (w->step, on, op->start))
    add_wait (w, op, on);
  w->step->n_inferred += op->n_waits - before;
}

/* The stream of a replay that stands for one of the GPU; LS_N_STREAMS: nothing ran on it yet. */
static LsStream
stream_of (const Waits *w, int32_t id)
{
  for (int s = 0; s < LS_N_STREAMS; s++)
    if (w->last[s] != NO_OP && op_at (w->step, w->last[s])->op->stream == id)
      return (LsStream) s;
  return LS_N_STREAMS;
}

static void
take_wait (Waits *w, const LsKinetoCall *call)
{
  if (call->stream < 0 || call->awaited < 0) {
    w->n_unsaid++;
    return;
  }
  LsStream from = stream_of (w, call->awaited);
  const LsKinetoCall *record
      = call->record != 0 ? g_hash_table_lookup (w->records, GSIZE_TO_POINTER (call->record)) : NULL;
  int64_t at = (record ? record : call)->start - w->step->cut->start;
  guint on = from < LS_N_STREAMS ? w->last[from] : NO_OP; /* the last that was issued by then */
  while (on != NO_OP && issued_at (op_at (w->step, on)) > at)
    on = w->before[on];
  if (on == NO_OP)
    return;
  gpointer key = GINT_TO_POINTER (call->stream);
  GArray *told = g_hash_table_lookup (w->told, key);
  if (!told)
    g_hash_table_insert (w->told, key, told = g_array_new (FALSE, FALSE, sizeof (guint)));
  g_array_append_val (told, on);
}

/* ---- syncs ---- */

/* It waited for the streams whose last op had ended when it was over. */
static void
take_sync (Waits *w, int64_t start, int64_t end, int32_t awaited, guint before)
{
  LsProfileSync sync = { .start = start, .end = end, .before = before, .resolved = G_MININT64 };
  LsStream only = awaited >= 0 ? stream_of (w, awaited) : LS_N_STREAMS;
  for (int s = 0; s < LS_N_STREAMS; s++) {
    if (!ended_before (w->step, w->last[s], end) || (only < LS_N_STREAMS && s != (int) only))
      continue;
    sync.streams |= 1u << s;
    sync.resolved = MAX (sync.resolved, op_at (w->step, w->last[s])->end);
  }
  if (sync.streams)
    g_array_append_val (w->step->syncs, sync);
}

/* Calls of the host before the launch of an op. */
static void
take_calls (Waits *w, int64_t until, guint next)
{
  const GArray *calls = w->step->profile->calls;
  for (; w->call < calls->len; w->call++) {
    const LsKinetoCall *c = &g_array_index (calls, LsKinetoCall, w->call);
    if (c->start - w->step->cut->start >= until)
      return;
    if (c->kind == LS_CALL_WAIT)
      take_wait (w, c);
    else if (c->kind == LS_CALL_SYNC)
      take_sync (w, c->start - w->step->cut->start, c->end - w->step->cut->start, c->awaited, next);
  }
}

/* ---- each op ---- */

static void
take_told (Waits *w, LsProfileOp *op)
{
  GArray *told = g_hash_table_lookup (w->told, GINT_TO_POINTER (op->op->stream));
  for (guint i = 0; told && i < told->len; i++) {
    add_wait (w, op, g_array_index (told, guint, i));
    w->step->n_told++;
  }
  if (told)
    g_array_set_size (told, 0);
}

static int64_t
ready_by_waits (const LsProfileStep *step, const LsProfileOp *op, int64_t ready)
{
  for (guint i = 0; i < op->n_waits; i++)
    ready = MAX (ready, op_at (step, g_array_index (step->waits, guint, op->first_wait + i))->end);
  return ready;
}

/* Of those of a stream that were issued before, the last that had ended by then; NO_OP: none of the last few
 * had. */
static guint
last_ended (const Waits *w, LsStream stream, int64_t at)
{
  guint on = w->last[stream];
  for (guint i = 0; i < LOOK_BACK && on != NO_OP && !ended_before (w->step, on, at); i++)
    on = w->before[on];
  return ended_before (w->step, on, at) ? on : NO_OP;
}

static void
infer (Waits *w, LsProfileOp *op)
{
  bool is_call = is_communication (op),
       takes_all = w->n_unsaid > 0 || (!w->has_calls && (is_call || op->op->class == LS_CLASS_OPTIMIZER));
  if (is_call && takes_all && w->last[LS_STREAM_COMPUTE] != NO_OP)
    infer_wait (w, op, w->last[LS_STREAM_COMPUTE]);
  for (int s = 1; takes_all && !is_call && s < LS_N_STREAMS; s++) {
    guint on = last_ended (w, (LsStream) s, op->start);
    if (on != NO_OP && is_communication (op_at (w->step, on)))
      infer_wait (w, op, on);
  }
}

/* What ended right before the op started, on another stream. */
static void
infer_tight (Waits *w, LsProfileOp *op)
{
  guint best = NO_OP;
  for (int s = 0; s < LS_N_STREAMS; s++) {
    guint on = s != op->stream ? last_ended (w, (LsStream) s, op->start) : NO_OP;
    if (on == NO_OP || op_at (w->step, on)->end < op->start - LATE_NS)
      continue;
    if (best == NO_OP || op_at (w->step, on)->end > op_at (w->step, best)->end)
      best = on;
  }
  if (best != NO_OP)
    infer_wait (w, op, best);
}

static int64_t
arrival (const LsProfileStep *step, const LsProfileOp *op)
{
  return op->launch == LS_KINETO_NONE ? G_MININT64 : op->launch + step->latency;
}

static bool
is_late (const LsProfileStep *step, const LsProfileOp *op)
{
  return op->start - MAX (op->ready, arrival (step, op)) > LATE_NS;
}

static void
find_start (Waits *w, LsProfileOp *op)
{
  guint before = w->last[op->stream];
  int64_t free_at = before == NO_OP ? 0 : op_at (w->step, before)->end;
  op->ready = ready_by_waits (w->step, op, free_at);
  if (is_late (w->step, op)) {
    infer_tight (w, op);
    op->ready = ready_by_waits (w->step, op, op->ready);
  }
  int64_t arrives = arrival (w->step, op), can = MAX (op->ready, arrives);
  bool is_late_still = is_late (w->step, op);
  op->is_hosts = arrives > op->ready;
  op->wait = is_late_still ? op->start - can : 0;
  if (op->launch != LS_KINETO_NONE)
    op->issue = op->is_hosts && !is_late_still ? op->start : arrives;
}

/* Communication that the compute stream has not waited for ends with the step, unless it runs beyond it. */
static void
join_rest (Waits *w)
{
  for (int s = 0; s < LS_N_STREAMS; s++) {
    guint on = w->last[s];
    if (on != NO_OP && s != LS_STREAM_COMPUTE && w->awaited[s] < on + 1
        && ended_before (w->step, on, w->step->length))
      w->step->joined |= 1u << s;
  }
}

/* A copy whose call lasts until it has ended: the host waited. */
static void
take_blocking (Waits *w, const LsProfileOp *op, guint i)
{
  int64_t called = op->op->called == LS_KINETO_NONE ? G_MININT64 : op->op->called - w->step->cut->start;
  if (op->op->class == LS_CLASS_COPY && called >= op->end)
    take_sync (w, op->launch, called, op->op->stream, i + 1);
}

static void
find_all_waits (LsProfileStep *step)
{
  const LsMeasuredStep *cut = step->cut;
  Waits w = { .step = step };
  w.before = g_new (guint, step->ops->len + 1);
  w.told = g_hash_table_new_full (g_direct_hash, g_direct_equal, NULL, (GDestroyNotify) g_array_unref);
  const GArray *calls = step->profile->calls;
  w.records = g_hash_table_new (g_direct_hash, g_direct_equal);
  int64_t from = step->ops->len > 0 ? MIN (op_at (step, 0)->launch, op_at (step, 0)->start) : 0;
  for (int s = 0; s < LS_N_STREAMS; s++)
    w.last[s] = NO_OP;
  for (guint i = 0; i < calls->len; i++) {
    LsKinetoCall *c = &g_array_index (calls, LsKinetoCall, i);
    w.has_calls |= c->kind == LS_CALL_WAIT;
    if (c->kind == LS_CALL_RECORD && c->correlation != 0)
      g_hash_table_insert (w.records, GSIZE_TO_POINTER (c->correlation), c);
  }
  while (w.call < calls->len && g_array_index (calls, LsKinetoCall, w.call).start - cut->start < from)
    w.call++;
  step->latency = find_latency (step);
  for (guint i = 0; i < step->ops->len; i++) {
    LsProfileOp *op = op_at (step, i);
    op->first_wait = step->waits->len;
    take_calls (&w, issued_at (op), i);
    take_told (&w, op);
    infer (&w, op);
    w.n_unsaid = 0;
    find_start (&w, op);
    w.before[i] = w.last[op->stream];
    w.last[op->stream] = i;
    take_blocking (&w, op, i);
  }
  int64_t until = cut->next_launch != LS_KINETO_NONE ? cut->next_launch : cut->host_end;
  if (until != LS_KINETO_NONE)
    take_calls (&w, until - cut->start, step->ops->len);
  join_rest (&w);
  g_hash_table_unref (w.told);
  g_hash_table_unref (w.records);
  g_free (w.before);
}

/* ---- all of it ---- */

LsProfileStep *
ls_profile_step_new (const LsKineto *k, const LsMeasuredStep *cut, const uint8_t *slot_of, bool as_measured)
{
  LsProfileStep *step = g_new0 (LsProfileStep, 1);
  step->profile = k;
  step->cut = cut;
  step->ops = g_array_new (FALSE, FALSE, sizeof (LsProfileOp));
  step->waits = g_array_new (FALSE, FALSE, sizeof (guint));
  step->syncs = g_array_new (FALSE, FALSE, sizeof (LsProfileSync));
  step->length = cut->end - cut->start;
  add_ops (step, slot_of, as_measured);
  find_streams (step, slot_of);
  find_beside (step);
  find_all_waits (step);
  return step;
}
