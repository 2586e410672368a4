/* lower/pipeline/lower_pipe.c — a pipeline rank's program: the schedule's actions and
 * the p2p between them. 1F1B and interleaved 1F1B communicate by Megatron-LM's own recipes
 * (lower_megatron.c) or DeepSpeed's (lower_pipe.c), PipeDream in the background
 * (lower_pipe.c), all other schedules as lower_p2p.c says.
 *
 * A pair (DualPipe's forward with a backward) whose experts exchange tokens runs side by side
 * (lower_pipe.c). Any other is its forward, then its backward: kernels of both run one after the
 * other on the compute stream. Nothing stands between the two: what the forward sends moves while
 * the backward computes, what the backward needs arrived while the forward did, and the host waits
 * for neither.
 *
 * Where a step flushes its pipeline several times (pipeline_batch), the same actions come behind each other,
 * each time as if they were a step. A receive stands behind the same flush as its send, and neighbours pass
 * their flushes in turn: what matches in a step matches here.
 *
 * Deviation: tensor-parallel collectives of one do not hide behind kernels of the other. */
#include "lower/pipeline/lower_pipe.h"

#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"
#include "lower/lower_build.h"

/* An action of a schedule as instances in the program of a pipeline
 * rank: the pass itself, and what data parallelism and post-validation put around it. */

void
pipe_add (Pipe *p, uint32_t segment, uint32_t mb, uint32_t chunk)
{
  LsInstance i = { segment, mb, (uint16_t) chunk, (uint16_t) stage_at (p->l, p->rank, chunk) };
  g_array_append_val (p->instances, i);
}

const LsAction *
pipe_action (const Pipe *p, guint i)
{
  return i < p->actions->len ? &g_array_index (p->actions, LsAction, i) : NULL;
}

/* Post-validation: before the first backward. */
static void
check_norm (Pipe *p)
{
  uint32_t check = p->has_backward ? UINT32_MAX : segment_check_norm (p->l, p->rank);
  if (check != UINT32_MAX)
    pipe_add (p, check, 0, 0);
  p->has_backward = true;
}

/* For the micro-batch that needs the parameters first. */
static void
pipe_add_gather (Pipe *p, uint32_t segment, uint32_t chunk)
{
  const GArray *actions = p->l->orders->ranks[p->rank];
  pipe_add (p, segment, g_array_index (actions, LsAction, p->turns[chunk].first[TURN_FORWARD]).mb, chunk);
}

static void
gather_between (Pipe *p, guint number)
{
  for (uint32_t c = 0; c < p->l->n_chunks; c++)
    if (p->dp_turns[c].gather_before == number)
      pipe_add_gather (p, segment_by (p->l, p->l->backend->gather_chunk, "gather parameters", p->rank, c), c);
}

static void
reduce_between (Pipe *p, guint number)
{
  for (uint32_t c = 0; c < p->l->n_chunks; c++)
    if (p->dp_turns[c].reduce_after == number)
      pipe_add (p, segment_by (p->l, p->l->backend->reduce_chunk, "reduce gradients", p->rank, c), 0, c);
}

uint32_t
pipe_sends_after (const Pipe *p, const LsAction *a)
{
  uint32_t stage = stage_at (p->l, p->rank, a->chunk);
  if (a->type == LS_ACTION_F)
    return stage == p->l->n_stages - 1 ? 0 : SEND_F;
  return stage == 0 ? 0 : SEND_B;
}

uint32_t
pipe_receives_before (const Pipe *p, const LsAction *a)
{
  uint32_t stage = stage_at (p->l, p->rank, a->chunk);
  if (a->type == LS_ACTION_F)
    return stage == 0 ? 0 : RECV_F;
  return stage == p->l->n_stages - 1 ? 0 : RECV_B;
}

void
pipe_build_synced_group (Build *b, uint32_t what, uint64_t bytes, const char *name)
{
  const Lower *l = b->l;
  uint16_t group
      = pipe_build_group (b, LS_STREAM_PP_FWD, what, bytes / (scatters (l) ? l->mesh.tp : 1), name);
  build_device_sync (b);
  uint32_t n_received = (what & RECV_F ? 1u : 0u) + (what & RECV_B ? 1u : 0u);
  for (uint32_t i = 0; scatters (l) && i < n_received; i++)
    build_coll_joined (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER, bytes, l->shard.dtype, LS_TAG_SYNC,
                       "boundary all-gather");
  build_join (b, group);
}

