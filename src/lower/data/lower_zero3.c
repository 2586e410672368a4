#include "lower/data/lower_zero3.h"

#include <string.h>

/* --- the trace: a forward and a backward that only take notes --------------------- */

static bool
is_tied_logits (const Lower *l, const Chunk *c, guint o)
{
  return l->model->tied_embeddings && c->has_embedding && c->has_head && operator_at (c, o)->is_logits
      && operator_at (c, o)->n_params == 0;
}

static guint
uses_of (const Lower *l, const Chunk *c, guint o, guint ret_params[LS_OPERATOR_MAX_PARAMS])
{
  guint n = 0;
  for (uint32_t i = 0; i < operator_at (c, o)->n_params; i++)
    ret_params[n++] = ZERO3_PARAM (o, i);
  if (is_tied_logits (l, c, o))
    ret_params[n++] = ZERO3_PARAM (0, 0);
  return n;
}

static void
note_visit (Build *b, DpPass *p, guint o, bool is_again)
{
  guint params[LS_OPERATOR_MAX_PARAMS];
  Zero3Visit v = { .operator_ = o, .is_again = is_again };
  if (uses_of (b->l, p->c, o, params) > 0)
    g_array_append_val ((GArray *) p->state, v);
}

static void
note (Build *b, DpPass *p, guint o)
{
  note_visit (b, p, o, false);
}

static void
note_again (Build *b, DpPass *p, guint o)
{
  note_visit (b, p, o, true);
}

static const DpBackend notes
    = { .name = "notes", .before_again = note_again, .after = note, .cuts = dp_cut_nothing };

static void
trace_pass (Lower *l, const Chunk *c, LsActionType type, GArray *visits)
{
  Build b;
  build_init (&b, l);
  DpPass p = { .c = c, .type = type, .state = visits };
  build_pass_by (&b, &p, &notes);
  build_clear (&b);
}

/* --- the coordinator -------------------------------------------------------------- */

typedef struct {
  guint param;
  int64_t step; /* of the visit */
} InQueue;

typedef struct {
  const Lower *l;
  const Chunk *c;
  Zero3 *z;
  GArray *queue; /* InQueue                                           */
  guint head;
  guint n_params;
  bool *is_there, *is_under_way; /* [n_params]                               */
  int64_t *fetched_for;          /* [n_params] latest use that left the queue         */
  uint64_t *distance;            /* [n_visits + 1] elements visited before            */
  guint *next_use;               /* [queue] index of the visit; G_MAXUINT: none        */
  uint64_t n_available;
} Coordinator;

uint64_t
zero3_numel (const Chunk *c, guint param)
{
  return operator_at (c, param / LS_OPERATOR_MAX_PARAMS)->param_numel[param % LS_OPERATOR_MAX_PARAMS];
}

bool
zero3_is_persistent (const Lower *l, uint64_t numel)
{
  return numel <= l->s->persistence_threshold;
}

static void
gather (Coordinator *k, Zero3List *list, guint param)
{
  g_array_append_val (k->z->params, param);
  list->n++;
  k->is_there[param] = k->is_under_way[param] = true;
  k->n_available += zero3_numel (k->c, param);
}

static void
prefetch (Coordinator *k, Zero3Visit *v)
{
  v->prefetch.first = k->z->params->len;
  for (guint i = 0; k->l->s->collective_lists && i < k->n_params; i++)
    if (k->is_under_way[i])
      return;
  uint64_t live = k->l->s->max_live_params, numel = 0;
  uint64_t limit = MIN (live - MIN (live, k->n_available), k->l->s->prefetch_bucket);
  while (k->head < k->queue->len && numel < limit) {
    const InQueue *next = &g_array_index (k->queue, InQueue, k->head++);
    k->fetched_for[next->param] = MAX (k->fetched_for[next->param], next->step);
    if (k->is_there[next->param])
      continue;
    numel += zero3_numel (k->c, next->param);
    gather (k, &v->prefetch, next->param);
  }
}

/* Visit of the next use of a parameter behind visit t, or G_MAXUINT. */
static guint
next_use (const Coordinator *k, guint param, guint t, guint first_in_queue)
{
  for (guint i = first_in_queue; i < k->queue->len; i++) {
    const InQueue *q = &g_array_index (k->queue, InQueue, i);
    if (q->param == param && q->step == t)
      return k->next_use[i];
  }
  g_assert_not_reached ();
}

static bool
is_kept (const Coordinator *k, guint param, guint t, guint first_in_queue)
{
  if (zero3_is_persistent (k->l, zero3_numel (k->c, param)) || k->fetched_for[param] > (int64_t) t + 1)
    return true;
  guint next = next_use (k, param, t, first_in_queue);
  return next != G_MAXUINT && k->distance[next] - k->distance[t + 1] < k->l->s->max_reuse_distance;
}

