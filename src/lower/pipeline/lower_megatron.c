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
    if (is_fused)
      add_group (p, send | receive, a);
    else {
      add_group (p, send, a);
      if (next)
        add_group (p, receive, next);
    }
  }
}

/* --- interleaved, batched ---------------------------------------------------------- */

/* The interleaved schedule counts forwards and backwards of a rank apart: k-th
 * forward, k-th backward. */
typedef struct {
  GArray *f, *b; /* guint: index of the action */
} Ordinals;

static Ordinals
ordinals_new (const Pipe *p)
{
  Ordinals o = { g_array_new (FALSE, FALSE, sizeof (guint)), g_array_new (FALSE, FALSE, sizeof (guint)) };
  for (guint i = 0; i < p->actions->len; i++)
    g_array_append_val (pipe_action (p, i)->type == LS_ACTION_F ? o.f : o.b, i);
  return o;
}

static void
ordinals_clear (Ordinals *o)
{
  g_array_unref (o->f);
  g_array_unref (o->b);
}

static const LsAction *
nth (const Pipe *p, const GArray *ordinals, int64_t k)
{
  if (k < 0 || k >= (int64_t) ordinals->len)
    return NULL;
  return pipe_action (p, g_array_index (ordinals, guint, k));
}

/* Does the forward that the previous rank makes beside my forward number k reach
 * me? The first rank receives what the last one sends, which runs pp - 1
 * iterations behind it, and nothing from its last chunk. */
static bool
receives_forward (const Pipe *p, const Ordinals *o, int64_t k, bool is_steady)
{
  const LsAction *next;
  if (p->rank > 0) {
    next = nth (p, o->f, k + 1);
    return next != NULL;
  }
  if (!is_steady) {
    next = nth (p, o->f, k + 1);
    return next && next->chunk > 0;
  }
  const LsAction *sent = nth (p, o->f, k - (int64_t) (p->shape.pp - 1));
  return sent && sent->chunk + 1u < p->shape.vpp && nth (p, o->f, k + 1);
}

static bool
receives_backward (const Pipe *p, const Ordinals *o, int64_t k, bool is_steady)
{
  const LsAction *next;
  if (p->rank + 1 < p->shape.pp) {
    next = nth (p, o->b, k + 1);
    return next != NULL;
  }
  if (!is_steady) {
    next = nth (p, o->b, k + 1);
    return next && next->chunk + 1u < p->shape.vpp;
  }
  const LsAction *sent = nth (p, o->b, k - (int64_t) (p->shape.pp - 1));
  return sent && sent->chunk > 0;
}

/* Batched messages wait for all of a pair. */
static void
add_both (Pipe *p, const LsAction *f, const LsAction *b)
{
  if (f->is_paired) {
    pipe_add_pair (p, f, b);
    return;
  }
  pipe_add_action (p, f);
  pipe_add_action (p, b);
}

static void
pipe_interleaved (Pipe *p)
{
  Ordinals o = ordinals_new (p);
  int64_t total = o.f->len, n_warmup = p->n_warmup, n_steady = total - n_warmup;
  bool is_last_rank = p->rank + 1 == p->shape.pp, is_all_warmup = n_steady == 0;

  add_group (p, pipe_receives_before (p, nth (p, o.f, 0)), nth (p, o.f, 0));
  for (int64_t k = 0; k < n_warmup; k++) {
    const LsAction *f = nth (p, o.f, k);
    pipe_add_action (p, f);
    uint32_t what = pipe_sends_after (p, f);
    if (k + 1 < total && receives_forward (p, &o, k, false))
      what |= RECV_F;
    if (k + 1 == n_warmup && !is_all_warmup && !is_last_rank)
      what |= RECV_B;
    add_group (p, what, f);
  }
  for (int64_t k = 0; k < n_steady; k++) {
    const LsAction *f = nth (p, o.f, k + n_warmup), *b = nth (p, o.b, k);
    add_both (p, f, b);
    uint32_t what = pipe_sends_after (p, f) | pipe_sends_after (p, b);
    if (k + 1 < n_steady && receives_forward (p, &o, k + n_warmup, true))
      what |= RECV_F;
    if (receives_backward (p, &o, k, true))
      what |= RECV_B;
    add_group (p, what, f);
  }
  if (is_all_warmup)
    add_group (p, pipe_receives_before (p, nth (p, o.b, 0)), nth (p, o.b, 0));
  for (int64_t k = n_steady; k < total; k++) {
    const LsAction *b = nth (p, o.b, k);
    pipe_add_action (p, b);
    uint32_t what = pipe_sends_after (p, b);
    if (receives_backward (p, &o, k, false))
      what |= RECV_B;
    add_group (p, what, b);
  }
  ordinals_clear (&o);
}
/* --- interleaved, overlapped -------------------------------------------------------- */

/* Receives are posted in the order in which they are consumed. */
typedef struct {
  Pipe *p;
  Ordinals o;
  guint n_posted[2];    /* receives; of forwards, of backwards            */
  gboolean *is_awaited; /* [actions] what it consumes is still on its way */
} Overlapped;

/* The action that consumes the receive which is posted next. */
static const LsAction *
next_consumer (Overlapped *v, bool is_forward)
{
  const GArray *ordinals = is_forward ? v->o.f : v->o.b;
  const LsAction *a = NULL;
  while (!a || !pipe_receives_before (v->p, a))
    a = nth (v->p, ordinals, v->n_posted[is_forward]++);
  return a;
}

