/* parallel/lower_pipe.c — a pipeline rank's program: the schedule's actions and
 * the p2p between them. 1F1B and interleaved 1F1B communicate by Megatron-LM's own recipes
 * (core/pipeline_parallel), below; all other schedules as lower_p2p.c says.
 *
 * Batched (batch_p2p_comm and batch_p2p_sync, the default): what is to be sent and
 * received between two iterations is one group; the host waits for it and then for
 * the whole device. 1F1B fuses "send forward, receive backward" and "send
 * backward, receive forward"; the interleaved schedule fuses all four after each
 * forward-backward pair. A receive for the next iteration is posted with the
 * sends of this one, so neighbours always post matching groups.
 *
 * Overlapped (overlap_p2p_comm, interleaved only): single sends and receives on
 * streams of their own; the compute stream waits for what it consumes; the host
 * never does. Deviation: warm-up and cool-down overlap too (as with
 * overlap_p2p_comm_warmup_flush). */
#include "parallel/lower_state.h"

typedef struct {
  Lower *l;
  uint32_t rank;     /* of the pipeline */
  LsSchedShape shape;
  const GArray *actions; /* LsAction */
  guint *last_backward;  /* [vpp] number of a chunk's last B or W */
  uint32_t n_warmup;
  GArray *instances;
  GArray *first_use; /* bool per chunk: has its first forward been issued */
} Pipe;

/* What one group carries. */
enum { SEND_F = 1, RECV_F = 2, SEND_B = 4, RECV_B = 8 };

static uint32_t
stage_of (const Pipe *p, uint32_t chunk)
{
  return stage_at (p->l, p->rank, chunk);
}

static bool
is_first_stage (const Pipe *p, uint32_t chunk)
{
  return stage_of (p, chunk) == 0;
}

static bool
is_last_stage (const Pipe *p, uint32_t chunk)
{
  return stage_of (p, chunk) == p->shape.pp * p->shape.vpp - 1;
}

static void
add_instance (Pipe *p, uint32_t segment, uint32_t mb, uint32_t chunk)
{
  LsInstance i = { segment, mb, (uint16_t) chunk, (uint16_t) stage_of (p, chunk) };
  g_array_append_val (p->instances, i);
}

/* --- p2p segments ------------------------------------------------------------- */

static uint16_t
build_group (Build *b, LsStream stream, uint32_t what, const char *name)
{
  const Lower *l = b->l;
  LsTransfer *t = ls_arena_new_array (l->plan->arena, LsTransfer, 4);
  uint16_t n = 0;
  /* Megatron's order: send previous, receive previous, send next, receive next. */
  if (what & SEND_B)
    t[n++] = (LsTransfer) { message_bytes (l), LS_SLOT_PREV, true };
  if (what & RECV_F)
    t[n++] = (LsTransfer) { message_bytes (l), LS_SLOT_PREV, false };
  if (what & SEND_F)
    t[n++] = (LsTransfer) { message_bytes (l), LS_SLOT_NEXT, true };
  if (what & RECV_B)
    t[n++] = (LsTransfer) { message_bytes (l), LS_SLOT_NEXT, false };
  LsOp op = op_blank (LS_OP_P2P, stream, LS_TAG_SYNC, name);
  op.host = LS_HOST_COMM;
  op.dtype = (uint8_t) l->shard.dtype;
  op.transfers = t;
  op.n_transfers = n;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  return build_op (b, op, &compute, 1);
}

static const char *
group_name (uint32_t what)
{
  bool f = what & (SEND_F | RECV_F), b = what & (SEND_B | RECV_B);
  return f && b ? "p2p forward + backward" : f ? "p2p forward" : "p2p backward";
}