static void
release (Coordinator *k, Zero3Visit *v, guint t, const guint *params, guint n, guint first_in_queue)
{
  v->release.first = k->z->params->len;
  for (guint i = 0; i < n; i++) {
    if (is_kept (k, params[i], t, first_in_queue))
      continue;
    g_array_append_val (k->z->params, params[i]);
    v->release.n++;
    k->is_there[params[i]] = false;
    k->n_available -= zero3_numel (k->c, params[i]);
  }
}

static void
visit (Coordinator *k, guint t, guint first_in_queue)
{
  Zero3Visit *v = &g_array_index (k->z->visits, Zero3Visit, t);
  guint params[LS_OPERATOR_MAX_PARAMS], n = uses_of (k->l, k->c, v->operator_, params), n_queued = 0;
  v->fetch.first = k->z->params->len;
  for (guint i = 0; i < n; i++)
    if (!k->is_there[params[i]])
      gather (k, &v->fetch, params[i]);
  for (guint i = 0; i < n; i++) {
    v->n_waits += k->is_under_way[params[i]];
    k->is_under_way[params[i]] = false;
    n_queued += k->fetched_for[params[i]] < (int64_t) t;
  }
  if (k->l->s->collective_lists && v->n_waits > 0)
    memset (k->is_under_way, 0, k->n_params * sizeof *k->is_under_way);
  for (; n_queued > 0 && k->head < k->queue->len; n_queued--) {
    const InQueue *q = &g_array_index (k->queue, InQueue, k->head++);
    k->fetched_for[q->param] = q->step;
  }
  prefetch (k, v);
  release (k, v, t, params, n, first_in_queue);
}

/* Queue, distances, and each use's next one, from the back. */
static void
coordinator_init (Coordinator *k, guint n_params)
{
  GArray *visits = k->z->visits;
  k->queue = g_array_new (FALSE, FALSE, sizeof (InQueue));
  k->distance = g_new0 (uint64_t, visits->len + 1);
  k->n_params = n_params;
  k->is_there = g_new0 (bool, n_params);
  k->is_under_way = g_new0 (bool, n_params);
  k->fetched_for = g_new (int64_t, n_params);
  for (guint t = 0; t < visits->len; t++) {
    guint params[LS_OPERATOR_MAX_PARAMS];
    guint n = uses_of (k->l, k->c, g_array_index (visits, Zero3Visit, t).operator_, params);
    k->distance[t + 1] = k->distance[t];
    for (guint i = 0; i < n; i++) {
      k->distance[t + 1] += zero3_numel (k->c, params[i]);
      InQueue use = { params[i], t };
      g_array_append_val (k->queue, use);
    }
  }
  k->next_use = g_new (guint, MAX (1, k->queue->len));
  g_autofree guint *later = g_new (guint, n_params);
  for (guint i = 0; i < n_params; i++) {
    later[i] = G_MAXUINT;
    k->fetched_for[i] = INT64_MIN;
  }
  for (guint i = k->queue->len; i-- > 0;) {
    const InQueue *q = &g_array_index (k->queue, InQueue, i);
    k->next_use[i] = later[q->param];
    later[q->param] = (guint) q->step;
  }
}

static void
coordinator_clear (Coordinator *k)
{
  g_array_unref (k->queue);
  g_free (k->distance);
  g_free (k->is_there);
  g_free (k->is_under_way);
  g_free (k->fetched_for);
  g_free (k->next_use);
}

Zero3 *
zero3_new (Lower *l, const Chunk *c)
{
  Zero3 *z = g_new0 (Zero3, 1);
  z->visits = g_array_new (FALSE, TRUE, sizeof (Zero3Visit));
  z->params = g_array_new (FALSE, FALSE, sizeof (guint));
  trace_pass (l, c, LS_ACTION_F, z->visits);
  z->n_forward = z->visits->len;
  trace_pass (l, c, l->has_split ? LS_ACTION_I : LS_ACTION_B, z->visits);

  Coordinator k = { .l = l, .c = c, .z = z };
  guint n_params = c->operators->len * LS_OPERATOR_MAX_PARAMS;
  coordinator_init (&k, n_params);
  for (guint i = 0; i < n_params; i++)
    k.is_there[i] = zero3_is_persistent (l, zero3_numel (c, i));
  guint in_queue = 0;
  for (guint t = 0; t < z->visits->len; t++) {
    guint params[LS_OPERATOR_MAX_PARAMS];
    guint n = uses_of (l, c, g_array_index (z->visits, Zero3Visit, t).operator_, params);
    visit (&k, t, in_queue);
    in_queue += n;
  }
  coordinator_clear (&k);
  return z;
}

void
zero3_free (Zero3 *z)
{
  g_array_unref (z->visits);
  g_array_unref (z->params);
  g_free (z);
}

uint64_t
zero3_n_persistent (const Lower *l, uint32_t pp_rank, bool is_expert)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint o = 0; o < chunk->operators->len; o++)
      for (uint32_t i = 0; i < operator_at (chunk, o)->n_params; i++) {
        uint64_t numel = operator_at (chunk, o)->param_numel[i];
        n += operator_at (chunk, o)->is_expert == is_expert && zero3_is_persistent (l, numel) ? numel : 0;
      }
  }
  return n;
}
