/* Pins how layers that do not come out even are balanced: the least busy busiest rank, against all layouts
 * there are, for every placement of chunks on ranks; which of equals is taken; and that a layout is found
 * once, is legal, and is found again for other degrees; that of two kinds of layers no single move is left that
 * helps. */
#include "ls_test.h"

#include <string.h>

#include "lower/balance.h"
#include "strategy/shard.h"

typedef struct {
  LsModel model;
  LsStrategy s;
  LsPartTimes times;
  uint32_t n;      /* chunks */
  uint32_t at[12]; /* the layout that is looked at */
  LsTime best;     /* busiest rank of any          */
} Case;

static LsTime
chunk_time (const Case *c, const uint32_t *layers, uint32_t chunk)
{
  LsTime t = (chunk == 0 ? c->times.embedding : 0) + (chunk == c->n - 1 ? c->times.head : 0);
  uint32_t first = 0, of_kinds[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (&c->model, of_kinds);
  for (uint32_t i = 0; i < chunk; i++)
    first += layers[i];
  for (uint32_t i = first; i < first + layers[chunk]; i++)
    t += c->times.layer[ls_model_kind_place (&c->model, of_kinds, n_kinds, i)];
  return t;
}

/* Of each placement, as schedules/sched.h has them. */
static LsTime
rank_time (const Case *c, const uint32_t *layers, uint32_t r)
{
  const LsSched *sched = ls_sched_find (c->s.schedule);
  LsTime sum = 0;
  for (uint32_t v = 0; v < c->s.vpp; v++) {
    bool is_back = sched->placement == LS_PLACE_WAVE && v % 2 == 1;
    sum += chunk_time (c, layers, v * c->s.pp + (is_back ? c->s.pp - 1 - r : r));
  }
  if (sched->placement == LS_PLACE_PIPES)
    sum += chunk_time (c, layers, c->s.pp - 1 - r);
  return sum;
}

static LsTime
busiest (const Case *c, const uint32_t *layers)
{
  LsTime most = 0;
  for (uint32_t r = 0; r < c->s.pp; r++)
    most = MAX (most, rank_time (c, layers, r));
  return most;
}

static void
try_all (Case *c, uint32_t chunk, uint32_t left)
{
  uint32_t least = chunk == 0 || chunk == c->n - 1 ? 0 : 1;
  if (chunk == c->n - 1) {
    c->at[chunk] = left;
    c->best = MIN (c->best, busiest (c, c->at));
    return;
  }
  for (c->at[chunk] = least; c->at[chunk] <= left; c->at[chunk]++)
    try_all (c, chunk + 1, left - c->at[chunk]);
}

static void
random_case (GRand *rand, Case *c)
{
  static const struct {
    const char *schedule;
    uint32_t pp, vpp;
  } shapes[] = { { "1f1b", 3, 1 },
                 { "1f1b", 4, 1 },
                 { "1f1b", 5, 1 },
                 { "interleaved-1f1b", 2, 2 },
                 { "interleaved-1f1b", 3, 2 },
                 { "interleaved-1f1b", 2, 3 },
                 { "zbv", 2, 2 },
                 { "zbv", 3, 2 },
                 { "dualpipe", 4, 1 },
                 { "chimera", 4, 1 } };
  guint i = (guint) g_rand_int_range (rand, 0, G_N_ELEMENTS (shapes));
  *c = (Case) { .best = LS_TIME_NEVER };
  ls_strategy_init (&c->s);
  c->s.schedule = g_strdup (shapes[i].schedule);
  c->s.pp = shapes[i].pp;
  c->s.vpp = shapes[i].vpp;
  c->n = c->s.pp * c->s.vpp;
  c->model.n_layers = (uint32_t) g_rand_int_range (rand, (gint32) c->n - 2, 13);
  c->model.n_layers = MAX (1, c->model.n_layers);
  c->times = (LsPartTimes) { g_rand_int_range (rand, 0, 30),
                             g_rand_int_range (rand, 0, 300),
                             { g_rand_int_range (rand, 50, 150) } };
}

/* How much busier than need be; 0: not at all. */
static double
excess (Case *c)
{
  uint32_t layers[12], sum = 0;
  ls_balance_layers (&c->model, &c->s, &c->times, layers);
  for (uint32_t i = 0; i < c->n; i++) {
    LS_CHECK (layers[i] > 0 || i == 0 || i == c->n - 1);
    sum += layers[i];
  }
  LS_CHECK_INT (sum, ==, c->model.n_layers);
  try_all (c, 0, c->model.n_layers);
  return (double) busiest (c, layers) / (double) c->best - 1;
}

static void
of_layers_alike_no_layout_is_better (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  for (int i = 0; i < 300; i++) {
    Case c;
    random_case (rand, &c);
    LS_CHECK_DOUBLE (excess (&c), ==, 0);
    ls_strategy_clear (&c.s);
  }
}

/* With several chunks per rank, near it: on what is as coarse as here. */
static void
of_two_kinds_of_layers_none_is_better_with_a_chunk_per_rank (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  double sum = 0;
  for (int i = 0; i < 1000; i++) {
    Case c;
    random_case (rand, &c);
    c.model.moe.n_experts = 8;
    c.model.moe.n_dense_layers
        = (uint32_t) g_rand_int_range (rand, 0, (gint32) MIN (c.model.n_layers + 1, 5));
    c.model.moe.every = (uint32_t) g_rand_int_range (rand, 1, 3);
    c.times.layer[1] = g_rand_int_range (rand, 50, 400);
    double over = excess (&c);
    sum += over;
    if (strcmp (c.s.schedule, "1f1b") == 0)
      LS_CHECK_DOUBLE (over, ==, 0);
    LS_CHECK_DOUBLE (over, <, 0.25);
    ls_strategy_clear (&c.s);
  }
  LS_CHECK_DOUBLE (sum / 1000, <, 0.01);
}

/* What layouts are compared by, the first member first: less is better. */
#define N_MEASURES 5
static void
measure (const Case *c, const uint32_t *layers, double ret[N_MEASURES])
{
  memset (ret, 0, N_MEASURES * sizeof *ret);
  for (uint32_t r = 0; r < c->s.pp; r++) {
    double t = (double) rank_time (c, layers, r);
    ret[2] = t >= ret[0] ? r : ret[2];
    ret[0] = MAX (ret[0], t);
    ret[3] += t * t;
  }
  for (uint32_t i = 0; i < c->n; i++) {
    double t = (double) chunk_time (c, layers, i);
    ret[1] = MAX (ret[1], t);
    ret[4] += i * t;
  }
}

static bool
is_less (const double a[N_MEASURES], const double b[N_MEASURES])
{
  for (int i = 0; i < N_MEASURES; i++)
    if (a[i] != b[i])
      return a[i] < b[i];
  return false;
}

/* Times are of few different numbers, so that many layouts are as good in what comes first. */
static void
of_two_kinds_of_layers_no_move_helps (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);
  for (int n = 0; n < 1000; n++) {
    Case c;
    uint32_t layers[12];
    double own[N_MEASURES], other[N_MEASURES];
    random_case (rand, &c);
    c.model.moe.n_experts = 8;
    c.model.moe.n_dense_layers
        = (uint32_t) g_rand_int_range (rand, 0, (gint32) MIN (c.model.n_layers + 1, 5));
    c.model.moe.every = (uint32_t) g_rand_int_range (rand, 1, 3);
    c.times = (LsPartTimes) { g_rand_int_range (rand, 0, 2),
                              g_rand_int_range (rand, 0, 4),
                              { g_rand_int_range (rand, 1, 4), g_rand_int_range (rand, 1, 4) } };
    ls_balance_layers (&c.model, &c.s, &c.times, layers);
    measure (&c, layers, own);
    for (uint32_t i = 0; i < c.n && ls_model_n_layer_kinds (&c.model) > 1; i++)
      for (uint32_t k = 0; k < c.n; k++) {
        if (i == k || layers[i] <= (i == 0 || i == c.n - 1 ? 0u : 1u))
          continue;
        layers[i]--, layers[k]++;
        measure (&c, layers, other);
        layers[i]++, layers[k]--;
        LS_CHECK (!is_less (other, own));
      }
    ls_strategy_clear (&c.s);
  }
}