static guint
number_of (const Pipe *p, const LsAction *a)
{
  return p->first + (guint) (a - (const LsAction *) p->actions->data);
}

/* Pipes both ways have micro-batches of their own. */
static uint32_t
documents_of (const Pipe *p, const LsAction *a)
{
  const Lower *l = p->l;
  const LsLayout *layout = &l->orders->layout;
  if (!l->packing || !l->packing->number)
    return 0;
  uint32_t pipe = ls_layout_stage (layout, p->rank, a->chunk).pipe;
  size_t mb = (size_t) pipe * layout->n_micro_batches + a->mb;
  return l->packing->number[(size_t) l->dp_rank * l->n_micro_batches + mb] + 1;
}

static int
turn_of (uint8_t type)
{
  return type == LS_ACTION_F ? TURN_FORWARD : type == LS_ACTION_I ? TURN_INPUT : TURN_WEIGHTS;
}

static DpPass
pipe_open_action (Pipe *p, const LsAction *a)
{
  if (a->type != LS_ACTION_F)
    check_norm (p);
  guint number = number_of (p, a);
  const Turns *turns = &p->turns[a->chunk];
  bool is_alone = !ls_sched_is_flushed (p->l->sched)
      && a->type != LS_ACTION_F; /* each micro-batch has an update of its own */
  int turn = turn_of (a->type);
  gather_between (p, number);
  return (DpPass) {
    .c = chunk_at (p->l, p->rank, a->chunk),
    .pp_rank = p->rank,
    .type = (LsActionType) a->type,
    .is_first = number == turns->first[turn] || is_alone,
    .is_last = number == turns->last[turn] || is_alone,
    .documents = documents_of (p, a),
  };
}

void
pipe_add_action (Pipe *p, const LsAction *a)
{
  DpPass pass = pipe_open_action (p, a);
  pipe_add (p, segment_pass (p->l, &pass), a->mb, a->chunk);
  reduce_between (p, number_of (p, a));
}

/* A forward and a backward side by side: pieces of the two alternate
 * (lower/layers/lower_layers.h has the order and the reason). */

/* One of the two. */
typedef struct {
  Pipe *p;
  const LsAction *action;
  const GArray *pieces;
  guint next;
} Lane;

static Lane
lane_of (Pipe *p, const LsAction *a)
{
  DpPass pass = pipe_open_action (p, a);
  return (Lane) { p, a, segment_pieces (p->l, &pass), 0 };
}

static bool
is_next (const Lane *x, PieceKind kind)
{
  return x->next < x->pieces->len && g_array_index (x->pieces, Piece, x->next).kind == kind;
}

static void
add_next (Lane *x)
{
  pipe_add (x->p, g_array_index (x->pieces, Piece, x->next++).segment, x->action->mb, x->action->chunk);
}

static void
add_if (Lane *x, PieceKind kind)
{
  if (is_next (x, kind))
    add_next (x);
}

/* But for weight gradients at the end. */
static void
add_rest (Lane *x)
{
  while (x->next < x->pieces->len && !(is_next (x, PIECE_WEIGHTS) && x->next + 1 == x->pieces->len))
    add_next (x);
}

static void
alternate (Lane *f, Lane *b)
{
  add_if (b, PIECE_COMPUTE);
  while (is_next (b, PIECE_EXCHANGE) && f->next + 1 < f->pieces->len) {
    add_next (b);
    add_if (b, PIECE_WEIGHTS);
    add_if (f, PIECE_COMPUTE);
    add_if (b, PIECE_COMPUTE);
    add_if (f, PIECE_EXCHANGE);
  }
  add_rest (b);
  add_rest (f);
}

Pair
pipe_open_pair (Pipe *p, const LsAction *first, const LsAction *second)
{
  bool is_forward = first->type == LS_ACTION_F;
  Lane f = lane_of (p, is_forward ? first : second), b = lane_of (p, is_forward ? second : first);
  alternate (&f, &b);
  return (Pair) { f.action, b.action, b.pieces, b.next };
}

void
pipe_close_pair (Pipe *p, Pair *pair)
{
  for (; pair->first < pair->rest->len; pair->first++)
    pipe_add (p, g_array_index (pair->rest, Piece, pair->first).segment, pair->backward->mb,
              pair->backward->chunk);
  reduce_between (p, number_of (p, pair->forward));
  reduce_between (p, number_of (p, pair->backward));
}

