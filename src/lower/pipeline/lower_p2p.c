/* lower/pipeline/lower_p2p.c — sends and receives for any order of actions.
 *
 * Problem. A send and its receive are posted by two ranks that are busy with other things.
 * Within a channel (a rank and one of its neighbours) they match first come, first served,
 * so both must post in one order, and groups that wait for each other must not close a
 * circle, whatever the schedule.
 *
 * Method. The orders are evaluated with the times of stages (lower_order.c). A message has
 * the time t at which the action that makes it ends, and all ranks post by (t, sender, number
 * of its action). A send stands right behind its action; a receive behind the actions of its rank
 * that started before t, or before the last of these where it arrives while that one runs,
 * to move beside it (zero bubble's code places them alike):
 *
 *     action j-1   [ sends of j-1, receives with t <= start of j ]   [ receives with t
 *     inside j ]   action j   ...
 *
 * A pair that runs side by side is one action.
 *
 * Batched: each bracket is a group on one stream. The host never waits; the compute stream
 * waits for the group that brings what an action consumes. Overlapped: each on the stream of
 * its channel.
 *
 * Why nothing deadlocks. Groups of a rank are in order of t, strictly from one to the next. What
 * a transfer waits for, its partner's group, groups before that, actions before these and
 * their inputs, has earlier t, or is a group of the same t whose action is over. As times are
 * positive, t falls along any chain of waits. Actual times differ from evaluated ones, and
 * may make ranks wait longer, but change nobody's order.
 *
 * Scatter-gather (Narayanan et al. 2021, section 4.1): the boundary tensor, equal on all tp
 * ranks, is sent as 1/t slices and gathered over NVLink afterwards. With sequence
 * parallelism it is cut already and nothing changes. */
#include "lower/lower_build.h"
#include "base/order.h"
#include "lower/pipeline/lower_order.h"

bool
scatters (const Lower *l)
{
  bool has_slices = l->s->mp.p2p == LS_P2P_SCATTER_GATHER || l->s->mp.p2p == LS_P2P_DEEPSPEED;
  return has_slices && l->mesh.tp > 1 && !l->shard.sp;
}

uint64_t
message_bytes (const Lower *l)
{
  return ls_residual_bytes (l->model, &l->shard) / (scatters (l) ? l->mesh.tp : 1);
}

uint32_t
message_tensors (const Lower *l, uint32_t stage, uint64_t ret_bytes[2])
{
  uint32_t layer = 0; /* that the next stage begins with */
  for (uint32_t i = 0; i <= stage && l->shard.sides_are_apart; i++)
    layer += l->chunks[i].n_layers;
  return ls_residual_tensors (l->model, &l->shard, layer, ret_bytes);
}

/* --- who posts what, where ------------------------------------------------------ */

typedef struct {
  LsTime at;
  uint32_t from, action;
  uint32_t to, mb;
  uint16_t from_chunk, to_chunk;
  bool is_gradient;
} Message;

/* The stage to which an action's output goes; false: to none, or to one of the same rank. */
static bool
receiver_of (const LsLayout *l, uint32_t rank, const LsAction *a, LsHome *ret_home)
{
  LsStageRef at = ls_layout_stage (l, rank, a->chunk);
  bool is_forward = a->type == LS_ACTION_F;
  if (a->type == LS_ACTION_W || (is_forward ? at.stage + 1u == l->n_stages : at.stage == 0))
    return false;
  *ret_home = ls_layout_home (l, at.pipe, is_forward ? at.stage + 1u : at.stage - 1u);
  return ret_home->rank != rank;
}

static int
compare_messages (const void *x, const void *y)
{
  const Message *a = x, *b = y;
  LS_SMALLER_FIRST (a->at, b->at);
  LS_SMALLER_FIRST (a->from, b->from);
  return LS_ORDER (a->action, b->action);
}