/* --- worked examples ---------------------------------------------------------------------- */

static void
check_layout (const LsModel *m, uint32_t pp, uint32_t vpp, const char *schedule, LsPartTimes times,
              const char *expected)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.pp = pp;
  s.vpp = vpp;
  s.schedule = g_strdup (schedule);
  uint32_t layers[64];
  ls_balance_layers (m, &s, &times, layers);
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < pp * vpp; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? " " : "", layers[i]);
  LS_CHECK_STR (text->str, expected);
  g_string_free (text, TRUE);
  ls_strategy_clear (&s);
}

/* Of equals the first have more: the last of the busiest ranks is then as early as it can be. */
static void
layouts_are_as_documented (void)
{
  const LsModel dense = { .n_layers = 61 },
                deepseek = { .n_layers = 61, .moe.n_experts = 256, .moe.n_dense_layers = 3, .moe.every = 1 };
  check_layout (&dense, 16, 1, "1f1b", (LsPartTimes) { 1, 15, { 10 } }, "3 4 4 4 4 4 4 4 4 4 4 4 4 4 4 2");
  check_layout (&dense, 16, 1, "1f1b", (LsPartTimes) { 0, 0, { 10 } }, "4 4 4 4 4 4 4 4 4 4 4 4 4 3 3 3");
  check_layout (&dense, 4, 1, "1f1b", (LsPartTimes) { 0, 80, { 10 } }, "18 17 17 9");
  check_layout (&deepseek, 16, 1, "1f1b", (LsPartTimes) { 3, 43, { 39, 111 } },
                "5 4 4 4 4 4 4 4 4 4 4 4 3 3 3 3");
  check_layout (&deepseek, 8, 2, "interleaved-1f1b", (LsPartTimes) { 3, 43, { 39, 111 } },
                "5 4 4 4 4 4 4 4 4 4 4 4 3 3 3 3");
}

