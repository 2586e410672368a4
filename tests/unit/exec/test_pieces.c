/* Pins what runs beside the exchange of tokens: other passes, and shared experts. */
#include "exchanges.h"

/* Pins passes that run side by side (lower/layers/lower_layers.h): they do all that passes one after the
 * other do, with the same bytes on every link; nothing waits for ever in any schedule; exchanges stand on
 * their stream in the published order, and kernels of the other pass run beside them. */

static const Case jobs[] = {
  { "none", 1, 1, 1, 8, 4, .delays = true },
  { "none", 1, 1, 1, 8, 1, .delays = true },
  { "none", 1, 1, 2, 4, 3 },
  { "none", 1, 1, 1, 4, 3, .load = "zipf:0.7" },
  { "none", 1, 1, 1, 8, 3, .dp_kind = LS_DP_MEGATRON, .zero = 1, .delays = true },
  { "none", 1, 1, 1, 8, 3, .dp_kind = LS_DP_DDP },
  { "none", 1, 1, 1, 8, 3, .dp_kind = LS_DP_DEEPSPEED, .zero = 1, .delays = true },
  { "none", 1, 1, 1, 8, 3, .recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION, .delays = true },
  { "interleaved-1f1b", 2, 2, 1, 4, 4, .p2p = LS_P2P_BATCHED },
  { "interleaved-1f1b", 2, 2, 1, 4, 2, .p2p = LS_P2P_BATCHED, .delays = true },
  { "interleaved-1f1b", 2, 4, 1, 4, 6, .p2p = LS_P2P_OVERLAPPED, .delays = true },
  { "interleaved-1f1b", 2, 2, 2, 2, 4, .p2p = LS_P2P_OVERLAPPED },
  { "interleaved-1f1b", 4, 2, 1, 2, 8, .p2p = LS_P2P_OVERLAPPED, .flushes_late = true, .delays = true },
  { "interleaved-1f1b", 4, 2, 1, 2, 8, .p2p = LS_P2P_BATCHED, .delays = true, .load = "zipf:0.5" },
  { "dualpipe", 2, 1, 1, 4, 4, .p2p = LS_P2P_BATCHED, .delays = true },
  { "dualpipe", 4, 1, 1, 2, 12, .p2p = LS_P2P_OVERLAPPED, .delays = true },
  { "dualpipe", 4, 1, 1, 2, 8, .p2p = LS_P2P_BATCHED },
  { "dualpipev", 2, 2, 1, 4, 6, .p2p = LS_P2P_BATCHED, .delays = true },
  { "dualpipev", 4, 2, 1, 2, 9, .p2p = LS_P2P_OVERLAPPED },
};

static void
every_schedule_does_the_same (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++)
    for (uint32_t n_dense = 0; n_dense < 4; n_dense += 3) {
      LsModel m = moe_model (n_dense);
      Ran one = run_job (&jobs[i], &m, PLAIN), both = run_job (&jobs[i], &m, PAIRED);
      do_the_same (&one, &both);
      LS_CHECK_INT (both.least, <=, step_of (&both));
      ran_clear (&one);
      ran_clear (&both);
    }
}

/* With one micro-batch there is no pair; with more a step is shorter. */
static void
a_pair_is_shorter_than_its_passes (void)
{
  LsModel m = moe_model (0);
  for (guint i = 0; i < 2; i++) {
    Ran one = run_job (&jobs[i], &m, PLAIN), both = run_job (&jobs[i], &m, PAIRED);
    LS_CHECK_INT (step_of (&both), <, step_of (&one));
    ran_clear (&one);
    ran_clear (&both);
  }
}

/* As in lower_layers.h, and what is sent and received from stage to stage; 0: none of these. */
static char
letter_of (const LsOp *op)
{
  static const struct {
    const char *name;
    char letter;
  } letters[] = {
    { "flash-attention-fwd", 'C' }, { "dispatch all-to-all", 'D' },      { "expert-fc1", 'M' },
    { "combine all-to-all", 'K' },  { "combine grad all-to-all", 'k' },  { "expert-fc1-dgrad", 'm' },
    { "expert-fc1-wgrad", 'w' },    { "dispatch grad all-to-all", 'd' }, { "flash-attention-bwd", 'c' },
    { "qkv-wgrad", 'W' },
  };
  if (op->kind == LS_OP_P2P)
    return op->transfers[0].is_send ? 's' : 'r';
  for (guint i = 0; i < G_N_ELEMENTS (letters); i++)
    if (g_strcmp0 (op->name, letters[i].name) == 0)
      return letters[i].letter;
  return 0;
}