static uint32_t
segment_group (Lower *l, uint32_t what)
{
  g_autofree char *name = g_strdup_printf ("p2p%s%s%s%s", what & SEND_F ? " send-forward" : "", what & RECV_F ? " recv-forward" : "",
                                           what & SEND_B ? " send-backward" : "", what & RECV_B ? " recv-backward" : "");
  uint32_t id = build_find (l, name);
  if (id != UINT32_MAX)
    return id;
  Build b;
  build_init (&b, l);
  uint16_t group = build_group (&b, LS_STREAM_PP_FWD, what, group_name (what));
  build_device_sync (&b);
  uint32_t n_received = (what & RECV_F ? 1u : 0u) + (what & RECV_B ? 1u : 0u);
  for (uint32_t i = 0; scatters (l) && i < n_received; i++)
    build_join (&b, build_coll (&b, LS_STREAM_TP, LS_SLOT_TP, COLL_ALL_GATHER, ls_boundary_bytes (l->model, &l->shard),
                                l->shard.dtype, LS_TAG_SYNC, "boundary all-gather"));
  build_join (&b, group);
  return build_finish (&b, name);
}

/* One transfer on a stream of its own; a receive records its event. */
static uint32_t
segment_async (Lower *l, uint32_t what)
{
  static const struct {
    uint32_t what;
    LsStream stream;
    uint16_t event;
    const char *name;
  } kinds[] = {
    { SEND_F, LS_STREAM_PP_FWD, LS_EVENT_NONE, "send forward" },
    { RECV_F, LS_STREAM_PP_FWD_RECV, EVENT_RECV_F, "recv forward" },
    { SEND_B, LS_STREAM_PP_BWD, LS_EVENT_NONE, "send backward" },
    { RECV_B, LS_STREAM_PP_BWD_RECV, EVENT_RECV_B, "recv backward" },
  };
  guint k = 0;
  while (kinds[k].what != what)
    k++;
  uint32_t id = build_find (l, kinds[k].name);
  if (id != UINT32_MAX)
    return id;
  Build b;
  build_init (&b, l);
  LsDep done = { LS_DEP_END, build_group (&b, kinds[k].stream, what, kinds[k].name) };
  if (kinds[k].event != LS_EVENT_NONE) {
    LsOp record = op_blank (LS_OP_RECORD, kinds[k].stream, LS_TAG_SYNC, "received");
    record.event = kinds[k].event;
    build_op (&b, record, &done, 1);
  }
  return build_finish (&b, kinds[k].name);
}

static uint32_t
segment_wait (Lower *l, uint16_t event)
{
  const char *name = event == EVENT_RECV_F ? "wait forward" : "wait backward";
  uint32_t id = build_find (l, name);
  if (id != UINT32_MAX)
    return id;
  Build b;
  build_init (&b, l);
  LsOp wait = op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, name);
  wait.event = event;
  build_op (&b, wait, NULL, 0);
  return build_finish (&b, name);
}

/* --- actions ------------------------------------------------------------------- */

static const LsAction *
action_at (const Pipe *p, guint i)
{
  return i < p->actions->len ? &g_array_index (p->actions, LsAction, i) : NULL;
}

static void
add_action (Pipe *p, const LsAction *a)
{
  Lower *l = p->l;
  const Chunk *c = chunk_at (l, p->rank, a->chunk);
  if (a->type == LS_ACTION_F) {
    gboolean *used = &g_array_index (p->first_use, gboolean, a->chunk);
    add_instance (p, segment_forward (l, c, p->rank, gathers_params_early (l) && !*used), a->mb, a->chunk);
    *used = TRUE;
    return;
  }
  bool is_last = p->last_backward[a->chunk] == (guint) (a - (const LsAction *) p->actions->data);
  add_instance (p, segment_backward (l, c, p->rank, (LsActionType) a->type, is_last), a->mb, a->chunk);
}

static void
add_group (Pipe *p, uint32_t what, const LsAction *about)
{
  if (what != 0)
    add_instance (p, segment_group (p->l, what), about->mb, about->chunk);
}

/* What the action produces for a neighbour, and what it consumes from one. */
static uint32_t
sends_after (const Pipe *p, const LsAction *a)
{
  if (a->type == LS_ACTION_F)
    return is_last_stage (p, a->chunk) ? 0 : SEND_F;
  return is_first_stage (p, a->chunk) ? 0 : SEND_B;
}

static uint32_t
receives_before (const Pipe *p, const LsAction *a)
{
  if (a->type == LS_ACTION_F)
    return is_first_stage (p, a->chunk) ? 0 : RECV_F;
  return is_last_stage (p, a->chunk) ? 0 : RECV_B;
}