/* A head that costs more than all else is alone. */
static void
ends_may_be_without_layers (void)
{
  const LsModel m = { .n_layers = 6 };
  check_layout (&m, 4, 1, "1f1b", (LsPartTimes) { 0, 100, { 10 } }, "2 2 2 0");
  check_layout (&m, 2, 2, "zbv", (LsPartTimes) { 20, 100, { 10 } }, "0 3 3 0");
}

/* --- a strategy ------------------------------------------------------------------------------ */

static bool
resolve (LsStrategy *s, const LsModel *m)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_strategy_resolve (s, m, 8, 8, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  LS_CHECK_STR (text, "");
  return ok;
}

/* Found once, kept by what follows, and found anew for other degrees; what was given stays. */
static void
a_strategy_is_balanced_where_layers_do_not_come_out_even (void)
{
  LsModel m = {
    .name = (char *) "small",
    .n_layers = 9,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 64,
    .ffn = 2048,
    .vocab = 50000,
    .seq = 512,
    .mlp = LS_MLP_GELU,
    .linear_bias = true,
  };
  g_autoptr (GError) error = NULL;
  LsStrategy s;
  ls_strategy_init (&s);
  s.pp = 4;
  if (resolve (&s, &m) && LS_CHECK (ls_chunks_want_balance (&s, &m))
      && LS_CHECK (ls_strategy_balance (&s, &m, NULL, &error))) {
    LS_CHECK (s.layout.layers_are_found && s.layout.n_layers_per_chunk == 4
              && !ls_chunks_want_balance (&s, &m));
    LS_CHECK_INT (s.layout.layers_per_chunk[3], <,
                  s.layout.layers_per_chunk[0]); /* the head is of many words */
  }
  s.pp = 2;
  s.dp = 0;
  if (resolve (&s, &m) && LS_CHECK (ls_strategy_balance (&s, &m, NULL, &error)))
    LS_CHECK (s.layout.n_layers_per_chunk == 2
              && s.layout.layers_per_chunk[0] + s.layout.layers_per_chunk[1] == 9);
  s.layout.layers_are_found = false; /* as if given */
  LS_CHECK (resolve (&s, &m) && s.layout.n_layers_per_chunk == 2);
  ls_strategy_clear (&s);
}

