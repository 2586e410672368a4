/* lower/pipeline/lower_megatron.c — 1F1B and interleaved 1F1B with Megatron-LM's p2p
 * (core/pipeline_parallel/schedules.py and p2p_communication.py).
 *
 * Batched (batch_p2p_comm and batch_p2p_sync, the default): what is to be sent and
 * received between two iterations is one group; the host waits for it and then for
 * the whole device. 1F1B fuses "send forward, receive backward" and "send
 * backward, receive forward"; the interleaved schedule fuses all four after each
 * forward-backward pair. A receive for the next iteration is posted with the
 * sends of this one, so neighbours always post matching groups.
 *
 * Overlapped (overlap_p2p_comm, interleaved only): single sends and receives on
 * streams of their own; the host never waits. In the steady state the compute stream waits for
 * what it consumes, only. In warm-up and cool-down it waits behind each pass until that pass's
 * send and the receive for the next one are over, unless overlap_p2p_comm_warmup_flush
 * (p2p_warmup_flush) has these overlap too.
 *
 *     rank r   F0 |s+r| F1 |s+r| F2 B0 F3 B1 .. B5 |s+r| B6 |s+r| ...      |s+r|: blocks
 *
 * Deviation: a send does not wait until the one before it in its direction has been waited for
 * by the compute stream. */
#include "lower/pipeline/lower_pipe.h"

/* --- p2p segments ------------------------------------------------------------- */

static const char *
group_name (uint32_t what)
{
  bool f = what & (SEND_F | RECV_F), b = what & (SEND_B | RECV_B);
  return f && b ? "p2p forward + backward" : f ? "p2p forward" : "p2p backward";
}

static char *
group_segment_name (const char *kind, uint32_t what)
{
  return g_strconcat (kind, what & SEND_F ? " send-forward" : "", what & RECV_F ? " recv-forward" : "",
                      what & SEND_B ? " send-backward" : "", what & RECV_B ? " recv-backward" : "", NULL);
}

/* What stands between two actions. A stage of a decoder that has an encoder on others sends two tensors, one
 * call after the other; 1F1B has no group with both neighbours. */
static uint32_t
segment_group (Pipe *p, uint32_t what, uint32_t stage)
{
  Lower *l = p->l;
  uint64_t bytes[2];
  uint32_t n = message_tensors (l, what & (SEND_F | RECV_B) ? stage : stage - 1, bytes);
  g_autofree char *name = group_segment_name (n > 1 ? "p2p of two" : "p2p", what);
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  for (uint32_t i = 0; i < n; i++)
    pipe_build_synced_group (&b, what, bytes[i], group_name (what));
  return build_finish (&b, name);
}

/* Single transfers, each on a stream of its own. */
static const struct {
  uint32_t what;
  LsStream stream;
  uint16_t event;
  const char *name;
} singles[] = {
  { SEND_F, LS_STREAM_PP_FWD, LS_EVENT_NONE, "send forward" },
  { RECV_F, LS_STREAM_PP_FWD_RECV, EVENT_RECV_F, "recv forward" },
  { SEND_B, LS_STREAM_PP_BWD, LS_EVENT_NONE, "send backward" },
  { RECV_B, LS_STREAM_PP_BWD_RECV, EVENT_RECV_B, "recv backward" },
};

/* One of them; a receive records its event. */
static uint32_t
segment_async (Lower *l, uint32_t what)
{
  guint k = 0;
  while (singles[k].what != what)
    k++;
  Build b;
  if (build_reuses (&b, l, singles[k].name))
    return b.segment;
  LsDep done
      = { LS_DEP_END, pipe_build_group (&b, singles[k].stream, what, message_bytes (l), singles[k].name) };
  if (singles[k].event != LS_EVENT_NONE) {
    build_event (&b, LS_OP_RECORD, singles[k].stream, "received", singles[k].event, &done);
  }
  return build_finish (&b, singles[k].name);
}

/* Several, for which the compute stream waits. */
static uint32_t
segment_blocking (Lower *l, uint32_t what)
{
  g_autofree char *name = group_segment_name ("blocking p2p", what);
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  for (guint k = 0; k < G_N_ELEMENTS (singles); k++)
    if (what & singles[k].what)
      build_join (
          &b, pipe_build_group (&b, singles[k].stream, singles[k].what, message_bytes (l), singles[k].name));
  return build_finish (&b, name);
}

static uint32_t
segment_wait (Lower *l, uint16_t event)
{
  const char *name = event == EVENT_RECV_F ? "wait forward" : "wait backward";
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  build_event (&b, LS_OP_WAIT, LS_STREAM_COMPUTE, name, event, NULL);
  return build_finish (&b, name);
}

/* --- what passes between actions --------------------------------------------------- */

static void
add_group (Pipe *p, uint32_t what, const LsAction *about)
{
  if (what != 0)
    pipe_add (p, segment_group (p, what, stage_at (p->l, p->rank, about->chunk)), about->mb, about->chunk);
}

/* --- 1F1B, batched --------------------------------------------------------------- */

/* A group stands between two actions: the sends of the first with the receives of
 * the second, but forwards and backwards only meet in the steady state. */
