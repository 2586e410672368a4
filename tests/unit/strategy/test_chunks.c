/* Pins the layer rule of strategy/chunks.h and the exact refusals. */
#include "ls_test.h"
#include "strategy/chunks.h"

/* The layers of each chunk as text, or the diagnostics. */
static char *
chunks_of (uint32_t n_layers, uint32_t pp, uint32_t vpp, const uint32_t *given, uint32_t n_given)
{
  LsModel model = { .n_layers = n_layers };
  LsStrategy s;
  ls_strategy_init (&s);
  s.pp = pp;
  s.vpp = vpp;
  s.layers_per_chunk = (uint32_t *) given;
  s.n_layers_per_chunk = n_given;

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

LS_TEST_SUITE (LS_TEST (layers_that_divide_are_spread_evenly),
               LS_TEST (embedding_and_head_count_as_layers_otherwise),
               LS_TEST (what_divides_neither_way_is_to_be_balanced),
               LS_TEST (more_chunks_than_layers_fill_are_refused),
               LS_TEST (a_guard_limits_the_number_of_chunks), LS_TEST (given_layers_override))
