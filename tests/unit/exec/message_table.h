/* tests/unit/exec/message_table.h — a script whose sends stand in a table, and what notes when they come. */
#ifndef LS_TESTS_EXEC_MESSAGE_TABLE_H
#define LS_TESTS_EXEC_MESSAGE_TABLE_H

#include "ls_test.h"

#include <string.h>

#include "tiny_cluster.h"

#include "exec/messages/messages.h"

typedef struct {
  LsScript script; /* first member */
  uint32_t *gpus;
  LsSend *sends;                  /* [n_rounds][n][max_sends] */
  uint32_t *n_sends, *n_receives; /* [n_rounds][n] */
  const LsEngine *engine;         /* NULL: times are not noted */
  LsTime *entered;                /* [n_rounds][n]: when; with lanes, the last of them */
} Table;

static inline uint32_t
table_sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Table *t = (const Table *) s;
  uint32_t at = round * s->n + place;
  if (t->engine)
    t->entered[at] = t->engine->now;
  memcpy (ret, &t->sends[at * s->max_sends], t->n_sends[at] * sizeof *ret);
  return t->n_sends[at];
}

static inline uint32_t
table_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return ((const Table *) s)->n_receives[round * s->n + place];
}

static inline void
table_init (Table *t, const LsCluster *c, uint32_t n, uint32_t n_rounds, uint32_t max_sends)
{
  *t = (Table) {
    .script = { .n = n,
                .n_rounds = n_rounds,
                .n_blocks = n,
                .max_sends = max_sends,
                .block_bytes = 1e6,
                .cluster = c,
                .sends = table_sends,
                .n_receives = table_receives,
                .hop_intra = LS_US,
                .hop_inter = 3 * LS_US,
                .rate_intra = 10e9,
                .rate_inter = 10e9,
                .flows = LS_COEF_ONE },
    .gpus = g_new (uint32_t, n),
    .sends = g_new0 (LsSend, n_rounds * n * max_sends),
    .n_sends = g_new0 (uint32_t, n_rounds * n),
    .n_receives = g_new0 (uint32_t, n_rounds * n),
    .entered = g_new0 (LsTime, n_rounds * n),
  };
  t->script.gpus = t->gpus;
  for (uint32_t i = 0; i < n; i++)
    t->gpus[i] = i;
}

static inline void
table_clear (Table *t)
{
  g_free (t->gpus);
  g_free (t->sends);
  g_free (t->n_sends);
  g_free (t->n_receives);
  g_free (t->entered);
}

static inline void
table_send (Table *t, uint32_t round, uint32_t from, uint32_t to, uint32_t n_blocks)
{
  uint32_t at = round * t->script.n + from;
  t->sends[at * t->script.max_sends + t->n_sends[at]++] = (LsSend) { .to = to, .n = n_blocks };
  t->n_receives[round * t->script.n + to]++;
}

/* A ring: in every round each place sends one block to the next. */
static inline void
table_ring (Table *t, const LsCluster *c, uint32_t n)
{
  table_init (t, c, n, 2 * (n - 1), 1);
  for (uint32_t r = 0; r < t->script.n_rounds; r++)
    for (uint32_t i = 0; i < n; i++)
      table_send (t, r, i, (i + 1) % n, 1);
}

/* A script of random sends: every place to others, or always to the same ones. */
static inline void
table_random (Table *t, const LsCluster *c, GRand *rand, uint32_t first_gpu, uint32_t n)
{
  uint32_t n_rounds = (uint32_t) g_rand_int_range (rand, 1, 12),
           max_sends = (uint32_t) g_rand_int_range (rand, 1, 4);
  bool is_ring = g_rand_boolean (rand);
  table_init (t, c, n, n_rounds, max_sends);
  for (uint32_t i = 0; i < n; i++)
    t->gpus[i] = (first_gpu + i * 5) % c->n_gpus;
  for (uint32_t r = 0; r < n_rounds; r++)
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < max_sends; k++) {
        uint32_t step = !is_ring ? (uint32_t) g_rand_int_range (rand, 1, (gint32) n) : k % 2 == 0 ? 1 : n - 1;
        if (is_ring || g_rand_int_range (rand, 0, 3) > 0)
          table_send (t, r, i, (i + step) % n, is_ring ? 1 : (uint32_t) g_rand_int_range (rand, 0, 4));
      }
  t->script.has_lanes = is_ring && g_rand_boolean (rand);
  t->script.rate_intra = 1e9 * g_rand_int_range (rand, 1, 120);
  t->script.rate_inter = 1e9 * g_rand_int_range (rand, 1, 30);
  t->script.flows = LS_COEF_ONE * (uint64_t) g_rand_int_range (rand, 1, 4) / 2 + 3;
  t->script.block_bytes = 1e3 * g_rand_int_range (rand, 1, 300);
  t->script.hop_inter = g_rand_int_range (rand, 0, 3) * LS_US;
  t->script.hbm_from = 0.5 * g_rand_int_range (rand, 0, 20);
  t->script.hbm_to = 0.25 * g_rand_int_range (rand, 0, 20);
}

static inline LsCluster *
nodes (uint32_t n)
{
  LsClusterSpec spec = tiny_dgx (n);
  return ls_cluster_build (&spec, NULL);
}

#endif