static void
post_send (Overlapped *v, const LsAction *a)
{
  if (pipe_sends_after (v->p, a))
    pipe_add (v->p, segment_async (v->p->l, pipe_sends_after (v->p, a)), a->mb, a->chunk);
}

static void
post_receive (Overlapped *v, uint32_t what)
{
  const LsAction *a = next_consumer (v, what == RECV_F);
  pipe_add (v->p, segment_async (v->p->l, what), a->mb, a->chunk);
  v->is_awaited[a - pipe_action (v->p, 0)] = TRUE;
}

static void
await_received (Overlapped *v, const LsAction *a)
{
  if (v->is_awaited[a - pipe_action (v->p, 0)])
    pipe_add (v->p, segment_wait (v->p->l, a->type == LS_ACTION_F ? EVENT_RECV_F : EVENT_RECV_B), a->mb,
              a->chunk);
}

static void
run_action (Overlapped *v, const LsAction *a)
{
  await_received (v, a);
  pipe_add_action (v->p, a);
}

/* The compute stream waits for both. */
static void
block_on (Overlapped *v, uint32_t send, uint32_t receive, const LsAction *about)
{
  if ((send | receive) != 0)
    pipe_add (v->p, segment_blocking (v->p->l, send | receive), about->mb, about->chunk);
  if (receive)
    next_consumer (v, receive == RECV_F);
}

static void
overlapped_warmup (Overlapped *v, int64_t n_warmup, int64_t total)
{
  Pipe *p = v->p;
  block_on (v, 0, pipe_receives_before (p, nth (p, v->o.f, 0)), nth (p, v->o.f, 0));
  for (int64_t k = 0; k < n_warmup; k++) {
    const LsAction *f = nth (p, v->o.f, k);
    run_action (v, f);
    block_on (v, pipe_sends_after (p, f), k + 1 < total && receives_forward (p, &v->o, k, false) ? RECV_F : 0,
              f);
  }
  if (n_warmup == total)
    block_on (v, 0, pipe_receives_before (p, nth (p, v->o.b, 0)), nth (p, v->o.b, 0));
  else if (pipe_receives_before (p, nth (p, v->o.b, 0)))
    post_receive (v, RECV_B);
}

static Pair
open_awaited (Overlapped *v, const LsAction *f, const LsAction *b)
{
  await_received (v, f);
  await_received (v, b);
  return pipe_open_pair (v->p, f, b);
}

static void
overlapped_steady (Overlapped *v, int64_t n_warmup, int64_t n_steady)
{
  Pipe *p = v->p;
  for (int64_t k = 0; k < n_steady; k++) {
    const LsAction *f = nth (p, v->o.f, k + n_warmup), *b = nth (p, v->o.b, k);
    bool is_paired = f->is_paired;
    Pair pair;
    if (is_paired)
      pair = open_awaited (v, f, b);
    else
      run_action (v, f);
    post_send (v, f);
    if (k + 1 < n_steady && receives_forward (p, &v->o, k + n_warmup, true))
      post_receive (v, RECV_F);
    if (!is_paired)
      run_action (v, b);
    post_send (v, b);
    if (receives_backward (p, &v->o, k, true))
      post_receive (v, RECV_B);
    if (is_paired)
      pipe_close_pair (p, &pair);
  }
}

static void
pipe_interleaved_overlapped (Pipe *p)
{
  Overlapped v = { p, ordinals_new (p), { 0, 0 }, g_new0 (gboolean, p->actions->len) };
  int64_t total = v.o.f->len, n_warmup = p->n_warmup;
  overlapped_warmup (&v, n_warmup, total);
  overlapped_steady (&v, n_warmup, total - n_warmup);
  for (int64_t k = total - n_warmup; k < total; k++) {
    const LsAction *b = nth (p, v.o.b, k);
    run_action (&v, b);
    block_on (&v, pipe_sends_after (p, b), receives_backward (p, &v.o, k, false) ? RECV_B : 0, b);
  }
  ordinals_clear (&v.o);
  g_free (v.is_awaited);
}

/* Before the first action of a direction. */
static void
post_first_receive (Overlapped *v, const guint n_of[2], const LsAction *a)
{
  if (n_of[a->type == LS_ACTION_F] == 0 && pipe_receives_before (v->p, a))
    post_receive (v, pipe_receives_before (v->p, a));
}

/* Its send, and the receive for the next action of its direction. */
static void
post_behind (Overlapped *v, guint n_of[2], const LsAction *a)
{
  bool is_f = a->type == LS_ACTION_F;
  post_send (v, a);
  const LsAction *next = nth (v->p, is_f ? v->o.f : v->o.b, ++n_of[is_f]);
  if (next && pipe_receives_before (v->p, next))
    post_receive (v, pipe_receives_before (v->p, next));
}

static void
pair_throughout (Overlapped *v, guint n_of[2], const LsAction *f, const LsAction *b)
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
  Overlapped v = { p, ordinals_new (p), { 0, 0 }, g_new0 (gboolean, p->actions->len) };
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
  ordinals_clear (&v.o);
  g_free (v.is_awaited);
}

void
pipe_megatron (Pipe *p)
{
  bool is_overlapped = p->l->s->mp.p2p == LS_P2P_OVERLAPPED;
  if (is_overlapped && p->l->s->mp.p2p_warmup_flush)
    pipe_overlapped_throughout (p);
  else if (is_overlapped)
    pipe_interleaved_overlapped (p);
  else if (p->shape.vpp > 1)
    pipe_interleaved (p);
  else
    pipe_1f1b (p);
}
