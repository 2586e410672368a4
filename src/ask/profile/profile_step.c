/* ask/profile/profile_step.c — which ops, and on which streams. */
#include "ask/profile/profile_step.h"

#include <string.h>

#include "base/order.h"

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

static int
by_issue (gconstpointer a, gconstpointer b)
{
  const LsProfileOp *x = a, *y = b;
  int64_t at = x->launch == LS_KINETO_NONE ? x->start : x->launch,
          other = y->launch == LS_KINETO_NONE ? y->start : y->launch;
  LS_SMALLER_FIRST (at, other);
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
add_ops (LsProfileStep *step, const LsMeasuredStep *cut, const uint8_t *slot_of, bool as_measured)
{
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
  static const uint8_t of_slot[] = {
    [LS_SLOT_TP] = LS_STREAM_TP,
    [LS_SLOT_DP] = LS_STREAM_DP,
    [LS_SLOT_CP] = LS_STREAM_CP,
    [LS_SLOT_EP] = LS_STREAM_EP,
    [LS_SLOT_SHARD] = LS_STREAM_DP,
    [LS_SLOT_REPLICA] = LS_STREAM_REPLICA,
    [LS_SLOT_ETP] = LS_STREAM_TP,
    [LS_SLOT_EDP] = LS_STREAM_DP,
    [LS_SLOT_EMBEDDING] = LS_STREAM_GLOBAL,
    [LS_SLOT_PIPES] = LS_STREAM_DP,
    [LS_SLOT_TP_CP] = LS_STREAM_GLOBAL,
    [LS_SLOT_STAGE] = LS_STREAM_GLOBAL,
    [LS_SLOT_MODEL] = LS_STREAM_GLOBAL,
    [LS_SLOT_WORLD] = LS_STREAM_GLOBAL,
  };
  uint32_t group = op->op->group;
  if (op->op->class == LS_CLASS_COPY)
    return LS_STREAM_COPY;
  if (op->op->class == LS_CLASS_SEND_RECV)
    return LS_STREAM_PP_FWD;
  return group > 0 && slot_of[group - 1] < G_N_ELEMENTS (of_slot) ? of_slot[slot_of[group - 1]]
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
      const Stream blank = { .id = op->op->stream, .first = i, .prefers = (uint8_t) preferred (op, slot_of) };
      g_array_append_val (streams, blank);
      s = &g_array_index (streams, Stream, streams->len - 1);
    }
    if (op->kind == LS_PROFILE_KERNEL)
      s->kernels += op->end - op->start;
  }
  return streams;
}

static int
busiest_first (gconstpointer a, gconstpointer b)
{
  const Stream *x = a, *y = b;
  LS_LARGER_FIRST (x->kernels, y->kernels);
  return LS_ORDER (x->first, y->first);
}

/* The busiest computes; the others get what they prefer, or what is free. */
static void
name_streams (LsProfileStep *step, GArray *streams)
{
  bool taken[LS_N_STREAMS] = { false };
  g_array_sort (streams, busiest_first);
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

/* Of two streams whose kernels overlap, the one that is less busy: it is behind the other in the list. */
static void
mark_beside (const LsProfileStep *step, GArray *streams)
{
  g_autoptr (GPtrArray) kernels = g_ptr_array_new ();
  for (guint i = 0; i < step->ops->len; i++)
    if (g_array_index (step->ops, LsProfileOp, i).kind == LS_PROFILE_KERNEL)
      g_ptr_array_add (kernels, &g_array_index (step->ops, LsProfileOp, i));
  g_ptr_array_sort (kernels, by_start);
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

static int
compare_intervals (const void *a, const void *b)
{
  return LS_ORDER (((const Interval *) a)->start, ((const Interval *) b)->start);
}

/* Interval: when some collective by our network ran, in order and apart. */
static GArray *
busy_intervals (const LsProfileStep *step)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Interval));
  for (guint i = 0; i < step->ops->len; i++) {
    const LsProfileOp *op = &g_array_index (step->ops, LsProfileOp, i);
    const Interval it = { op->start, op->end };
    if (op->kind == LS_PROFILE_COLLECTIVE && op->end > op->start)
      g_array_append_val (all, it);
  }
  g_array_sort (all, compare_intervals);
  guint n = 0;
  for (guint i = 0; i < all->len; i++) {
    const Interval it = g_array_index (all, Interval, i);
    Interval *last = n > 0 ? &g_array_index (all, Interval, n - 1) : NULL;
    if (last && it.start <= last->end)
      last->end = MAX (last->end, it.end);
    else
      g_array_index (all, Interval, n++) = it;
  }
  g_array_set_size (all, n);
  return all;
}

/* The first that ends later. */
static guint
first_after (const GArray *busy, int64_t at)
{
  guint low = 0, high = busy->len;
  while (low < high) {
    guint mid = low + (high - low) / 2;
    if (g_array_index (busy, Interval, mid).end <= at)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static void
find_beside (LsProfileStep *step)
{
  g_autoptr (GArray) busy = busy_intervals (step);
  for (guint i = 0; i < step->ops->len; i++) {
    LsProfileOp *op = &g_array_index (step->ops, LsProfileOp, i);
    if (op->kind != LS_PROFILE_KERNEL)
      continue;
    for (guint k = first_after (busy, op->start); k < busy->len; k++) {
      const Interval *it = &g_array_index (busy, Interval, k);
      if (it->start >= op->end)
        break;
      op->beside += MIN (it->end, op->end) - MAX (it->start, op->start);
    }
  }
}

LsProfileStep *
ls_profile_step_new (const LsKineto *k, const LsMeasuredStep *cut, const uint8_t *slot_of, bool as_measured)
{
  LsProfileStep *step = g_new0 (LsProfileStep, 1);
  step->profile = k;
  step->ops = g_array_new (FALSE, FALSE, sizeof (LsProfileOp));
  step->waits = g_array_new (FALSE, FALSE, sizeof (guint));
  step->syncs = g_array_new (FALSE, FALSE, sizeof (LsProfileSync));
  step->length = cut->end - cut->start;
  add_ops (step, cut, slot_of, as_measured);
  find_streams (step, slot_of);
  find_beside (step);
  ls_profile_find_waits (step, cut);
  return step;
}