static void
pipe_1f1b (Pipe *p)
{
  const LsAction *first = pipe_action (p, 0);
  add_group (p, pipe_receives_before (p, first), first);
  for (guint i = 0; i < p->actions->len; i++) {
    const LsAction *a = pipe_action (p, i), *next = pipe_action (p, i + 1);
    pipe_add_action (p, a);
    uint32_t send = pipe_sends_after (p, a), receive = next ? pipe_receives_before (p, next) : 0;
    bool is_fused = next && next->type != a->type && i >= p->n_warmup;
    add_group (p, is_fused ? send | receive : send, a);
    add_group (p, is_fused ? 0 : receive, next);
  }
}

/* --- interleaved ------------------------------------------------------------------- */

/* The interleaved schedule counts forwards and backwards of a rank apart: k-th forward, k-th backward. Arrays
 * of two: of backwards, of forwards. */
typedef struct {
  Pipe *p;
  GArray *actions[2];   /* guint: index of the k-th                                      */
  guint n_posted[2];    /* receives that are not batched, in the order of their consumers */
  gboolean *is_awaited; /* [actions] what it consumes is still on its way                 */
} Interleaved;

static Interleaved
interleaved_new (Pipe *p)
{
  Interleaved v = { .p = p, .is_awaited = g_new0 (gboolean, p->actions->len) };
  for (int i = 0; i < 2; i++)
    v.actions[i] = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < p->actions->len; i++)
    g_array_append_val (v.actions[pipe_action (p, i)->type == LS_ACTION_F], i);
  return v;
}

static void
interleaved_clear (Interleaved *v)
{
  g_array_unref (v->actions[0]);
  g_array_unref (v->actions[1]);
  g_free (v->is_awaited);
}

/* NULL: there is none. */
static const LsAction *
nth (const Interleaved *v, bool is_forward, int64_t k)
{
  const GArray *of = v->actions[is_forward];
  return k < 0 || k >= (int64_t) of->len ? NULL : pipe_action (v->p, g_array_index (of, guint, k));
}

/* What the neighbour makes next to my forward, or backward, number k, if it reaches me; else 0. The first
 * rank receives forwards from the last one, which runs pp - 1 iterations after it, and nothing from its last
 * chunk; the last rank receives backwards from the first. */
static uint32_t
receives (const Interleaved *v, bool is_forward, int64_t k, bool is_steady)
{
  const LsSchedShape *shape = &v->p->shape;
  const LsAction *next = nth (v, is_forward, k + 1),
                 *sent = nth (v, is_forward, k - (int64_t) (shape->pp - 1));
  uint32_t last = shape->vpp - 1;
  bool does = next != NULL;
  if (v->p->rank == (is_forward ? 0 : shape->pp - 1))
    does = is_steady ? sent && sent->chunk != (is_forward ? last : 0) && (next || !is_forward)
                     : next && next->chunk != (is_forward ? 0 : last);
  return !does ? 0 : is_forward ? RECV_F : RECV_B;
}

/* The action that consumes the receive which is posted next. */
static const LsAction *
next_consumer (Interleaved *v, bool is_forward)
{
  const LsAction *a = NULL;
  while (!a || !pipe_receives_before (v->p, a))
    a = nth (v, is_forward, v->n_posted[is_forward]++);
  return a;
}

static void
post_send (Interleaved *v, const LsAction *a)
{
  if (pipe_sends_after (v->p, a))
    pipe_add (v->p, segment_async (v->p->l, pipe_sends_after (v->p, a)), a->mb, a->chunk);
}

static void
post_receive (Interleaved *v, uint32_t what)
{
  const LsAction *a = next_consumer (v, what == RECV_F);
  pipe_add (v->p, segment_async (v->p->l, what), a->mb, a->chunk);
  v->is_awaited[a - pipe_action (v->p, 0)] = TRUE;
}

static void
await_received (Interleaved *v, const LsAction *a)
{
  if (v->is_awaited[a - pipe_action (v->p, 0)])
    pipe_add (v->p, segment_wait (v->p->l, a->type == LS_ACTION_F ? EVENT_RECV_F : EVENT_RECV_B), a->mb,
              a->chunk);
}

static void
run_action (Interleaved *v, const LsAction *a)
{
  await_received (v, a);
  pipe_add_action (v->p, a);
}

static bool
is_overlapped (const Pipe *p)
{
  return p->l->s->mp.p2p == LS_P2P_OVERLAPPED;
}

/* What stands between two actions of warm-up or cool-down. Overlapped, it has at most one receive, and the
 * compute stream waits for all of it. */
static void
block_on (Interleaved *v, uint32_t what, const LsAction *about)
{
  if (!is_overlapped (v->p)) {
    add_group (v->p, what, about);
    return;
  }
  if (what != 0)
    pipe_add (v->p, segment_blocking (v->p->l, what), about->mb, about->chunk);
  if (what & (RECV_F | RECV_B))
    next_consumer (v, what & RECV_F);
}

