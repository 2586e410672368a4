/* Pins how tokens fall on experts: whole numbers that add up, capacities, and rows of zeros. */
#include "expert_models.h"

/* The worked example of expert_load.h. */
static void
largest_remainders_get_the_rest (void)
{
  LsModel m = mixtral ();
  m.moe.n_experts = 4;
  m.seq = 5;
  LsShard s = expert_shard (&m, 1, 1, 1);
  g_autofree double *w = shares ("3,1", &m);
  s.experts.share = w;
  uint64_t kept[4];
  ls_expert_tokens (&m, &s, kept, NULL);
  LS_CHECK (kept[0] == 4 && kept[1] == 1 && kept[2] == 4 && kept[3] == 1);
}

/* The same, padded: to the fullest of a rank after they were sent, to their capacity before. */
static void
rows_of_zeros_make_experts_alike (void)
{
  LsModel m = mixtral ();
  m.moe.n_experts = 4;
  m.seq = 5;
  LsShard s = expert_shard (&m, 1, 1, 1);
  g_autofree double *w = shares ("3,1", &m), *rising = shares ("1,2,3,4", &m);
  uint64_t brought[4], computed[4], of_rank[2];
  s.experts.share = w;
  s.experts.padding = LS_EXPERT_PADDING_FULLEST;
  ls_expert_rows (&m, &s, brought, computed);
  LS_CHECK (brought[0] == 4 && brought[1] == 1 && brought[2] == 4 && brought[3] == 1);
  LS_CHECK (computed[0] == 4 && computed[1] == 4 && computed[2] == 4 && computed[3] == 4);
  LS_CHECK_NEAR (ls_expert_blank_share (&m, &s), 0.6, 1e-12);
  s.experts.padding = LS_EXPERT_PADDING_CAPACITY;
  s.experts.capacity = 1.2;
  ls_expert_rows (&m, &s, brought, computed);
  for (guint e = 0; e < 4; e++)
    LS_CHECK (brought[e] == 3 && computed[e] == 3);
  LS_CHECK_NEAR (ls_expert_kept_share (&m, &s), 0.8, 1e-12);
  LS_CHECK_NEAR (ls_expert_blank_share (&m, &s), 0.4, 1e-12);

  s = expert_shard (&m, 1, 2, 1); /* 1 2 3 4 of 20 assignments: 2 4, 6 8 */
  s.experts.share = rising;
  s.experts.padding = LS_EXPERT_PADDING_FULLEST;
  ls_expert_rows (&m, &s, brought, computed);
  LS_CHECK (computed[0] == 4 && computed[1] == 4 && computed[2] == 8 && computed[3] == 8);
  ls_expert_rows_of_ranks (&m, &s, of_rank);
  LS_CHECK (of_rank[0] == 6 && of_rank[1] == 14);
}

static void
all_assignments_are_shared_out (void)
{
  static const char *const loads[]
      = { "even", "zipf:1.2", "zipf:0", "lognormal:1:7", "lognormal:3:1", "5,1,1,1,1", "1,1,0,0,0,0,0,0" };
  LsModel m = mixtral ();
  for (guint i = 0; i < G_N_ELEMENTS (loads); i++)
    for (m.seq = 1; m.seq < 5000; m.seq = m.seq * 7 + 3) {
      g_autofree double *w = shares (loads[i], &m);
      LsShard s = expert_shard (&m, 1, 4, 2);
      uint64_t kept[8], sent[8], of_rank[4], tokens = 8ul * m.seq;
      s.experts.share = w;
      ls_expert_tokens (&m, &s, kept, sent);
      ls_expert_rows_of_ranks (&m, &s, of_rank);
      LS_CHECK_INT (SUM (uint64_t, 8, kept), ==, tokens * m.moe.top_k);
      LS_CHECK_INT (SUM (uint64_t, 4, of_rank), ==, tokens * m.moe.top_k);
      for (guint e = 0; e < 8; e++)
        LS_CHECK (kept[e] <= tokens && kept[e] == sent[e]); /* nobody goes to an expert twice */
    }
}

static void
a_seed_says_it_all (void)
{
  LsModel m = mixtral ();
  g_autofree double *a = shares ("lognormal:1:7", &m), *b = shares ("lognormal:1:7", &m),
                    *c = shares ("lognormal:1:8", &m);
  LS_CHECK (memcmp (a, b, 8 * sizeof *a) == 0 && memcmp (a, c, 8 * sizeof *a) != 0);
  LS_CHECK_NEAR (SUM (double, 8, a), 1, 1e-12);
}

static void
wrong_loads_are_refused (void)
{
  static const char *const loads[] = { "",
                                       "zipf",
                                       "zipf:",
                                       "zipf:-1",
                                       "zipf:1x",
                                       "lognormal:1",
                                       "lognormal:1:",
                                       "lognormal:1:2x",
                                       "1,",
                                       "1,-1",
                                       "1,nan",
                                       "0",
                                       "1,2,3,4,5,6,7,8,9",
                                       "1,0,0,0,0,0,0,0" /* top_k is 2 */ };
  LsModel m = mixtral ();
  for (guint i = 0; i < G_N_ELEMENTS (loads); i++) {
    g_autofree char *why = NULL;
    g_autofree double *w = ls_expert_shares (loads[i], &m, &why);
    LS_CHECK (w == NULL && why != NULL);
  }
}

static void
a_capacity_drops_what_is_above (void)
{
  LsModel m = mixtral ();
  LsShard s = expert_shard (&m, 1, 8, 1);
  g_autofree double *w = shares ("3,1,1,1,1,1,1,1", &m);
  uint64_t kept[8], mean = 8192;
  s.experts.share = w;
  s.experts.capacity = 1.25;
  ls_expert_tokens (&m, &s, kept, NULL);
  /* 0.3 of 65,536 is 19,661; above 1.25 times the mean, 10,240, nothing is computed. */
  LS_CHECK_INT (kept[0], ==, 10240);
  LS_CHECK (kept[1] < mean && kept[7] < mean);
  LS_CHECK_NEAR (ls_expert_kept_share (&m, &s), 1 - (19661 - 10240) / 65536.0, 1e-12);
}

/* A token chooses two experts, so none has more than half of the choices; the others share the rest. */
static void
no_expert_has_more_than_each_token (void)
{
  static const double expected[] = { 0.5, 1 / 7.0, 1 / 14.0, 1 / 14.0, 1 / 14.0, 1 / 14.0, 1 / 14.0, 0 };
  LsModel m = mixtral ();
  g_autofree double *w = shares ("93,2,1,1,1,1,1,0", &m);
  for (uint32_t e = 0; w && e < G_N_ELEMENTS (expected); e++)
    LS_CHECK_NEAR (w[e], expected[e], 1e-12);
}

LS_TEST_SUITE (LS_TEST (no_expert_has_more_than_each_token), LS_TEST (largest_remainders_get_the_rest),
               LS_TEST (rows_of_zeros_make_experts_alike), LS_TEST (all_assignments_are_shared_out),
               LS_TEST (a_seed_says_it_all), LS_TEST (wrong_loads_are_refused),
               LS_TEST (a_capacity_drops_what_is_above))
