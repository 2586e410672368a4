/* Pins context parallelism. The parts of attention on all ranks together compute what the
 * model asks for; balanced ranks compute the same, unbalanced ones more the later their
 * tokens. Links carry, per layer, with q, k, v and o the bytes of Q, K, V and the context of a rank:
 *
 *     ring        (c - 1) (k + v) forward, 2 (c - 1) (k + v) backward
 *     all-gather  the same: K and V gathered; gathered again, their gradients scattered
 *     ulysses     2 (q + k + v + o) (c - 1) / c
 *     a mixer     2 (x + o) (c - 1) / c, of x bytes into it and o out of it, whatever attention does
 *
 * What the ring moves hides behind attention that is long enough, and shows behind one that is
 * not; all-gather and Ulysses hide nothing. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "closed_flops.h"
#include "random_job.h"

#include "analysis/conservation.h"
#include "analysis/report.h"

typedef struct {
  LsModel model;
  LsStrategy s;
  LsCluster *cluster;
  LsCalibration calibration;
  LsPlan *plan;
  LsTimeline *t;
} Fixture;

typedef struct {
  uint32_t n_layers, seq;
  uint32_t cp, tp, pp;
  LsCpKind kind;
  bool is_uneven, is_latent;
  LsMixerKind mixer; /* in all layers, with 16 heads of 64 and 2 groups of 32 */
  int recompute;
} Case;

/* Latent: keys of 64 and values of 32 for each of 16 heads, q = k = 2 v = 2 o. */
static LsModel
model_of (const Case *k)
{
  LsModel m = {
    .name = (char *) "small",
    .n_layers = k->n_layers ? k->n_layers : 4,
    .hidden = 1024,
    .n_heads = 16,
    .n_kv_heads = 8,
    .head_dim = 64,
    .ffn = 4096,
    .vocab = 5000,
    .seq = k->seq ? k->seq : 2048,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
  };
  if (k->mixer != LS_MIXER_NONE) {
    m.layers.pattern = (char *) "M";
    m.mixer.kind = k->mixer;
    m.mixer.heads = 16, m.mixer.groups = 2;
    m.mixer.head_dim = 64, m.mixer.state = 32;
    m.mixer.chunk = 128, m.mixer.conv = 4;
  }
  if (k->is_latent) {
    m.n_kv_heads = 16;
    m.latent.kv_lora = 128;
    m.latent.rope_dim = m.v_dim = 32;
  }
  return m;
}