/* Those of rank 0 that have a letter, as they are issued. */
static GArray *
lettered_spans (const Ran *r)
{
  GArray *spans = g_array_new (FALSE, FALSE, sizeof (LsSpan));
  for (uint32_t i = 0; i < r->timeline->ranks[0].n; i++)
    if (letter_of (ls_span_op (r->timeline, 0, &r->timeline->ranks[0].spans[i])))
      g_array_append_val (spans, r->timeline->ranks[0].spans[i]);
  g_array_sort (spans, by_place);
  return spans;
}

static char *
exchanges (const Ran *r)
{
  const LsProgram *program = &r->plan->programs[0];
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < program->n_instances; i++) {
    const LsSegment *seg = &r->plan->segments[program->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      if (letter_of (&seg->ops[o]))
        g_string_append_c (text, letter_of (&seg->ops[o]));
  }
  return g_string_free (text, FALSE);
}

/* What is computed and exchanged of a pass begins when what stands before it in the pass is over: weight
 * gradients too, which nothing else of it waits for. With thin experts exchanges are
 * long, with others kernels are. */
static void
passes_keep_their_order (void)
{
  LsModel m = moe_model (0);
  for (int kind = 0; kind < 4; kind++) {
    bool delays = kind & 1, is_thin = kind & 2;
    m.moe.expert_ffn = is_thin ? 64 : 4096;
    m.moe.top_k = is_thin ? 8 : 2;
    Case j = { "none", 1, 1, 1, 8, 4, .delays = delays };
    Ran r = run_job (&j, &m, PAIRED);
    GArray *spans = lettered_spans (&r);
    LsTime over[2][4] = { { 0 } };
    for (guint i = 0; i < spans->len; i++) {
      const LsSpan *span = &g_array_index (spans, LsSpan, i);
      char letter = letter_of (ls_span_op (r.timeline, 0, span));
      bool is_weights = letter == 'w' || letter == 'W', is_forward = strchr ("CDMK", letter) != NULL;
      LsTime *end = &over[is_forward][ls_span_instance (r.timeline, 0, span)->mb];
      LS_CHECK_INT (span->start, >=, is_weights && delays ? 0 : *end);
      *end = is_weights && delays ? *end : span->end;
    }
    LS_CHECK_INT (spans->len, ==, 4 * 8 * 10);
    g_array_unref (spans);
    ran_clear (&r);
  }
}

/* Two layers: the first forward alone, the pair as in lower_layers.h, the last backward alone. */
static void
pieces_are_issued_in_order (void)
{
  LsModel m = moe_model (0);
  m.n_layers = 2;
  Case j = { "none", 1, 1, 1, 8, 2, .delays = true };
  Ran r = run_job (&j, &m, PAIRED);
  g_autofree char *text = exchanges (&r);
  LS_CHECK_STR (text,
                "CDMKCDMK"
                "kCmDdwMcKkWCmDdwMcKW"
                "kmdwckWmdwcW");
  ran_clear (&r);
  j.delays = false;
  r = run_job (&j, &m, PAIRED);
  g_autofree char *whole = exchanges (&r);
  LS_CHECK_STR (whole,
                "CDMKCDMK"
                "kCmwDdMcWKkCmwDdMcWK"
                "kmwdcWkmwdcW");
  ran_clear (&r);
}

/* The last weight gradients of a pair are behind the messages that it sends and receives. */
static void
messages_go_before_weights (void)
{
  LsModel m = moe_model (0);
  Ran r = run_job (&jobs[10], &m, PAIRED);
  g_autofree char *text = exchanges (&r);
  LS_CHECK (strstr (text, "kCmDdwMcKsrsrWkCmDdwMcKsrsrW") && !strstr (text, "KW"));
  ran_clear (&r);
}

/* The dispatch of a pair waits for nothing of the other pass: it begins before what that computes is over. */
static void
nothing_waits_for_the_other_pass (void)
{
  LsModel m = moe_model (0);
  Case j = { "none", 1, 1, 1, 8, 3, .delays = true };
  Ran r = run_job (&j, &m, PAIRED);
  GArray *spans = lettered_spans (&r);
  uint32_t n_pairs = 0;
  for (guint i = 1; i < spans->len; i++) {
    const LsSpan *span = &g_array_index (spans, LsSpan, i), *before = span - 1;
    bool is_beside = letter_of (ls_span_op (r.timeline, 0, span)) == 'D'
        && letter_of (ls_span_op (r.timeline, 0, before)) == 'm';
    LS_CHECK_INT (is_beside ? span->start : 0, <, before->end);
    n_pairs += is_beside;
  }
  LS_CHECK_INT (n_pairs, ==, 2 * 8);
  g_array_unref (spans);
  ran_clear (&r);
}