void
pipe_add_pair (Pipe *p, const LsAction *first, const LsAction *second)
{
  Pair pair = pipe_open_pair (p, first, second);
  pipe_close_pair (p, &pair);
}

/* Parameters that are there several times because of the schedule.
 *
 * Pipes both ways (DualPipe, Chimera). Each of K pipes has a replica of the model and runs a
 * K-th of the micro-batches, so a rank holds K stages, and a stage is on K ranks, all of which
 * hold the same K stages (plan/mesh.h, slot pipes). A rank has K times the parameters,
 * gradients and optimizer states of one stage, and the gradients of its stages, each of one
 * pipe's micro-batches, must be summed over these ranks.
 *
 * That is done at the end of the step, stage by stage, behind the sum over dp, which may
 * overlap the backward: sums commute. With a distributed optimizer only the part that a rank
 * owns is summed. Deviation: Chimera's eager reduction of stages that are done early is not here,
 * and its paper sums over pipes and dp in one collective.
 *
 * Versions (PipeDream): rank r of p keeps p - r versions of its weights, as each backward must
 * see those of its forward; nothing else is there more than once. */

/* Elements of a chunk whose gradients this rank owns. */
static uint64_t
n_owned (const Lower *l, const Chunk *c)
{
  const uint64_t n[2] = { c->n_params - c->n_expert, c->n_expert };
  uint64_t owned = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++)
    owned += dp_part (n[is_expert], dp_n_parts (l, is_expert, DP_CUT_OPTIMIZER));
  return owned;
}

static void
reduce_stage (Build *b, const Chunk *c)
{
  const Lower *l = b->l;
  build_coll_joined (b, LS_STREAM_GLOBAL, LS_SLOT_PIPES, LS_COLL_ALL_REDUCE,
                     dp_grad_bytes (l, n_owned (l, c)), l->shard.grad_dtype, LS_TAG_SYNC,
                     "pipes grad all-reduce");
}

void
reduce_pipes (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  for (uint32_t stage = 0; has_pipes (l) && stage < l->n_stages; stage++)
    for (uint32_t c = 0; c < l->n_chunks; c++)
      if (stage_at (l, pp_rank, c) == stage)
        reduce_stage (b, chunk_at (l, pp_rank, c));
}

/* PipeDream's program: 1F1B without a flush, with weight stashing.
 *
 * Stage s of p keeps w = p - 1 - s micro-batches ahead of the one whose backward it runs, for
 * ever: forwards of the next step fill what a flush would leave idle. So the first step begins
 * with what no other has, w forwards, and a step is
 *
 *     for k = 0 .. m - 1:   F (k + w, modulo m)   B (k)   update of the weights
 *
 * The backward runs with the weights of its forward: of 16-bit weights there are w + 1 = p - s
 * versions; gradients and the optimizer's state are there once. With data parallelism the
 * gradients of each micro-batch are reduced before its update. There is no norm over stages.
 *
 * p2p is in the background, as PipeDream's helper threads do it: a send follows its pass, a
 * forward's receive is posted behind the forward before it, a backward's before the forward
 * beside it, each on the stream of its channel, and the compute stream waits for what it
 * consumes. Ranks then send and receive the same number of messages in each step: rank s has
 * sent w of them ahead, which is w - 1 forwards of rank s + 1 and its first receive.
 *
 * Deviations: versions are switched by pointer; the code of the paper copies them. The optimizer
 * is Adam, as everywhere here.
 *
 * Reference: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training,
 * SOSP 2019. */

static bool
has_prev (const Pipe *p)
{
  return p->rank > 0;
}

static bool
has_next (const Pipe *p)
{
  return p->rank + 1 < p->shape.pp;
}

static void
post (Pipe *p, bool is_send, bool is_next, bool is_gradient, uint32_t mb)
{
  Post what = { .is_send = is_send, .is_next = is_next, .is_gradient = is_gradient, .mb = mb };
  if (is_next ? has_next (p) : has_prev (p))
    pipe_add (p, segment_post (p->l, &what), mb, 0);
}

/* The compute stream waits for the last receive on a stream. */
static void
await (Pipe *p, LsStream stream, uint32_t mb)
{
  g_autofree char *name = g_strdup_printf ("wait for %s", ls_stream_names[stream].name);
  Build b;
  if (!build_reuses (&b, p->l, name)) {
    build_join_stream (&b, stream);
    b.segment = build_finish (&b, name);
  }
  pipe_add (p, b.segment, mb, 0);
}