static void
fixture_init (Fixture *x, const Case *k)
{
  LsClusterSpec spec = tiny_dgx (2);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  spec.gpu.peak_flops[LS_DTYPE_BF16] = 312e12;
  *x = (Fixture) { .model = model_of (k), .cluster = ls_cluster_build (&spec, NULL) };
  ls_calibration_init_roofline (&x->calibration);
  ls_strategy_init (&x->s);
  x->s.cp = k->cp;
  x->s.tp = MAX (k->tp, 1);
  x->s.pp = MAX (k->pp, 1);
  x->s.gpus = x->s.cp * x->s.tp * x->s.pp;
  x->s.mp.cp_kind = k->kind;
  x->s.mp.cp_balance = !k->is_uneven;
  x->s.recompute = k->recompute;
  x->s.data.overlap = false;
  gboolean is_legal = ls_strategy_resolve (&x->s, &x->model, x->s.gpus, 8, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (is_legal, __FILE__, __LINE__, "%s", text);
  x->plan = is_legal ? ls_lower (&x->model, &x->s, NULL, &error) : NULL;
  LS_CHECK (x->plan && ls_plan_check (x->plan, &error));
  LS_CHECK_NO_ERROR (error);
}

static void
fixture_run (Fixture *x)
{
  g_autoptr (GError) error = NULL;
  LsRunOptions options;
  ls_run_options_init (&options);
  options.n_steps = 2;
  x->t = ls_run (x->plan, x->cluster, &x->calibration, &nccl, &options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
}

static void
fixture_clear (Fixture *x)
{
  ls_timeline_free (x->t);
  ls_plan_free (x->plan);
  ls_strategy_clear (&x->s);
  ls_cluster_free (x->cluster);
  ls_calibration_clear (&x->calibration);
}

/* --- FLOPs ---------------------------------------------------------------------- */

static const Case kinds[] = {
  { .cp = 2, .kind = LS_CP_RING },
  { .cp = 2, .kind = LS_CP_RING, .is_uneven = true },
  { .cp = 4, .kind = LS_CP_RING },
  { .cp = 4, .kind = LS_CP_RING, .is_uneven = true },
  { .cp = 4, .kind = LS_CP_ALL_GATHER },
  { .cp = 4, .kind = LS_CP_ALL_GATHER, .is_uneven = true },
  { .cp = 4, .kind = LS_CP_ULYSSES },
  { .cp = 4, .kind = LS_CP_RING, .is_latent = true },
  { .cp = 4, .kind = LS_CP_RING, .is_latent = true, .is_uneven = true },
  { .cp = 4, .kind = LS_CP_ALL_GATHER, .is_latent = true },
  { .cp = 4, .kind = LS_CP_ULYSSES, .is_latent = true },
};

static const Case mixers[] = {
  { .cp = 2, .mixer = LS_MIXER_DELTA },
  { .cp = 2, .mixer = LS_MIXER_MAMBA2 },
  { .cp = 4, .mixer = LS_MIXER_MAMBA2, .kind = LS_CP_ALL_GATHER },
  { .cp = 4, .mixer = LS_MIXER_MAMBA2, .kind = LS_CP_ULYSSES, .is_uneven = true },
};

static void
ranks_together_compute_the_model (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    for (uint32_t tp = 1; tp <= 2; tp++)
      for (int recompute = 0; recompute <= LS_RECOMPUTE_FULL; recompute += 2) {
        g_autoptr (GError) error = NULL;
        Case k = kinds[i];
        Fixture x;
        k.tp = tp;
        k.pp = 3 - tp;
        k.recompute = recompute;
        fixture_init (&x, &k);
        LS_CHECK (x.plan && ls_conserves_flops (x.plan, &x.model, &x.s, &error)
                  && computes_closed_flops (x.plan, &x.model, &x.s));
        LS_CHECK_NO_ERROR (error);
        fixture_clear (&x);
      }
}

/* Groups that several ranks have are computed by each. */
static void
ranks_together_compute_mixers (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (mixers); i++)
    for (int recompute = 0; recompute <= LS_RECOMPUTE_FULL; recompute += 2) {
      g_autoptr (GError) error = NULL;
      Case k = mixers[i];
      Fixture x;
      k.recompute = recompute;
      k.tp = mixers[i].mixer == LS_MIXER_MAMBA2 ? 2 : 1;
      fixture_init (&x, &k);
      LS_CHECK (x.plan && ls_conserves_flops (x.plan, &x.model, &x.s, &error)
                && computes_closed_flops (x.plan, &x.model, &x.s));
      LS_CHECK_NO_ERROR (error);
      fixture_clear (&x);
    }
}

/* Of attention, forward, on one rank in one step. */
static double
attention_of (const Fixture *x, uint32_t rank)
{
  const LsPlan *plan = x->plan;
  const LsProgram *p = &plan->programs[ls_plan_role (plan, rank)];
  double flops = 0;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *segment = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < segment->n_ops; o++)
      if (segment->ops[o].kernel != UINT32_MAX
          && plan->kernels[segment->ops[o].kernel].kind == LS_KERNEL_ATTENTION_FWD)
        flops += plan->kernels[segment->ops[o].kernel].flops;
  }
  return flops;
}

/* Unbalanced: rank i has i whole squares and a half of 4^2 / 2. */
static void
balance_is_what_it_says (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++) {
    Fixture x;
    uint32_t c = kinds[i].cp;
    fixture_init (&x, &kinds[i]);
    double all = 0;
    for (uint32_t r = 0; r < c; r++)
      all += attention_of (&x, r);
    for (uint32_t r = 0; r < c; r++)
      LS_CHECK_NEAR (attention_of (&x, r), all * (kinds[i].is_uneven ? (2.0 * r + 1) / (c * c) : 1.0 / c),
                     1e-12);
    LS_CHECK_INT (x.plan->n_roles, ==, kinds[i].is_uneven ? c : 1);
    fixture_clear (&x);
  }
}

/* --- bytes ---------------------------------------------------------------------- */

static double
on_the_way_up (const Fixture *x)
{
  for (uint32_t i = 0; i < x->t->n_resources; i++) {
    g_autofree char *name = ls_cluster_resource_name (x->cluster, i);
    if (g_strcmp0 (name, "node0/gpu0>nvswitch") == 0)
      return ls_timeline_bytes (x->t, i);
  }
  return -1;
}

/* One layer, by the difference of two and one; gradients are reduced by a ring. */
static double
bytes_of_layer (Case k)
{
  double bytes[2], gradients[2];
  for (uint32_t i = 0; i < 2; i++) {
    Fixture x;
    k.n_layers = i + 1;
    fixture_init (&x, &k);
    fixture_run (&x);
    bytes[i] = x.t ? on_the_way_up (&x) : 0;
    gradients[i] = 2.0 * (double) x.plan->programs[0].n_params * 2 * (k.cp - 1) / k.cp;
    fixture_clear (&x);
  }
  return bytes[1] - bytes[0] - (gradients[1] - gradients[0]);
}

