/* Pins what a strategy cuts over ranks: layers into chunks, documents into sequences. */
#include "ls_test.h"

#include <math.h>

#include "strategy/shard.h"

/* Pins the layer rule of strategy/shard.h and the exact refusals. */

/* The layers of each chunk as text, or the diagnostics. */
static char *
chunks_of (uint32_t n_layers, uint32_t pp, uint32_t vpp, const uint32_t *given, uint32_t n_given)
{
  LsModel model = { .n_layers = n_layers };
  LsStrategy s;
  ls_strategy_init (&s);
  s.pp = pp;
  s.vpp = vpp;
  s.layout.layers_per_chunk = (uint32_t *) given;
  s.layout.n_layers_per_chunk = n_given;

  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree uint32_t *layers = g_new (uint32_t, MIN ((uint64_t) pp * vpp, LS_MAX_CHUNKS));
  gboolean is_legal = ls_chunk_layers (&s, &model, layers, diags);
  LS_CHECK_INT (is_legal, ==, ls_chunk_layers (&s, &model, NULL, diags));
  LS_CHECK_INT (is_legal, ==, ls_diag_list_n (diags) == 0);
  if (!is_legal) {
    g_autoptr (LsDiagList) once = ls_diag_list_new ();
    ls_chunk_layers (&s, &model, NULL, once);
    return ls_diag_list_format (once);
  }

  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < pp * vpp; i++)
    g_string_append_printf (text, "%s%u", i ? " " : "", layers[i]);
  return g_string_free (text, FALSE);
}

static void
check_chunks (uint32_t n_layers, uint32_t pp, uint32_t vpp, const char *expected)
{
  g_autofree char *text = chunks_of (n_layers, pp, vpp, NULL, 0);
  LS_CHECK_STR (text, expected);
}

static void
layers_that_divide_are_spread_evenly (void)
{
  check_chunks (48, 1, 1, "48");
  check_chunks (24, 4, 1, "6 6 6 6");
  check_chunks (96, 4, 3, "8 8 8 8 8 8 8 8 8 8 8 8");
}

/* BLOOM: 70 layers on 12 stages. Llama 3 405B: 126 layers on 16 stages, one
 * layer fewer on the first and the last. */
static void
embedding_and_head_count_as_layers_otherwise (void)
{
  check_chunks (70, 12, 1, "5 6 6 6 6 6 6 6 6 6 6 5");
  check_chunks (126, 16, 1, "7 8 8 8 8 8 8 8 8 8 8 8 8 8 8 7");
  check_chunks (30, 8, 2, "1 2 2 2 2 2 2 2 2 2 2 2 2 2 2 1");
  check_chunks (2, 2, 2, "0 1 1 0");
}

/* Which layout is found: test_balance.c. */
static void
what_divides_neither_way_is_to_be_balanced (void)
{
  const LsModel model = { .n_layers = 48 };
  LsStrategy s;
  ls_strategy_init (&s);
  for (s.pp = 1; s.pp <= 52; s.pp++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LS_CHECK_INT (ls_chunks_want_balance (&s, &model), ==, 48 % s.pp != 0 && 50 % s.pp != 0);
    LS_CHECK_INT (ls_chunk_layers (&s, &model, NULL, diags), ==, s.pp <= 50);
  }
}

static void
more_chunks_than_layers_fill_are_refused (void)
{
  check_chunks (
      48, 51, 1,
      "error: /pp: expected pp * vpp to be at most layers + 2 = 48 + 2, as only the first and the last chunk may"
      " be without layers; got 51 * 1 = 51\n");
  check_chunks (
      48, 4, 13,
      "error: /vpp: expected pp * vpp to be at most layers + 2 = 48 + 2, as only the first and the last chunk may"
      " be without layers; got 4 * 13 = 52\n");
}

static void
a_guard_limits_the_number_of_chunks (void)
{
  check_chunks (1, 65536, 65536, "error: /pp: expected pp * vpp to be at most 4096; got 65536 * 65536\n");
}

static void
given_layers_override (void)
{
  const uint32_t uneven[] = { 0, 5, 3, 2 };
  g_autofree char *legal = chunks_of (10, 2, 2, uneven, 4);
  LS_CHECK_STR (legal, "0 5 3 2");

  g_autofree char *n = chunks_of (10, 5, 1, uneven, 4);
  LS_CHECK_STR (n, "error: /layers_per_chunk: expected pp * vpp = 5 * 1 = 5 numbers; got 4\n");

  g_autofree char *sum = chunks_of (12, 4, 1, uneven, 4);
  LS_CHECK_STR (sum,
                "error: /layers_per_chunk: expected numbers that sum to the model's 12 layers; got 10\n");

  const uint32_t hole[] = { 5, 0, 3, 2 };
  g_autofree char *empty = chunks_of (10, 4, 1, hole, 4);
  LS_CHECK_STR (empty,
                "error: /layers_per_chunk: expected at least one layer in chunk 1; got 0 (only the first"
                " and the last chunk may be without)\n");
}