/* And receives what the next forward needs. */
static void
forward (Pipe *p, const LsAction *action)
{
  if (has_prev (p))
    await (p, LS_STREAM_PP_FWD_RECV, action->mb);
  pipe_add_action (p, action);
  post (p, true, true, false, action->mb);
  post (p, false, false, false, (action->mb + 1) % p->shape.n_micro_batches);
}

static void
backward (Pipe *p, const LsAction *action)
{
  if (has_next (p))
    await (p, LS_STREAM_PP_BWD_RECV, action->mb);
  pipe_add (p, segment_step_begin (p->l, p->rank), action->mb, 0);
  pipe_add_action (p, action);
  post (p, true, false, true, action->mb);
  pipe_add (p, segment_step_end (p->l, p->rank), action->mb, 0);
}

/* Of each type, by micro-batch. */
static const LsAction **
actions_of (const Pipe *p, LsActionType type)
{
  const LsAction **all = g_new (const LsAction *, p->shape.n_micro_batches);
  for (guint i = 0; i < p->actions->len; i++)
    if (pipe_action (p, i)->type == type)
      all[pipe_action (p, i)->mb] = pipe_action (p, i);
  return all;
}

/* lower_pipe.c: the whole program */
static void
pipe_pipedream (Pipe *p)
{
  uint32_t m = p->shape.n_micro_batches, w = p->l->sched->n_versions (&p->shape, p->rank) - 1;
  g_autofree const LsAction **forwards = actions_of (p, LS_ACTION_F),
                            **backwards = actions_of (p, LS_ACTION_B);
  post (p, false, false, false, 0);
  for (uint32_t k = 0; k < w; k++)
    forward (p, forwards[k]);
  p->n_lead = p->instances->len;
  for (uint32_t k = 0; k < m; k++) {
    post (p, false, true, true, k);
    forward (p, forwards[(k + w) % m]);
    backward (p, backwards[k]);
  }
}

/* 1F1B as DeepSpeed's pipeline engine communicates
 * (runtime/pipe/schedule.py, TrainSchedule; engine.py; PartitionedTensor in runtime/utils.py).
 *
 * Problem. Stages take turns: where one runs a forward, its neighbours run backwards. Between two
 * passes a stage sends what it made and receives what it needs, one transfer after the other; the
 * compute stream waits for each. A stage that goes from a backward to a forward receives first,
 * one that goes from a forward to a backward sends first, so neighbours agree:
 *
 *     rank r - 1   F | send activations, receive gradients | B
 *     rank r       B | receive activations, send gradients | F
 *
 * With tensor parallelism the boundary tensor, equal on all tp ranks, travels as 1/tp slices with a
 * tensor that says how it was cut (is_pipe_partitioned, is_grad_partitioned). The sender copies that from
 * the host, for which it waits until the pass is over; the receiver reads it on the host, then gathers
 * the whole: zeros, an all-gather into a list, which c10d copies out, and a clone. A backward
 * gathers twice, the gradient and the output of its forward, of which only the slice was kept.
 *
 *     bytes of a gather in kernels: S zeroed, 2 S copied out, 2 S cloned; all-gather of S
 *
 * Deviations. The tensors of metadata (some 100 bytes, with a message of their own) are not sent; nor
 * are the copies of slices, 1/tp of those of the whole, counted.
 *
 * Reference: DeepSpeed of 2021 and 2022, v0.3.13 to v0.7; since 2023 the metadata are kept on the host. */

/* One transfer, for which the compute stream waits. */
static void
build_transfer (Build *b, uint32_t what)
{
  const char *name = what == SEND_F ? "send activations"
      : what == RECV_F              ? "receive activations"
      : what == SEND_B              ? "send gradients"
                                    : "receive gradients";
  build_join (b, pipe_build_group (b, LS_STREAM_PP_FWD, what, message_bytes (b->l), name));
}

static void
build_copy (Build *b, const char *name, LsKernelKind kind, uint32_t passes, LsTag tag)
{
  const Lower *l = b->l;
  uint64_t bytes = ls_residual_bytes (l->model, &l->shard);
  LsKernel copy
      = ls_kernel_stream (name, kind, l->act, 1, bytes / ls_dtype_bytes (l->act), (double) bytes * passes, 0);
  build_kernel (b, &copy, tag);
}

