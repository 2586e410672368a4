/* Pins shared experts beside the exchange of tokens (lower/layers/lower_shared.c): they do all that they do
 * before it, with the same bytes on every link, sooner; they begin with the exchange, what is behind it waits
 * for it alone, and what needs them for them. */
#include "exchanges.h"

static const Case shared_jobs[] = {
  { "none", 1, 1, 1, 8, 2 },
  { "none", 1, 1, 1, 8, 2, .dispatcher = LS_DISPATCHER_DEEPEP },
  { "none", 1, 1, 1, 8, 2, .is_full = true },
  { "none", 1, 1, 1, 8, 2, .recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION },
  { "none", 1, 1, 1, 8, 2, .recompute_parts = LS_RECOMPUTE_MOE | LS_RECOMPUTE_NORM },
  { "none", 1, 1, 1, 4, 2, .load = "zipf:0.7", .dp_kind = LS_DP_DDP },
  { "1f1b", 2, 1, 1, 4, 4, .p2p = LS_P2P_BATCHED, .dp_kind = LS_DP_MEGATRON, .zero = 1 },
  { "zb-h1", 2, 1, 1, 4, 4, .p2p = LS_P2P_BATCHED },
};

static LsModel
shared_model (void)
{
  LsModel m = moe_model (0);
  m.shared_ffn = 4096;
  return m;
}

/* The exchange hides some of the kernels, or they of it. */
static void
shared_experts_do_the_same_sooner (void)
{
  LsModel m = shared_model ();
  for (guint i = 0; i < G_N_ELEMENTS (shared_jobs); i++) {
    Ran one = run_job (&shared_jobs[i], &m, PLAIN), beside = run_job (&shared_jobs[i], &m, SHARED_BESIDE);
    do_the_same (&one, &beside);
    LS_CHECK_INT (beside.least, <=, step_of (&beside));
    LS_CHECK_INT (step_of (&beside), <, step_of (&one));
    ran_clear (&one);
    ran_clear (&beside);
  }
}

/* The first span of that name from `from` on, on rank 0 in its order of issue; `from` goes behind it. */
static LsSpan
next_span (const Ran *r, const GArray *spans, guint *from, const char *name)
{
  for (; *from < spans->len; (*from)++)
    if (g_strcmp0 (ls_span_op (r->timeline, 0, &g_array_index (spans, LsSpan, *from))->name, name) == 0)
      return g_array_index (spans, LsSpan, (*from)++);
  LS_CHECK (!name);
  return (LsSpan) { 0 };
}

static GArray *
spans_in_order (const Ran *r)
{
  GArray *spans = g_array_new (FALSE, FALSE, sizeof (LsSpan));
  g_array_append_vals (spans, r->timeline->ranks[0].spans, r->timeline->ranks[0].n);
  g_array_sort (spans, by_place);
  return spans;
}

/* With an exchange that takes long: what runs beside it begins with it, and what is behind waits for both. */
static void
check_exchange (const Ran *r, const char *const names[6])
{
  GArray *spans = spans_in_order (r);
  guint at = 0;
  for (guint layer = 0; layer < 8; layer++) {
    LsSpan before = next_span (r, spans, &at, names[0]), exchange = next_span (r, spans, &at, names[1]),
           first = next_span (r, spans, &at, names[2]), last = next_span (r, spans, &at, names[3]),
           behind = next_span (r, spans, &at, names[4]), sum = next_span (r, spans, &at, names[5]);
    LS_CHECK_INT (first.start, >=, before.end);
    LS_CHECK_INT (exchange.start, >=, before.end);
    LS_CHECK_INT (first.start, <, exchange.end);
    LS_CHECK_INT (behind.start, >=, exchange.end);
    LS_CHECK_INT (sum.start, >=, last.end);
  }
  g_array_unref (spans);
}

static void
shared_experts_run_beside_the_exchange (void)
{
  static const char *const orders[][6] = {
    { "permute", "dispatch all-to-all", "fc1", "swiglu", "expert-fc1", "shared-expert-add" },
    { "expert-fc2", "combine all-to-all", "fc2", "fc2", "unpermute", "shared-expert-add" },
    { "unpermute-bwd", "combine grad all-to-all", "fc2-dgrad", "fc2-wgrad", "expert-fc2-dgrad",
      "router-dgrad" },
    { "expert-fc1-wgrad", "dispatch grad all-to-all", "swiglu-bwd", "fc1-wgrad", "permute-bwd",
      "flash-attention-bwd" },
  };
  LsModel m = shared_model ();
  m.top_k = 8;
  m.shared_ffn = 512;
  Ran r = run_job (&shared_jobs[0], &m, SHARED_BESIDE);
  for (guint i = 0; i < G_N_ELEMENTS (orders); i++)
    check_exchange (&r, orders[i]);
  ran_clear (&r);
}

/* With sequence parallelism the gathered input is kept: of three gathers over tp and layer, and two scatters,
 * one gather is not there. */
static void
what_is_gathered_is_kept (void)
{
  LsModel m = shared_model ();
  Case j = { "none", 1, 1, 2, 4, 1 };
  Ran one = run_job (&j, &m, PLAIN), beside = run_job (&j, &m, SHARED_BESIDE);
  g_autofree uint64_t *x = g_new0 (uint64_t, one.plan->n_kernels),
                      *y = g_new0 (uint64_t, beside.plan->n_kernels);
  uint64_t calls[2], bytes[2];
  count_ops (one.plan, 0, x, &calls[0], &bytes[0]);
  count_ops (beside.plan, 0, y, &calls[1], &bytes[1]);
  LS_CHECK_INT (calls[0] - calls[1], ==, 8);
  LS_CHECK_INT (bytes[0] - bytes[1], ==, 8 * 2 * 1024 * 1024);
  ran_clear (&one);
  ran_clear (&beside);
}

static void
what_cannot_run_beside_is_refused (void)
{
  static const struct {
    uint32_t shared, zero, parts;
    int pairs;
    const char *why;
  } cases[] = {
    { 0, 0, 0, 0, "expected 0, as the model has no shared experts" },
    { 64, 3, 0, 0, "expected whole parameters" },
    { 64, 0, LS_RECOMPUTE_SHARED, 0, "expected 0 where shared experts run again by themselves" },
    { 64, 0, 0, 1, "expected 0 with ep_overlap" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = moe_model (0);
    LsStrategy s;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    m.shared_ffn = cases[i].shared;
    ls_strategy_init (&s);
    s.ep = 2;
    s.shared_overlap = true;
    s.ep_overlap = cases[i].pairs;
    s.zero_stage = cases[i].zero;
    s.recompute = cases[i].parts ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
    s.recompute_parts = cases[i].parts;
    LS_CHECK (!ls_strategy_resolve (&s, &m, 8, 8, diags));
    g_autofree char *text = ls_diag_list_format (diags);
    LS_CHECK (strstr (text, cases[i].why) != NULL);
    ls_strategy_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (shared_experts_do_the_same_sooner), LS_TEST (shared_experts_run_beside_the_exchange),
               LS_TEST (what_is_gathered_is_kept), LS_TEST (what_cannot_run_beside_is_refused))