/* Full recomputation does what the forward does once more. */
static void
links_carry_the_formula (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++) {
    Case again = kinds[i];
    bool is_latent = kinds[i].is_latent;
    double c = kinds[i].cp, q = 2048 / c * 1024 * 2, k = is_latent ? q : q / 2, v = q / 2,
           context = is_latent ? v : q;
    double forward = kinds[i].kind == LS_CP_ULYSSES ? (q + k + v + context) * (c - 1) / c : (c - 1) * (k + v);
    double backward = kinds[i].kind == LS_CP_ULYSSES ? forward : 2 * forward;
    again.recompute = LS_RECOMPUTE_FULL;
    LS_CHECK_NEAR (bytes_of_layer (kinds[i]), forward + backward, 1e-6);
    LS_CHECK_NEAR (bytes_of_layer (again), 2 * forward + backward, 1e-6);
  }
}

/* Mamba-2, cp 4: x and z of 1024, B and C of 2 groups that go to 4 ranks, 32 each, and 16 steps; out 1024. */
static void
links_carry_what_mixers_exchange (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (mixers); i++) {
    Case again = mixers[i];
    bool is_delta = mixers[i].mixer == LS_MIXER_DELTA;
    double c = mixers[i].cp, groups = fmax (2, c);
    double columns = 2 * 1024 + 2 * groups * 32 + (is_delta ? 2 * 16 : 16) + 1024;
    double forward = 2048 / c * columns * 2 * (c - 1) / c;
    again.recompute = LS_RECOMPUTE_FULL;
    LS_CHECK_NEAR (bytes_of_layer (mixers[i]), 2 * forward, 1e-6);
    LS_CHECK_NEAR (bytes_of_layer (again), 3 * forward, 1e-6);
  }
}

static bool
is_exchange (const LsSegment *seg, uint32_t o)
{
  return o < seg->n_ops && seg->ops[o].kind == LS_OP_COLLECTIVE && seg->ops[o].coll == LS_COLL_ALL_TO_ALL;
}

/* Tokens of one rank are put together right before they are sent, or once they are back: both ways. */
static void
copies_of_tokens_are_beside_the_exchange (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (mixers); i++) {
    Fixture x;
    uint32_t n = 0;
    fixture_init (&x, &mixers[i]);
    for (uint32_t s = 0; s < x.plan->n_segments; s++)
      for (uint32_t o = 0; o < x.plan->segments[s].n_ops; o++) {
        const LsSegment *seg = &x.plan->segments[s];
        if (g_strcmp0 (seg->ops[o].name, "mixer-pack") != 0)
          continue;
        LS_CHECK ((o > 0 && is_exchange (seg, o - 1)) || is_exchange (seg, o + 1));
        n++;
      }
    LS_CHECK_INT (n, >=, 4);
    fixture_clear (&x);
  }
}

/* 16 heads and 2 groups. */
static void
mixers_are_cut_by_heads_and_groups (void)
{
  static const struct {
    LsMixerKind mixer;
    uint32_t tp, cp;
    const char *said; /* NULL: legal */
  } cases[] = {
    { LS_MIXER_DELTA, 1, 2, NULL },
    { LS_MIXER_DELTA, 2, 2, "a divisor of the groups of mixers on a rank of tp; got 2" },
    { LS_MIXER_MAMBA2, 2, 8, NULL },
    { LS_MIXER_MAMBA2, 2, 16, "a divisor of the heads of mixers on a rank of tp; got 16" },
    { LS_MIXER_MAMBA2, 1, 1, NULL },
    { LS_MIXER_KDA, 1, 2, "mixers of this kind" },
    { LS_MIXER_CONV, 1, 2, "mixers of this kind" },
    { LS_MIXER_KDA, 1, 1, NULL },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = model_of (&(Case) { .mixer = cases[i].mixer });
    LsStrategy s;
    ls_strategy_init (&s);
    s.tp = cases[i].tp;
    s.cp = cases[i].cp;
    s.gpus = s.tp * s.cp;
    bool is_legal = ls_strategy_resolve (&s, &m, s.gpus, 8, diags);
    g_autofree char *why = ls_diag_list_format (diags);
    ls_check_impl (is_legal == !cases[i].said && (is_legal || strstr (why, cases[i].said)), __FILE__,
                   __LINE__, "%zu: %s", i, why);
    ls_strategy_clear (&s);
  }
}