/* Pins documents of packed sequences: which lengths are drawn, where they are cut, which micro-batch of which
 * copy gets which, and what ranks of context parallelism meet of them: counted by hand. */

static const LsModel dense = {
  .n_layers = 2,
  .hidden = 64,
  .n_heads = 4,
  .n_kv_heads = 4,
  .head_dim = 16,
  .ffn = 128,
  .vocab = 100,
  .seq = 8,
  .attention = LS_ATTENTION_FLASH,
};

/* Sequences of 8 tokens, of documents of 5: 5 3, 2 5 1, 4 4, 1 5 2, ... */
static LsStrategy
packed_job (const char *lengths, uint32_t dp, uint32_t n_sequences)
{
  LsStrategy s;
  g_autofree char *why = NULL;
  ls_strategy_init (&s);
  s.dp = dp;
  s.global_batch = n_sequences;
  s.seq = 8;
  s.use.attention = LS_ATTENTION_FLASH;
  s.docs.lengths = g_strdup (lengths);
  s.docs.drawn = ls_lengths_parse (lengths, &why);
  return s;
}

static LsPacking *
pack (const LsStrategy *s)
{
  g_autoptr (GError) error = NULL;
  LsPacking *x = NULL;
  LS_CHECK (ls_packing_new (s, &dense, &x, &error));
  LS_CHECK_NO_ERROR (error);
  return x;
}

static void
documents_end_with_their_sequence (void)
{
  LsStrategy s = packed_job ("fixed:5", 1, 4);
  g_autoptr (LsPacking) x = pack (&s);
  LS_CHECK_DOUBLE (x->mean.pairs, ==, (25 + 9 + 4 + 25 + 1 + 16 + 16 + 1 + 25 + 4) / (4 * 64.0));
  LS_CHECK_DOUBLE (x->n_documents, ==, 10);
  LS_CHECK_INT (x->n_drawn, ==, 3); /* two have 1, 2 and 5 */
  LS_CHECK_INT (x->n_longer, ==, 0);
  LS_CHECK_DOUBLE (x->busiest_copy, ==, 1);
  ls_strategy_clear (&s);
}

/* 7 1, 6 2, 5 3 and 4 4: 50, 40, 34 and 32 of 64 pairs; the first copy gets the first and the last. */
static void
longer_documents_are_counted (void)
{
  LsStrategy s = packed_job ("fixed:12", 1, 4); /* 8; 4 and 4; 8; 8 of the third */
  g_autoptr (LsPacking) x = pack (&s);
  LS_CHECK_DOUBLE (x->mean.pairs, ==, (64 + 16 + 16 + 64 + 64) / (4 * 64.0));
  LS_CHECK_INT (x->n_longer, ==, 3);
  ls_strategy_clear (&s);
}

static void
sorted_sequences_are_dealt_forth_and_back (void)
{
  LsStrategy s = packed_job ("fixed:7", 2, 4);
  s.docs.balance = LS_LENGTHS_SORTED;
  g_autoptr (LsPacking) x = pack (&s);
  static const double wanted[] = { 50, 32, 40, 34 }; /* of either copy */
  for (uint32_t i = 0; i < 4; i++)
    LS_CHECK_DOUBLE (x->drawn[x->number[i]].pairs, ==, wanted[i] / 64);
  LS_CHECK_NEAR (x->busiest_copy, 82 / 78.0, 1e-12);
  ls_strategy_clear (&s);
}

/* The worked example of model/documents.h; a ring cuts documents, and ranks are alike. */
static void
ranks_meet_what_is_before_their_tokens (void)
{
  LsStrategy s = packed_job ("fixed:5", 1, 1);
  s.cp = 2;
  s.mp.cp_kind = LS_CP_ALL_GATHER;
  g_autoptr (LsPacking) gathered = pack (&s);
  LS_CHECK_DOUBLE (gathered->drawn[0].of_rank[0], ==, 6 / 16.0);
  LS_CHECK_DOUBLE (gathered->drawn[0].of_rank[1], ==, 11 / 16.0);
  s.mp.cp_balance = false; /* tokens 0 to 3, and the rest: 8 pairs of 8; 4.5 and 4.5 of 24 */
  g_autoptr (LsPacking) uneven = pack (&s);
  LS_CHECK_DOUBLE (uneven->drawn[0].of_rank[0], ==, 1);
  LS_CHECK_DOUBLE (uneven->drawn[0].of_rank[1], ==, 9 / 24.0);
  s.mp.cp_kind = LS_CP_RING;
  g_autoptr (LsPacking) ring = pack (&s);
  LS_CHECK (!ring->drawn[0].of_rank);
  ls_strategy_clear (&s);
}