/* PartitionedTensor.full () */
static void
build_whole (Build *b, LsTag tag)
{
  const Lower *l = b->l;
  build_copy (b, "boundary-zeros", LS_KERNEL_MEMSET, 1, tag);
  build_coll_joined (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER, ls_residual_bytes (l->model, &l->shard),
                     l->shard.dtype, LS_TAG_SYNC, "boundary all-gather");
  build_copy (b, "boundary-copy-out", LS_KERNEL_ELEMENTWISE, 2, tag);
  build_copy (b, "boundary-clone", LS_KERNEL_ELEMENTWISE, 2, tag);
}

static void
build_send (Build *b, uint32_t what)
{
  if (what == 0)
    return;
  if (scatters (b->l))
    build_compute_sync (b, "how a tensor is cut");
  build_transfer (b, what);
}

static void
build_receive (Build *b, uint32_t what)
{
  if (what == 0)
    return;
  build_transfer (b, what);
  if (!scatters (b->l))
    return;
  build_compute_sync (b, "how a tensor was cut");
  LsTag tag = what == RECV_B ? LS_TAG_B : LS_TAG_F;
  build_whole (b, tag);
  if (what == RECV_B)
    build_whole (b, tag);
}

static uint32_t
segment_between (Lower *l, uint32_t send, uint32_t receive)
{
  bool receives_first = receive == RECV_F && send == SEND_B;
  g_autofree char *name = g_strdup_printf (
      "between passes%s%s%s%s", send == SEND_F ? " send activations" : "",
      send == SEND_B ? " send gradients" : "", receive == RECV_F ? " receive activations" : "",
      receive == RECV_B ? " receive gradients" : "");
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  if (receives_first)
    build_receive (&b, receive);
  build_send (&b, send);
  if (!receives_first)
    build_receive (&b, receive);
  return build_finish (&b, name);
}

/* lower_pipe.c */
static void
pipe_deepspeed (Pipe *p)
{
  for (guint i = 0; i <= p->actions->len; i++) {
    const LsAction *done = i > 0 ? pipe_action (p, i - 1) : NULL, *next = pipe_action (p, i);
    uint32_t send = done ? pipe_sends_after (p, done) : 0,
             receive = next ? pipe_receives_before (p, next) : 0;
    const LsAction *about = done ? done : next;
    if ((send | receive) != 0)
      pipe_add (p, segment_between (p->l, send, receive), about->mb, about->chunk);
    if (next)
      pipe_add_action (p, next);
  }
}

/* --- any order ----------------------------------------------------------------------- */

/* Posts from number `from` on that stand at this place; returns the number behind them. */
static guint
add_posts (Pipe *p, guint from, uint32_t before, bool is_beside)
{
  const GArray *posts = p->l->posts[p->rank];
  const Post *first = &g_array_index (posts, Post, from);
  bool is_alone = p->l->s->mp.p2p == LS_P2P_OVERLAPPED;
  guint n = 0;
  while (from + n < posts->len && first[n].before == before && first[n].is_beside == is_beside)
    n++;
  if (n > 0 && !is_alone)
    pipe_add (p, segment_posts (p->l, first, n), p->mb + first->mb, first->chunk);
  for (guint i = 0; i < n; i++) {
    if (is_alone)
      pipe_add (p, segment_post (p->l, &first[i]), p->mb + first[i].mb, first[i].chunk);
    if (!first[i].is_send)
      pipe_add (p, segment_received (p->l, &first[i], is_alone), p->mb + first[i].mb, first[i].chunk);
  }
  return from + n;
}

/* Does the action consume what another rank sends? */
static bool
awaits (const Pipe *p, const LsAction *a)
{
  const LsLayout *l = &p->l->orders->layout;
  LsStageRef at = ls_layout_stage (l, p->rank, a->chunk);
  bool is_forward = a->type == LS_ACTION_F;
  if (a->type == LS_ACTION_W || (is_forward ? at.stage == 0 : at.stage + 1u == l->n_stages))
    return false;
  return ls_layout_home (l, at.pipe, is_forward ? at.stage - 1u : at.stage + 1u).rank != p->rank;
}

static void
await_posted (Pipe *p, const LsAction *a)
{
  if (awaits (p, a))
    pipe_add (p, segment_await (p->l, a->type != LS_ACTION_F), a->mb, a->chunk);
}