static GArray *
find_messages (const LsOrders *orders, const LsSchedEval *eval)
{
  GArray *messages = g_array_new (FALSE, FALSE, sizeof (Message));
  for (uint32_t r = 0; r < orders->layout.n_ranks; r++)
    for (guint i = 0; i < orders->ranks[r]->len; i++) {
      const LsAction *a = &g_array_index (orders->ranks[r], LsAction, i);
      LsHome to;
      if (!receiver_of (&orders->layout, r, a, &to))
        continue;
      Message m = { .at = eval->times[r][i].end,
                    .from = r,
                    .action = i,
                    .to = to.rank,
                    .mb = a->mb,
                    .from_chunk = a->chunk,
                    .to_chunk = to.chunk,
                    .is_gradient = a->type != LS_ACTION_F };
      g_array_append_val (messages, m);
    }
  g_array_sort (messages, compare_messages);
  return messages;
}

/* Down the ranks, or from the last to the first. Waves come back up in every second chunk, and
 * every second pipe runs up. */
static bool
goes_to_next (const Lower *l, const Message *m)
{
  bool goes_down = l->sched->placement == LS_PLACE_LOOP || m->from_chunk % 2 == 0;
  return goes_down != m->is_gradient;
}

static void
append_post (Lower *l, uint32_t rank, const Post *post)
{
  GArray *posts = l->posts[rank];
  if (posts->len > 0) {
    const Post *last = &g_array_index (posts, Post, posts->len - 1);
    g_assert (last->before < post->before
              || (last->before == post->before && last->is_beside <= post->is_beside));
  }
  g_array_append_val (posts, *post);
}

/* The number behind an action, and behind its partner if it is one of a pair. */
static uint32_t
number_behind (const GArray *actions, uint32_t action)
{
  return action + (g_array_index (actions, LsAction, action).is_paired ? 2 : 1);
}

/* The same number, or that of the first of the pair whose second it is. */
static uint32_t
number_of_first (const GArray *actions, uint32_t action)
{
  return action - (action > 0 && g_array_index (actions, LsAction, action - 1).is_paired ? 1 : 0);
}

/* n_started: actions of the receiver that started before; moves on. */
static void
append_receive (Lower *l, const Message *m, const LsActionTime *times, uint32_t *n_started)
{
  while (*n_started < l->orders->ranks[m->to]->len && times[*n_started].start < m->at)
    (*n_started)++;
  bool is_beside = *n_started > 0 && times[*n_started - 1].end > m->at;
  append_post (
      l, m->to,
      &(Post) { .before = is_beside ? number_of_first (l->orders->ranks[m->to], *n_started - 1) : *n_started,
                .is_beside = is_beside,
                .is_next = !goes_to_next (l, m),
                .is_gradient = m->is_gradient,
                .mb = m->mb,
                .chunk = m->to_chunk });
}

void
posts_init (Lower *l, const LsSchedTimes *times)
{
  uint32_t pp = l->mesh.pp;
  g_autoptr (LsSchedEval) eval = ls_orders_eval (l->orders, times);
  g_autoptr (GArray) messages = find_messages (l->orders, eval);
  g_autofree uint32_t *n_started = g_new0 (uint32_t, pp);
  l->posts = g_new (GArray *, pp);
  for (uint32_t r = 0; r < pp; r++)
    l->posts[r] = g_array_new (FALSE, FALSE, sizeof (Post));
  for (guint i = 0; i < messages->len; i++) {
    const Message *m = &g_array_index (messages, Message, i);
    append_post (l, m->from,
                 &(Post) { .before = number_behind (l->orders->ranks[m->from], m->action),
                           .is_send = true,
                           .is_next = goes_to_next (l, m),
                           .is_gradient = m->is_gradient,
                           .mb = m->mb,
                           .chunk = m->from_chunk });
    append_receive (l, m, eval->times[m->to], &n_started[m->to]);
  }
}

void
posts_clear (Lower *l)
{
  for (uint32_t r = 0; l->posts && r < l->mesh.pp; r++)
    g_array_unref (l->posts[r]);
  g_free (l->posts);
}

/* --- their segments ---------------------------------------------------------------- */

/* In Megatron-LM's order: send previous, receive previous, send next, receive next. */
enum { SEND_PREV, RECV_PREV, SEND_NEXT, RECV_NEXT, N_KINDS };