static void
interleaved_warmup (Interleaved *v, int64_t n_warmup, int64_t total)
{
  Pipe *p = v->p;
  const LsAction *f = nth (v, true, 0), *b = nth (v, false, 0);
  uint32_t first_backward = pipe_receives_before (p, b);
  bool has_steady = n_warmup < total;
  block_on (v, pipe_receives_before (p, f), f);
  for (int64_t k = 0; k < n_warmup; k++) {
    f = nth (v, true, k);
    run_action (v, f);
    uint32_t what = pipe_sends_after (p, f) | receives (v, true, k, false);
    bool is_last = k + 1 == n_warmup && has_steady;
    block_on (v, is_last && !is_overlapped (p) ? what | first_backward : what, f);
  }
  if (!has_steady)
    block_on (v, first_backward, b);
  else if (first_backward && is_overlapped (p))
    post_receive (v, RECV_B);
}

static Pair
open_awaited (Interleaved *v, const LsAction *f, const LsAction *b)
{
  await_received (v, f);
  await_received (v, b);
  return pipe_open_pair (v->p, f, b);
}

/* receive_f, receive_b: or 0. Batched messages wait for all of a pair. */
static void
steady_batched (Pipe *p, const LsAction *f, const LsAction *b, uint32_t receive_f, uint32_t receive_b)
{
  if (f->is_paired)
    pipe_add_pair (p, f, b);
  else {
    pipe_add_action (p, f);
    pipe_add_action (p, b);
  }
  add_group (p, pipe_sends_after (p, f) | pipe_sends_after (p, b) | receive_f | receive_b, f);
}

static void
steady_overlapped (Interleaved *v, const LsAction *f, const LsAction *b, uint32_t receive_f,
                   uint32_t receive_b)
{
  Pair pair;
  if (f->is_paired)
    pair = open_awaited (v, f, b);
  else
    run_action (v, f);
  post_send (v, f);
  if (receive_f)
    post_receive (v, receive_f);
  if (!f->is_paired)
    run_action (v, b);
  post_send (v, b);
  if (receive_b)
    post_receive (v, receive_b);
  if (f->is_paired)
    pipe_close_pair (v->p, &pair);
}

static void
pipe_interleaved (Pipe *p)
{
  Interleaved v = interleaved_new (p);
  int64_t total = v.actions[true]->len, n_warmup = p->n_warmup, n_steady = total - n_warmup;
  interleaved_warmup (&v, n_warmup, total);
  for (int64_t k = 0; k < n_steady; k++) {
    const LsAction *f = nth (&v, true, k + n_warmup), *b = nth (&v, false, k);
    uint32_t receive_f = receives (&v, true, k + n_warmup, true), receive_b = receives (&v, false, k, true);
    if (is_overlapped (p))
      steady_overlapped (&v, f, b, receive_f, receive_b);
    else
      steady_batched (p, f, b, receive_f, receive_b);
  }
  for (int64_t k = n_steady; k < total; k++) {
    const LsAction *b = nth (&v, false, k);
    run_action (&v, b);
    block_on (&v, pipe_sends_after (p, b) | receives (&v, false, k, false), b);
  }
  interleaved_clear (&v);
}

/* Before the first action of a direction. */
static void
post_first_receive (Interleaved *v, const guint n_of[2], const LsAction *a)
{
  if (n_of[a->type == LS_ACTION_F] == 0 && pipe_receives_before (v->p, a))
    post_receive (v, pipe_receives_before (v->p, a));
}

/* Its send, and the receive for the next action of its direction. */
static void
post_behind (Interleaved *v, guint n_of[2], const LsAction *a)
{
  bool is_f = a->type == LS_ACTION_F;
  post_send (v, a);
  const LsAction *next = nth (v, is_f, ++n_of[is_f]);
  if (next && pipe_receives_before (v->p, next))
    post_receive (v, pipe_receives_before (v->p, next));
}

static void
pair_throughout (Interleaved *v, guint n_of[2], const LsAction *f, const LsAction *b)
{
  post_first_receive (v, n_of, f);
  post_first_receive (v, n_of, b);
  Pair pair = open_awaited (v, f, b);
  post_behind (v, n_of, f);
  post_behind (v, n_of, b);
  pipe_close_pair (v->p, &pair);
}

/* With overlap_p2p_comm_warmup_flush: the receive for the next action of a direction is
 * posted as soon as this one has been issued. */
static void
pipe_overlapped_throughout (Pipe *p)
{
  Interleaved v = interleaved_new (p);
  guint n_of[2] = { 0, 0 };
  for (guint i = 0; i < p->actions->len; i++) {
    const LsAction *a = pipe_action (p, i);
    if (a->is_paired) {
      pair_throughout (&v, n_of, a, pipe_action (p, ++i));
      continue;
    }
    post_first_receive (&v, n_of, a);
    run_action (&v, a);
    post_behind (&v, n_of, a);
  }
  interleaved_clear (&v);
}

void
pipe_megatron (Pipe *p)
{
  if (is_overlapped (p) && p->l->s->mp.p2p_warmup_flush)
    pipe_overlapped_throughout (p);
  else if (is_overlapped (p) || p->shape.vpp > 1)
    pipe_interleaved (p);
  else
    pipe_1f1b (p);
}