/* --- 1F1B, batched --------------------------------------------------------------- */

/* A group stands between two actions: the sends of the first with the receives of
 * the second, but forwards and backwards only meet in the steady state. */
static void
pipe_1f1b (Pipe *p)
{
  const LsAction *first = action_at (p, 0);
  add_group (p, receives_before (p, first), first);
  for (guint i = 0; i < p->actions->len; i++) {
    const LsAction *a = action_at (p, i), *next = action_at (p, i + 1);
    add_action (p, a);
    uint32_t send = sends_after (p, a), receive = next ? receives_before (p, next) : 0;
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

static const LsAction *
nth (const Pipe *p, const GArray *ordinals, int64_t k)
{
  if (k < 0 || k >= (int64_t) ordinals->len)
    return NULL;
  return action_at (p, g_array_index (ordinals, guint, k));
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

static void
pipe_interleaved (Pipe *p)
{
  Ordinals o = { g_array_new (FALSE, FALSE, sizeof (guint)), g_array_new (FALSE, FALSE, sizeof (guint)) };
  for (guint i = 0; i < p->actions->len; i++)
    g_array_append_val (action_at (p, i)->type == LS_ACTION_F ? o.f : o.b, i);
  int64_t total = o.f->len, n_warmup = p->n_warmup, n_steady = total - n_warmup;
  bool is_last_rank = p->rank + 1 == p->shape.pp, is_all_warmup = n_steady == 0;

  add_group (p, receives_before (p, nth (p, o.f, 0)), nth (p, o.f, 0));
  for (int64_t k = 0; k < n_warmup; k++) {
    const LsAction *f = nth (p, o.f, k);
    add_action (p, f);
    uint32_t what = sends_after (p, f);
    if (k + 1 < total && receives_forward (p, &o, k, false))
      what |= RECV_F;
    if (k + 1 == n_warmup && !is_all_warmup && !is_last_rank)
      what |= RECV_B;
    add_group (p, what, f);
  }
  for (int64_t k = 0; k < n_steady; k++) {
    const LsAction *f = nth (p, o.f, k + n_warmup), *b = nth (p, o.b, k);
    add_action (p, f);
    add_action (p, b);
    uint32_t what = sends_after (p, f) | sends_after (p, b);
    if (k + 1 < n_steady && receives_forward (p, &o, k + n_warmup, true))
      what |= RECV_F;
    if (receives_backward (p, &o, k, true))
      what |= RECV_B;
    add_group (p, what, f);
  }
  if (is_all_warmup)
    add_group (p, receives_before (p, nth (p, o.b, 0)), nth (p, o.b, 0));
  for (int64_t k = n_steady; k < total; k++) {
    const LsAction *b = nth (p, o.b, k);
    add_action (p, b);
    uint32_t what = sends_after (p, b);
    if (receives_backward (p, &o, k, false))
      what |= RECV_B;
    add_group (p, what, b);
  }
  g_array_unref (o.f);
  g_array_unref (o.b);
}

/* --- overlapped -------------------------------------------------------------------- */

/* The receive for the next action of a direction is posted as soon as this one
 * has been issued. */
static void
pipe_overlapped (Pipe *p)
{
  const LsAction *next_of[2] = { NULL, NULL };
  for (guint i = 0; i < p->actions->len; i++) {
    const LsAction *a = action_at (p, i);
    bool is_f = a->type == LS_ACTION_F;
    if (next_of[is_f] != a && receives_before (p, a))
      add_instance (p, segment_async (p->l, receives_before (p, a)), a->mb, a->chunk);
    if (receives_before (p, a))
      add_instance (p, segment_wait (p->l, is_f ? EVENT_RECV_F : EVENT_RECV_B), a->mb, a->chunk);
    add_action (p, a);
    if (sends_after (p, a))
      add_instance (p, segment_async (p->l, sends_after (p, a)), a->mb, a->chunk);
    const LsAction *next = NULL;
    for (guint k = i + 1; k < p->actions->len && !next; k++)
      if (action_at (p, k)->type == a->type)
        next = action_at (p, k);
    next_of[is_f] = next;
    if (next && receives_before (p, next))
      add_instance (p, segment_async (p->l, receives_before (p, next)), next->mb, next->chunk);
  }
}

/* --- any order ----------------------------------------------------------------------- */

/* Posts from number `from` on that stand at this place; returns the number behind them. */
static guint
add_posts (Pipe *p, guint from, uint32_t before, bool is_beside)
{
  const GArray *posts = p->l->posts[p->rank];
  const Post *first = &g_array_index (posts, Post, from);
  bool is_alone = p->l->s->p2p == LS_P2P_OVERLAPPED;
  guint n = 0;
  while (from + n < posts->len && first[n].before == before && first[n].is_beside == is_beside)
    n++;
  if (n > 0 && !is_alone)
    add_instance (p, segment_posts (p->l, first, n), first->mb, first->chunk);
  for (guint i = 0; i < n; i++) {
    if (is_alone)
      add_instance (p, segment_post (p->l, &first[i]), first[i].mb, first[i].chunk);
    if (!first[i].is_send)
      add_instance (p, segment_received (p->l, &first[i], is_alone), first[i].mb, first[i].chunk);
  }
  return from + n;
}

/* Does the action consume what another rank sends? */
static bool
awaits (const Pipe *p, const LsAction *a)
{
  const LsLayout *l = &p->l->orders->layout;
  uint32_t stage = stage_of (p, a->chunk);
  bool is_forward = a->type == LS_ACTION_F;
  if (a->type == LS_ACTION_W || (is_forward ? stage == 0 : stage + 1 == l->n_stages))
    return false;
  return ls_layout_home (l, 0, is_forward ? stage - 1 : stage + 1).rank != p->rank;
}

static void
pipe_posted (Pipe *p)
{
  guint at = 0;
  for (guint i = 0; i <= p->actions->len; i++) {
    at = add_posts (p, at, i, false);
    at = add_posts (p, at, i, true);
    const LsAction *a = action_at (p, i);
    if (a && awaits (p, a))
      add_instance (p, segment_await (p->l, a->type != LS_ACTION_F), a->mb, a->chunk);
    if (a)
      add_action (p, a);
  }
}

/* --- the program --------------------------------------------------------------------- */

static void
pipe_actions (Pipe *p)
{
  if (p->shape.pp == 1)
    for (guint i = 0; i < p->actions->len; i++)
      add_action (p, action_at (p, i));
  else if (p->l->posts)
    pipe_posted (p);
  else if (p->l->s->p2p == LS_P2P_OVERLAPPED)
    pipe_overlapped (p);
  else if (p->shape.vpp > 1)
    pipe_interleaved (p);
  else
    pipe_1f1b (p);
}

static void
pipe_init (Pipe *p, Lower *l, uint32_t rank)
{
  *p = (Pipe) { .l = l, .rank = rank, .shape = { l->mesh.pp, l->s->vpp, l->n_micro_batches } };
  p->actions = l->orders->ranks[rank];
  p->first_use = g_array_new (FALSE, TRUE, sizeof (gboolean));
  p->instances = g_array_new (FALSE, FALSE, sizeof (LsInstance));
  g_array_set_size (p->first_use, l->s->vpp);
  p->last_backward = g_new (guint, l->s->vpp);
  for (guint i = 0; i < p->actions->len; i++) {
    const LsAction *a = action_at (p, i);
    if (a->type == LS_ACTION_B || a->type == LS_ACTION_W)
      p->last_backward[a->chunk] = i;
  }
  if (l->sched->n_warmup)
    p->n_warmup = l->sched->n_warmup (&p->shape, rank);
}

GArray *
pipe_instances (Lower *l, uint32_t pp_rank)
{
  Pipe p;
  pipe_init (&p, l, pp_rank);
  if (gathers_params_early (l))
    for (uint32_t c = 0; c < l->s->vpp; c++)
      add_instance (&p, segment_gather_params (l, pp_rank, c), 0, c);
  add_instance (&p, segment_step_begin (l, pp_rank), 0, 0);
  pipe_actions (&p);
  add_instance (&p, segment_step_end (l, pp_rank), 0, 0);

  g_array_unref (p.first_use);
  g_free (p.last_backward);
  return p.instances;
}
