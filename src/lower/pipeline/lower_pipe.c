/* lower/pipeline/lower_pipe.c — a pipeline rank's program: the schedule's actions and
 * the p2p between them. 1F1B and interleaved 1F1B communicate by Megatron-LM's own recipes
 * (lower_megatron.c) or DeepSpeed's (lower_pipe_deepspeed.c), PipeDream in the background
 * (lower_pipedream.c), all other schedules as lower_p2p.c says.
 *
 * A pair (DualPipe's forward with a backward) whose experts exchange tokens runs side by side
 * (lower_pair.c). Any other is its forward, then its backward: kernels of both run one after the
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
#include "lower/lower_step.h"
#include "lower/pipeline/lower_order.h"

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

static void
note_turn (guint number, guint *first, guint *last)
{
  *first = MIN (*first, number);
  *last = number;
}

/* Of the actions from one number up to another. */
static void
find_turns (Pipe *p, guint from, guint to)
{
  for (uint32_t c = 0; c < p->l->n_chunks; c++)
    p->turns[c]
        = (Turns) { .first_forward = G_MAXUINT, .first_input = G_MAXUINT, .first_weights = G_MAXUINT };
  for (guint i = from; i < to; i++) {
    const LsAction *a = &g_array_index (p->l->orders->ranks[p->rank], LsAction, i);
    Turns *t = &p->turns[a->chunk];
    if (a->type == LS_ACTION_F)
      note_turn (i, &t->first_forward, &t->last_forward);
    else if (a->type == LS_ACTION_I)
      note_turn (i, &t->first_input, &t->last_input);
    else
      note_turn (i, &t->first_weights, &t->last_weights);
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
    uint32_t gather = segment_early_gather (p->l, p->rank, c);
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