static void
pipe_posted (Pipe *p)
{
  guint at = 0;
  for (guint i = 0; i <= p->actions->len; i++) {
    at = add_posts (p, at, i, false);
    at = add_posts (p, at, i, true);
    const LsAction *a = pipe_action (p, i);
    if (a)
      await_posted (p, a);
    if (a && a->is_paired) {
      await_posted (p, a + 1);
      Pair pair = pipe_open_pair (p, a, a + 1);
      at = add_posts (p, at, ++i + 1, false); /* what it sends */
      pipe_close_pair (p, &pair);
    } else if (a)
      pipe_add_action (p, a);
  }
}

/* --- the program --------------------------------------------------------------------- */

static void
pipe_alone (Pipe *p)
{
  for (guint i = 0; i < p->actions->len; i++) {
    const LsAction *a = pipe_action (p, i);
    if (!a->is_paired) {
      pipe_add_action (p, a);
      continue;
    }
    pipe_add_pair (p, a, a + 1);
    i++;
  }
}

static void
pipe_actions (Pipe *p)
{
  if (p->shape.pp == 1)
    pipe_alone (p);
  else if (p->l->posts)
    pipe_posted (p);
  else if (p->l->s->mp.p2p == LS_P2P_DEEPSPEED)
    pipe_deepspeed (p);
  else
    pipe_megatron (p);
}

/* Of the actions from one number up to another. */
static void
find_turns (Pipe *p, guint from, guint to)
{
  for (uint32_t c = 0; c < p->l->n_chunks; c++)
    p->turns[c] = (Turns) { .first = { G_MAXUINT, G_MAXUINT, G_MAXUINT } };
  for (guint i = from; i < to; i++) {
    const LsAction *a = &g_array_index (p->l->orders->ranks[p->rank], LsAction, i);
    Turns *t = &p->turns[a->chunk];
    int turn = turn_of (a->type);
    t->first[turn] = MIN (t->first[turn], i);
    t->last[turn] = i;
  }
}

/* The actions behind so many flushes, up to the next one. */
static void
begin_flush (Pipe *p, uint32_t n)
{
  const Lower *l = p->l;
  const GArray *all = l->orders->ranks[p->rank];
  guint len = all->len / l->n_flushes;
  p->first = n * len;
  p->mb = n * (l->orders->layout.n_micro_batches / l->n_flushes);
  g_array_set_size (p->actions, 0);
  g_array_append_vals (p->actions, &g_array_index (all, LsAction, p->first), len);
  if (l->s->data.grad_sync == LS_GRAD_SYNC_FLUSH)
    find_turns (p, p->first, p->first + len);
}

static void
pipe_init (Pipe *p, Lower *l, uint32_t rank)
{
  *p = (Pipe) { .l = l, .rank = rank, .shape = ls_strategy_sched_shape (l->s, l->n_micro_batches) };
  p->actions = g_array_new (FALSE, FALSE, sizeof (LsAction));
  p->instances = g_array_new (FALSE, FALSE, sizeof (LsInstance));
  p->turns = g_new (Turns, l->n_chunks);
  find_turns (p, 0, l->orders->ranks[rank]->len);
  p->dp_turns = dp_turns (l, rank);
  if (l->sched->recipe == LS_RECIPE_MEGATRON)
    p->n_warmup = l->sched->n_warmup (&p->shape, rank);
  begin_flush (p, 0);
}

static void
pipe_flushed (Pipe *p)
{
  pipe_add (p, segment_step_begin (p->l, p->rank), 0, 0);
  for (uint32_t c = 0; c < p->l->n_chunks; c++) {
    uint32_t gather = segment_by (p->l, p->l->backend->early_gather, "gather parameters", p->rank, c);
    if (gather != UINT32_MAX)
      pipe_add_gather (p, gather, c);
  }
  pipe_actions (p);
  for (uint32_t n = 1; n < p->l->n_flushes; n++) {
    begin_flush (p, n);
    pipe_add (p, segment_flush (p->l, p->rank, n == 1), p->mb, 0);
    pipe_actions (p);
  }
  pipe_add (p, segment_step_end (p->l, p->rank), 0, 0);
}

GArray *
pipe_instances (Lower *l, uint32_t pp_rank, uint32_t *ret_n_lead)
{
  Pipe p;
  pipe_init (&p, l, pp_rank);
  if (!ls_sched_is_flushed (l->sched))
    pipe_pipedream (&p);
  else
    pipe_flushed (&p);
  *ret_n_lead = p.n_lead;
  g_array_unref (p.actions);
  g_free (p.turns);
  g_free (p.dp_turns);
  return p.instances;
}