/* In both, of how many copies there are and in which order they come too. */
static void
a_step_has_the_same_documents_however_it_is_dealt (void)
{
  LsStrategy s = packed_job ("lognormal:3:1", 1, 64);
  g_autoptr (LsPacking) one = pack (&s);
  s.dp = 4;
  s.micro_batch = 2;
  g_autoptr (LsPacking) four = pack (&s);
  s.docs.seed = 1;
  g_autoptr (LsPacking) other = pack (&s);
  double sum = 0;
  for (uint32_t i = 0; i < 4 * 8; i++)
    sum += four->drawn[four->number[i]].pairs / (4 * 8);
  LS_CHECK_NEAR (one->mean.pairs, four->mean.pairs, 1e-12);
  LS_CHECK_NEAR (sum, four->mean.pairs, 1e-12);
  LS_CHECK (four->busiest_copy > 1 && other->mean.pairs != four->mean.pairs);
  s.docs.draw = LS_LENGTHS_MEAN;
  g_autoptr (LsPacking) mean = pack (&s);
  LS_CHECK (!mean->number && mean->n_drawn == 0 && mean->busiest_copy == 1);
  ls_strategy_clear (&s);
}

/* Mean and spread of many draws, to what 10^5 of them can tell. */
static void
lengths_are_drawn_as_said (void)
{
  static const struct {
    const char *text;
    double mean, least, most;
  } rows[] = {
    { "fixed:7", 7, 7, 7 },
    { "uniform:2:5", 3.5, 2, 5 },
    { "lognormal:1000:0.5", 1000 * 1.1331485, 1, 1e5 }, /* exp (0.5^2 / 2) */
    { "lognormal:100:3:100", 0, 1, 100 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *why = NULL;
    g_autoptr (LsLengths) lengths = ls_lengths_parse (rows[i].text, &why);
    double sum = 0, least = 1e9, most = 0;
    uint64_t state = 5;
    for (int k = 0; k < 100000 && LS_CHECK (lengths); k++) {
      double length = ls_lengths_draw (lengths, &state);
      sum += length;
      least = MIN (least, length);
      most = MAX (most, length);
    }
    LS_CHECK (rows[i].mean == 0 || fabs (sum / 100000 / rows[i].mean - 1) < 0.01);
    LS_CHECK (least >= rows[i].least && most <= rows[i].most);
  }
  g_autofree char *why = NULL;
  static const LsLengthCount counts[] = { { 10, 0 }, { 20, 3 }, { 40, 1 } };
  g_autoptr (LsLengths) lengths = ls_lengths_new_counted (counts, 3, &why);
  uint64_t state = 5;
  double n = 0;
  for (int k = 0; k < 100000; k++) {
    uint32_t length = ls_lengths_draw (lengths, &state);
    n += length == 20;
    LS_CHECK (length == 20 || length == 40);
  }
  LS_CHECK_NEAR (n, 75000, 0.01);
}

static void
what_are_no_lengths_is_refused (void)
{
  static const char *const wrong[] = { "",
                                       "fixed",
                                       "fixed:0",
                                       "fixed:-1",
                                       "fixed:2147483648",
                                       "fixed:5:5",
                                       "uniform:5",
                                       "uniform:5:4",
                                       "uniform:0:4",
                                       "lognormal:10",
                                       "lognormal:0:1",
                                       "lognormal:10:x",
                                       "lognormal:10:9",
                                       "lognormal:10:nan",
                                       "lognormal:10:1:5",
                                       "normal:5:1" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autofree char *why = NULL;
    ls_check_impl (!ls_lengths_parse (wrong[i], &why) && why, __FILE__, __LINE__, "%s", wrong[i]);
  }
  LsStrategy s = packed_job ("fixed:1", 1, 1 << 30);
  g_autoptr (GError) error = NULL;
  LsPacking *x = NULL;
  s.global_batch = 1 << 24;
  LS_CHECK (!ls_packing_new (&s, &dense, &x, &error) && error && error->code == LS_ERROR_LIMIT);
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (layers_that_divide_are_spread_evenly),
               LS_TEST (embedding_and_head_count_as_layers_otherwise),
               LS_TEST (what_divides_neither_way_is_to_be_balanced),
               LS_TEST (more_chunks_than_layers_fill_are_refused),
               LS_TEST (a_guard_limits_the_number_of_chunks), LS_TEST (given_layers_override),
               LS_TEST (documents_end_with_their_sequence), LS_TEST (longer_documents_are_counted),
               LS_TEST (sorted_sequences_are_dealt_forth_and_back),
               LS_TEST (ranks_meet_what_is_before_their_tokens),
               LS_TEST (a_step_has_the_same_documents_however_it_is_dealt),
               LS_TEST (lengths_are_drawn_as_said), LS_TEST (what_are_no_lengths_is_refused))
