#include "network/sums.h"

#include <string.h>

/* What was asked for, and the answer. Of a cluster only the messages tell scripts apart:
 * who computes them, of what. */
typedef struct {
  uint32_t (*sends) (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret);
  LsCollKind kind;
  uint32_t n, root, n_blocks, first, n_rounds;
  uint64_t flows; /* over how many ways a message spreads */
  const uint32_t *weights;
  bool weighs_senders;
  const uint32_t *gpus;
  LsSums sums;
} Known;

struct LsCollMemo {
  LsArena *arena;
  const LsCluster *cluster; /* NULL: not used yet */
  GPtrArray *known;         /* Known              */
};

LsCollMemo *
ls_coll_memo_new (void)
{
  LsCollMemo *memo = g_new0 (LsCollMemo, 1);
  memo->arena = ls_arena_new ();
  memo->known = g_ptr_array_new ();
  return memo;
}

void
ls_coll_memo_free (LsCollMemo *memo)
{
  if (!memo)
    return;
  g_ptr_array_unref (memo->known);
  ls_arena_free (memo->arena);
  g_free (memo);
}

static bool
is_same (const Known *a, const Known *b)
{
  return a->sends == b->sends && a->kind == b->kind && a->n == b->n && a->root == b->root
      && a->n_blocks == b->n_blocks && a->first == b->first && a->n_rounds == b->n_rounds
      && a->flows == b->flows && a->weights == b->weights && a->weighs_senders == b->weighs_senders
      && memcmp (a->gpus, b->gpus, a->n * sizeof *a->gpus) == 0;
}

static LsWay
way_of (const LsCollCall *call, const LsScript *s, uint32_t from, uint32_t to)
{
  if (from >= s->n || to >= s->n)
    return LS_WAY_SWITCH;
  return call->host_of[call->seat[from]] == call->host_of[call->seat[to]] ? LS_WAY_INTRA : LS_WAY_INTER;
}

/* Each channel has its share of the blocks. */
static void
add_route (const LsScript *s, uint32_t from, const LsSend *send, LsLoadList *loads)
{
  LsRoute route;
  uint32_t n_channels = ls_script_n_channels (s);
  for (uint32_t c = 0; c < n_channels; c++) {
    uint64_t part = n_channels == 1 ? LS_HOP_WHOLE : ls_script_channel_flows (s, c) * LS_HOP_WHOLE / s->flows;
    ls_script_route_channel (s, from, send->to, c, &route);
    for (uint32_t i = 0; i < route.n_hops; i++)
      ls_load_list_add (loads, route.hop[i].trunk, send->n * (part * route.hop[i].share / LS_HOP_WHOLE));
  }
}

static void
add_message (const LsCollCall *call, const LsScript *s, uint32_t from, const LsSend *send, LsTraffic *traffic,
             LsLoadList *loads, LsSums *sums)
{
  LsWay way = way_of (call, s, from, send->to);
  sums->has_way[way] = true;
  if (from < s->n)
    traffic[from].out[way] += send->n;
  if (send->to < s->n)
    traffic[send->to].in[way] += send->n;
  add_route (s, from, send, loads);
}

static void
add_up (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds, LsArena *arena,
        LsSums *sums)
{
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  LsTraffic *traffic = ls_arena_new_array (arena, LsTraffic, s->n);
  LsLoadList loads = ls_load_list_new (s->cluster);
  for (uint32_t r = first; r < first + n_rounds; r++)
    for (uint32_t place = 0; place < s->n + s->n_switches; place++) {
      uint32_t n = s->sends (s, place, r, sends);
      for (uint32_t i = 0; i < n; i++)
        add_message (call, s, place, &sends[i], traffic, &loads, sums);
    }
  LsPhase phase;
  ls_load_list_finish (&loads, arena, &phase);
  sums->traffic = traffic;
  sums->n_loads = phase.n_loads;
  sums->loads = phase.loads;
}

static const Known *
find (const LsCollMemo *memo, const Known *wanted)
{
  for (guint i = 0; i < memo->known->len; i++)
    if (is_same (memo->known->pdata[i], wanted))
      return memo->known->pdata[i];
  return NULL;
}

const LsSums *
ls_sums_of_rounds (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds,
                   LsArena *arena)
{
  LsCollMemo *memo = call->memo;
  Known wanted = { s->sends,      s->kind,
                   s->n,          s->root,
                   s->n_blocks,   first,
                   n_rounds,      ls_script_n_channels (s) > 1 ? s->flows : 0,
                   call->weights, call->weighs_senders,
                   s->gpus,       { 0 } };
  const Known *known = memo ? find (memo, &wanted) : NULL;
  if (known)
    return &known->sums;
  LsArena *to = memo ? memo->arena : arena;
  Known *new = ls_arena_new_array (to, Known, 1);
  *new = wanted;
  add_up (call, s, first, n_rounds, to, &new->sums);
  if (memo) {
    g_assert (!memo->cluster || memo->cluster == s->cluster);
    memo->cluster = s->cluster;
    uint32_t *gpus = ls_arena_new_array (to, uint32_t, s->n);
    memcpy (gpus, s->gpus, s->n * sizeof *gpus);
    new->gpus = gpus;
    g_ptr_array_add (memo->known, new);
  }
  return &new->sums;
}