/* Where the exchanges are short beside the kernels none of a pair's is waited for: the step is that of the
 * kernels and of the exchanges of the two passes that have no partner. */
static void
short_exchanges_are_hidden (void)
{
  LsModel m = moe_model (0);
  Case few = { "none", 1, 1, 1, 8, 3, .delays = true }, more = few;
  more.n_micro_batches = 4;
  Ran a = run_job (&few, &m, PAIRED), b = run_job (&more, &m, PAIRED);
  Ran c = run_job (&few, &m, PLAIN), d = run_job (&more, &m, PLAIN);
  LsTime pair = step_of (&b) - step_of (&a), passes = step_of (&d) - step_of (&c), kernels = 0;
  const LsRankSpans *spans = &b.timeline->ranks[0];
  for (uint32_t i = 0; i < spans->n; i++)
    if (ls_span_op (b.timeline, 0, &spans->spans[i])->kind == LS_OP_KERNEL)
      kernels += spans->spans[i].alone;
  for (uint32_t i = 0; i < a.timeline->ranks[0].n; i++)
    if (ls_span_op (a.timeline, 0, &a.timeline->ranks[0].spans[i])->kind == LS_OP_KERNEL)
      kernels -= a.timeline->ranks[0].spans[i].alone;
  LS_CHECK_INT (pair, <, passes);
  LS_CHECK_INT (pair, >=, kernels);
  ran_clear (&a);
  ran_clear (&b);
  ran_clear (&c);
  ran_clear (&d);
}

static void
what_cannot_be_paired_is_refused (void)
{
  static const struct {
    const char *schedule;
    uint32_t pp;
    int recompute;
    const char *why;
  } cases[] = {
    { "1f1b", 2, LS_RECOMPUTE_NONE, "expected a schedule that pairs a forward with a backward" },
    { "none", 1, LS_RECOMPUTE_FULL, "expected no layers that run again as a whole" },
  };
  LsModel m = moe_model (0);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsStrategy s;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    ls_strategy_init (&s);
    s.pp = cases[i].pp;
    s.ep = 2;
    s.mp.ep_overlap = 1;
    s.recompute = cases[i].recompute;
    s.schedule = g_strdup (cases[i].schedule);
    LS_CHECK (!ls_strategy_resolve (&s, &m, 8, 8, diags));
    g_autofree char *text = ls_diag_list_format (diags);
    LS_CHECK (strstr (text, cases[i].why) != NULL);
    ls_strategy_clear (&s);
  }
}

/* Pins shared experts beside the exchange of tokens (lower/layers/lower_experts.c): they do all that they do
 * before it, with the same bytes on every link, sooner; they begin with the exchange, what is behind it waits
 * for it alone, and what needs them for them. */

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
  m.moe.shared_ffn = 4096;
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
  m.moe.top_k = 8;
  m.moe.shared_ffn = 512;
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
    m.moe.shared_ffn = cases[i].shared;
    ls_strategy_init (&s);
    s.ep = 2;
    s.experts.shared_overlap = true;
    s.mp.ep_overlap = cases[i].pairs;
    s.zero_stage = cases[i].zero;
    s.recompute = cases[i].parts ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
    s.memory.recompute_parts = cases[i].parts;
    LS_CHECK (!ls_strategy_resolve (&s, &m, 8, 8, diags));
    g_autofree char *text = ls_diag_list_format (diags);
    LS_CHECK (strstr (text, cases[i].why) != NULL);
    ls_strategy_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (every_schedule_does_the_same), LS_TEST (a_pair_is_shorter_than_its_passes),
               LS_TEST (pieces_are_issued_in_order), LS_TEST (messages_go_before_weights),
               LS_TEST (passes_keep_their_order), LS_TEST (nothing_waits_for_the_other_pass),
               LS_TEST (short_exchanges_are_hidden), LS_TEST (what_cannot_be_paired_is_refused),
               LS_TEST (shared_experts_do_the_same_sooner), LS_TEST (shared_experts_run_beside_the_exchange),
               LS_TEST (what_is_gathered_is_kept), LS_TEST (what_cannot_run_beside_is_refused))