static const struct {
  const char *name;
  LsStream stream;
} kinds[N_KINDS] = {
  [SEND_PREV] = { "send to previous", LS_STREAM_PP_BWD },
  [RECV_PREV] = { "recv from previous", LS_STREAM_PP_FWD_RECV },
  [SEND_NEXT] = { "send to next", LS_STREAM_PP_FWD },
  [RECV_NEXT] = { "recv from next", LS_STREAM_PP_BWD_RECV },
};

static int
kind_of (const Post *post)
{
  return post->is_next ? (post->is_send ? SEND_NEXT : RECV_NEXT) : post->is_send ? SEND_PREV : RECV_PREV;
}

static void
build_transfers (Build *b, LsStream stream, const char *name, const uint32_t n_of[N_KINDS])
{
  const Lower *l = b->l;
  uint32_t n = 0;
  for (int k = 0; k < N_KINDS; k++)
    n += n_of[k];
  LsTransfer *all = ls_arena_new_array (l->plan->arena, LsTransfer, n), *t = all;
  for (int k = 0; k < N_KINDS; k++)
    for (uint32_t i = 0; i < n_of[k]; i++)
      *t++ = (LsTransfer) { message_bytes (l), k < SEND_NEXT ? LS_SLOT_PREV : LS_SLOT_NEXT,
                            k == SEND_PREV || k == SEND_NEXT, (uint8_t) l->s->mp.pp_max_ctas };
  LsOp op = ls_op_blank (LS_OP_P2P, stream, LS_TAG_SYNC, name);
  op.host = LS_HOST_COMM;
  op.dtype = (uint8_t) l->shard.dtype;
  op.transfers = all;
  op.n_transfers = (uint16_t) n;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  build_op (b, op, &compute, 1);
}

uint32_t
segment_posts (Lower *l, const Post *posts, guint n)
{
  uint32_t n_of[N_KINDS] = { 0 };
  for (guint i = 0; i < n; i++)
    n_of[kind_of (&posts[i])]++;
  g_autofree char *name = g_strdup_printf ("p2p previous %u out %u in, next %u out %u in", n_of[SEND_PREV],
                                           n_of[RECV_PREV], n_of[SEND_NEXT], n_of[RECV_NEXT]);
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  build_transfers (&b, LS_STREAM_PP_FWD, n > 1 ? "p2p group" : kinds[kind_of (posts)].name, n_of);
  return build_finish (&b, name);
}

uint32_t
segment_post (Lower *l, const Post *post)
{
  int kind = kind_of (post);
  Build b;
  if (build_reuses (&b, l, kinds[kind].name))
    return b.segment;
  uint32_t n_of[N_KINDS] = { 0 };
  n_of[kind] = 1;
  build_transfers (&b, kinds[kind].stream, kinds[kind].name, n_of);
  return build_finish (&b, kinds[kind].name);
}

static uint32_t
segment_event (Lower *l, const char *name, LsOpKind kind, LsStream stream, uint16_t event, bool gathers)
{
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  LsOp op = ls_op_blank (kind, stream, LS_TAG_SYNC,
                         kind == LS_OP_RECORD ? "received" : "wait for what was received");
  op.event = event;
  build_op (&b, op, NULL, 0);
  if (gathers)
    build_join (&b,
                build_coll (&b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER,
                            ls_residual_bytes (l->model, &l->shard), l->shard.dtype, LS_TAG_SYNC,
                            "boundary all-gather"));
  return build_finish (&b, name);
}

uint32_t
segment_received (Lower *l, const Post *post, bool is_alone)
{
  LsStream stream = is_alone ? kinds[kind_of (post)].stream : LS_STREAM_PP_FWD;
  g_autofree char *name = g_strdup_printf (
      "received %s on %s", post->is_gradient ? "gradients" : "activations", ls_stream_name (stream));
  return segment_event (l, name, LS_OP_RECORD, stream, post->is_gradient ? EVENT_RECV_B : EVENT_RECV_F,
                        false);
}

uint32_t
segment_await (Lower *l, bool is_gradient)
{
  return segment_event (l, is_gradient ? "wait for gradients" : "wait for activations", LS_OP_WAIT,
                        LS_STREAM_COMPUTE, is_gradient ? EVENT_RECV_B : EVENT_RECV_F, scatters (l));
}