/* What stages send each other is of this rank's tokens. */
static void
messages_between_stages_are_cut_too (void)
{
  for (uint32_t c = 1; c <= 4; c *= 2) {
    Fixture x;
    uint32_t n = 0;
    fixture_init (&x, &(Case) { .cp = c, .pp = 2 });
    for (uint32_t i = 0; i < x.plan->n_segments; i++)
      for (uint32_t o = 0; o < x.plan->segments[i].n_ops; o++)
        for (uint32_t k = 0; k < x.plan->segments[i].ops[o].n_transfers; k++, n++)
          LS_CHECK_INT (x.plan->segments[i].ops[o].transfers[k].bytes, ==, 2048 / c * 1024 * 2);
    LS_CHECK_INT (n, >, 0);
    fixture_clear (&x);
  }
}

/* The largest buffer that a segment frees again. */
static double
most_held (const LsSegment *seg)
{
  uint64_t most = 0;
  for (uint32_t o = 0; o < seg->n_ops; o++)
    for (uint32_t b = 0; b < seg->ops[o].n_buffers; b++) {
      const LsBufferEvent *from = &seg->ops[o].buffers[b];
      for (uint32_t p = o; p < seg->n_ops && !from->is_free; p++)
        for (uint32_t c = 0; c < seg->ops[p].n_buffers; c++)
          if (seg->ops[p].buffers[c].is_free && seg->ops[p].buffers[c].id == from->id)
            most = MAX (most, from->bytes);
    }
  return (double) most;
}

/* K and V of others are held while attention runs: the largest buffer of it. */
static void
what_is_gathered_is_held (void)
{
  static const struct {
    LsCpKind kind;
    double of_v; /* with q = 2 k = 2 v, c = 4; of latent ones q = k = 2 v */
    bool is_latent;
  } rows[] = { { LS_CP_RING, 2 * 4 + 2 * (1 + 1 + 1 + 0.5) },
               { LS_CP_ALL_GATHER, 3 * 2 * 4 },
               { LS_CP_ULYSSES, 2 + 2 },
               { LS_CP_RING, 2 + 5 * 3, true },
               { LS_CP_ALL_GATHER, 3 * 3 * 4, true },
               { LS_CP_ULYSSES, 2 + 3, true } };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    Fixture x;
    double most = 0, v = 2048 / 4 * 512 * 2;
    fixture_init (&x, &(Case) { .cp = 4, .kind = rows[i].kind, .is_latent = rows[i].is_latent });
    for (uint32_t s = 0; s < x.plan->n_segments; s++)
      most = MAX (most, most_held (&x.plan->segments[s]));
    LS_CHECK_NEAR (most, rows[i].of_v * v, 1e-12);
    fixture_clear (&x);
  }
}

/* --- time ------------------------------------------------------------------------ */

static LsTime
exposed (const Case *k, LsTime *ret_step)
{
  LsTime parts[LS_N_PARTS] = { 0 }, bubbles[LS_N_BUBBLES];
  Fixture x;
  fixture_init (&x, k);
  fixture_run (&x);
  if (x.t)
    ls_breakdown (x.t, parts, bubbles);
  *ret_step = x.t ? x.t->window_end - x.t->window_start : 0;
  fixture_clear (&x);
  return parts[LS_PART_EXPOSED_CP];
}

/* Per step of the ring at 64 Ki tokens, cp 4: attention 4 * 16Ki * 8Ki * 1024 FLOPs, 1.8 ms at
 * 312 TFLOP/s; K and V 2 * 16Ki * 512 * 2 B, 0.17 ms at 200 GB/s. At 2 Ki: 1.7 us; 5 us of
 * latency. */
static void
a_ring_hides_behind_long_attention (void)
{
  LsTime step, other;
  LS_CHECK_INT (exposed (&(Case) { .cp = 4, .seq = 65536 }, &step), ==, 0);
  LS_CHECK_INT (exposed (&(Case) { .cp = 4, .seq = 2048 }, &step), >, 0);
  LS_CHECK_INT (exposed (&(Case) { .cp = 4, .seq = 65536, .kind = LS_CP_ALL_GATHER }, &step), >, 0);
  LS_CHECK_INT (exposed (&(Case) { .cp = 4, .seq = 65536, .kind = LS_CP_ULYSSES }, &step), >, 0);
  exposed (&(Case) { .cp = 4, .seq = 65536 }, &step);
  exposed (&(Case) { .cp = 4, .seq = 65536, .is_uneven = true }, &other);
  LS_CHECK_INT (other, >, step);
}

LS_TEST_SUITE (LS_TEST (ranks_together_compute_the_model), LS_TEST (ranks_together_compute_mixers),
               LS_TEST (balance_is_what_it_says), LS_TEST (links_carry_what_mixers_exchange),
               LS_TEST (copies_of_tokens_are_beside_the_exchange),
               LS_TEST (mixers_are_cut_by_heads_and_groups), LS_TEST (links_carry_the_formula),
               LS_TEST (messages_between_stages_are_cut_too), LS_TEST (what_is_gathered_is_held),
               LS_TEST (a_ring_hides_behind_long_attention))