static void
layers_that_come_out_even_are_balanced_if_asked_for (void)
{
  const LsModel m = { .n_layers = 8 };
  LsStrategy s = { .pp = 4, .vpp = 1 };
  LS_CHECK (!ls_chunks_want_balance (&s, &m));
  s.layout.layer_rule = LS_LAYER_RULE_BALANCED;
  LS_CHECK (ls_chunks_want_balance (&s, &m));
  s.pp = 1;
  LS_CHECK (!ls_chunks_want_balance (&s, &m));
}

static void
layers_by_weights_lie_as_nanotron_builds_them (void)
{
  /* bench_cluster's llama-1B, and one whose head is as heavy as nine layers */
  LsModel m = { .n_layers = 24,
                .hidden = 2048,
                .n_heads = 32,
                .head_dim = 64,
                .ffn = 4096,
                .vocab = 50257,
                .mlp = LS_MLP_SWIGLU };
  uint32_t layers[4];
  if (LS_CHECK (ls_chunks_by_weights (&m, 4, layers)))
    LS_CHECK (layers[0] == 7 && layers[1] == 7 && layers[2] == 6 && layers[3] == 4);
  if (LS_CHECK (ls_chunks_by_weights (&m, 1, layers)))
    LS_CHECK_INT (layers[0], ==, 24);
  m.vocab = 200000;
  LS_CHECK (!ls_chunks_by_weights (&m, 4, layers));
  LS_CHECK (ls_chunks_by_weights (&m, 3, layers));
}

static void
layers_by_modules_lie_as_scaling_deals_them (void)
{
  LsModel m = { .n_layers = 80 };
  uint32_t layers[8];
  if (LS_CHECK (ls_chunks_by_modules (&m, 4, layers)))
    LS_CHECK (layers[0] == 20 && layers[1] == 21 && layers[2] == 21 && layers[3] == 18);
  if (LS_CHECK (ls_chunks_by_modules (&m, 1, layers)))
    LS_CHECK_INT (layers[0], ==, 80);
  m.n_layers = 2; /* embedding and a layer, a layer, norm, head */
  LS_CHECK (!ls_chunks_by_modules (&m, 4, layers));
}

static void
weights_rule_even_where_layers_come_out_even (void)
{
  LsModel m = { .n_layers = 24,
                .hidden = 2048,
                .n_heads = 32,
                .n_kv_heads = 32,
                .head_dim = 64,
                .ffn = 4096,
                .vocab = 50257,
                .seq = 4096,
                .mlp = LS_MLP_SWIGLU };
  g_autoptr (GError) error = NULL;
  LsStrategy s;
  ls_strategy_init (&s);
  s.pp = 4;
  s.layout.layer_rule = LS_LAYER_RULE_WEIGHTS;
  if (resolve (&s, &m) && LS_CHECK (ls_strategy_balance (&s, &m, NULL, &error)))
    LS_CHECK (s.layout.n_layers_per_chunk == 4 && s.layout.layers_per_chunk[0] == 7
              && s.layout.layers_per_chunk[3] == 4);
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (of_layers_alike_no_layout_is_better),
               LS_TEST (of_two_kinds_of_layers_none_is_better_with_a_chunk_per_rank),
               LS_TEST (of_two_kinds_of_layers_no_move_helps), LS_TEST (layouts_are_as_documented),
               LS_TEST (ends_may_be_without_layers),
               LS_TEST (a_strategy_is_balanced_where_layers_do_not_come_out_even),
               LS_TEST (layers_that_come_out_even_are_balanced_if_asked_for),
               LS_TEST (layers_by_weights_lie_as_nanotron_builds_them),
               LS_TEST (layers_by_modules_lie_as_scaling_deals_them),
               LS_TEST (weights_rule_even_where_layers_come_out_even))
