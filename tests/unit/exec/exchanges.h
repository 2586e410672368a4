/* A small job with experts, run one pass after the other, with passes side by side, or with shared experts beside
 * the exchange of tokens: what it does, counted. */
#ifndef LS_TESTS_EXCHANGES_H
#define LS_TESTS_EXCHANGES_H

#include "ls_test.h"

#include "exec/shortcuts/plan_bound.h"
#include "random_job.h"

static LsModel
moe_model (uint32_t n_dense)
{
  return (LsModel) {
    .name = (char *) "experts",
    .n_layers = 8,
    .hidden = 1024,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 128,
    .ffn = 4096,
    .vocab = 5120,
    .seq = 1024,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
    .moe.n_experts = 16,
    .moe.top_k = 2,
    .moe.expert_ffn = 4096,
    .moe.n_dense_layers = n_dense,
    .moe.every = 1,
  };
}

typedef struct {
  const char *schedule;
  uint32_t pp, vpp, tp, ep, n_micro_batches;
  int p2p;
  bool flushes_late, delays;
  const char *load;
  int dp_kind;
  uint32_t zero, recompute_parts;
  bool is_full;
  int dispatcher;
} Case;

typedef struct {
  LsCluster *cluster;
  LsPlan *plan;
  LsTimeline *timeline;
  LsTime least;
} Ran;

typedef enum { PLAIN, PAIRED, SHARED_BESIDE } How;

static Ran
run_job (const Case *j, const LsModel *m, How how)
{
  Ran r = { 0 };
  LsClusterSpec spec = tiny_dgx (1);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsCalibration calibration;
  LsRunOptions options;
  LsStrategy s;
  ls_calibration_init_roofline (&calibration);
  ls_run_options_init (&options);
  memset (&options.host, 0, sizeof options.host);
  options.n_steps = 1;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.tp = j->tp;
  s.sp = j->tp > 1;
  s.pp = j->pp;
  s.vpp = j->vpp;
  s.ep = j->ep;
  s.experts.etp = 1;
  s.schedule = g_strdup (j->schedule);
  s.mp.p2p = j->p2p;
  s.mp.p2p_warmup_flush = j->flushes_late;
  s.global_batch = 8 / (j->tp * j->pp) * j->n_micro_batches;
  s.experts.load = g_strdup (j->load);
  s.dp_kind = j->dp_kind;
  s.zero_stage = j->zero;
  s.mp.ep_overlap = how == PAIRED;
  s.mp.delay_wgrad = how == PAIRED && j->delays;
  s.experts.shared_overlap = how == SHARED_BESIDE;
  s.experts.dispatcher = j->dispatcher;
  s.recompute = j->recompute_parts ? LS_RECOMPUTE_SELECTIVE
      : j->is_full                 ? LS_RECOMPUTE_FULL
                                   : LS_RECOMPUTE_NONE;
  s.memory.recompute_parts = j->recompute_parts;
  r.cluster = ls_cluster_build (&spec, &error);
  LS_CHECK (ls_strategy_resolve (&s, m, 8, 8, diags));
  r.plan = ls_lower (m, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (r.plan && ls_plan_check (r.plan, &error));
  LS_CHECK_NO_ERROR (error);
  r.timeline = r.plan ? ls_run (r.plan, r.cluster, &calibration, &nccl, &options, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  r.least = r.plan ? ls_plan_bound (r.plan, r.cluster, &calibration, &nccl, &options) : 0;
  ls_strategy_clear (&s);
  ls_calibration_clear (&calibration);
  return r;
}

static void
ran_clear (Ran *r)
{
  ls_timeline_free (r->timeline);
  ls_plan_free (r->plan);
  ls_cluster_free (r->cluster);
}

static LsTime
step_of (const Ran *r)
{
  return r->timeline->window_end - r->timeline->window_start;
}

/* Of a role's program: how often each kernel, and calls and their bytes. */
static void
count_ops (const LsPlan *p, uint32_t role, uint64_t *kernels, uint64_t *calls, uint64_t *bytes)
{
  const LsProgram *program = &p->programs[role];
  *calls = *bytes = 0;
  for (uint32_t i = 0; i < program->n_instances; i++) {
    const LsSegment *seg = &p->segments[program->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++) {
      if (seg->ops[o].kind == LS_OP_KERNEL)
        kernels[seg->ops[o].kernel]++;
      *calls += seg->ops[o].kind == LS_OP_COLLECTIVE;
      *bytes += seg->ops[o].kind == LS_OP_COLLECTIVE ? seg->ops[o].bytes : 0;
    }
  }
}

static uint64_t
number_of_kernel (const LsPlan *p, const uint64_t *counts, const char *name)
{
  uint64_t n = 0;
  for (uint32_t k = 0; k < p->n_kernels; k++)
    n += g_str_equal (p->kernels[k].name, name) ? counts[k] : 0;
  return n;
}

static void
do_the_same (const Ran *a, const Ran *b)
{
  LS_CHECK_INT (a->plan->n_roles, ==, b->plan->n_roles);
  for (uint32_t role = 0; role < a->plan->n_roles; role++) {
    g_autofree uint64_t *x = g_new0 (uint64_t, a->plan->n_kernels),
                        *y = g_new0 (uint64_t, b->plan->n_kernels);
    uint64_t calls[2], bytes[2];
    count_ops (a->plan, role, x, &calls[0], &bytes[0]);
    count_ops (b->plan, role, y, &calls[1], &bytes[1]);
    LS_CHECK_INT (calls[0], ==, calls[1]);
    LS_CHECK_INT (bytes[0], ==, bytes[1]);
    for (uint32_t k = 0; k < a->plan->n_kernels; k++) {
      const char *name = a->plan->kernels[k].name;
      LS_CHECK_INT (number_of_kernel (a->plan, x, name), ==, number_of_kernel (b->plan, y, name));
    }
  }
  for (uint32_t i = 0; i < ls_cluster_n_resources (a->cluster); i++)
    LS_CHECK_NEAR (ls_timeline_bytes (a->timeline, i), ls_timeline_bytes (b->timeline, i), 1e-9);
}

static int
by_place (const void *a, const void *b)
{
  const LsSpan *x = a, *y = b;
  return x->instance != y->instance ? (x->instance > y->instance ? 1 : -1)
                                    : (x->op > y->op) - (x->op < y->op);
}

#endif
