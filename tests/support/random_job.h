/* tests/support/random_job.h — small jobs of every kind that can be lowered: model, degrees, schedule, p2p,
 * sharding, recomputation, precision and what was measured around kernels drawn from a seed. */
#ifndef LS_TESTS_RANDOM_JOB_H
#define LS_TESTS_RANDOM_JOB_H

#include "exec/run.h"
#include "lower/lower.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

static inline LsModel
small_model (GRand *rand)
{
  LsModel m = {
    .name = (char *) "small",
    .n_layers = 8,
    .hidden = 1024,
    .n_heads = 16,
    .n_kv_heads = 16,
    .head_dim = 64,
    .ffn = 4096,
    .vocab = 5000,
    .seq = 512,
    .mlp = LS_MLP_GELU,
    .norm = LS_NORM_LAYERNORM,
    .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED,
    .linear_bias = true,
    .tied_embeddings = true,
    .dropout = true,
  };
  m.n_layers += g_rand_int_range (rand, 0, 3) == 0 ? (uint32_t) g_rand_int_range (rand, 1, 4)
                                                   : 0; /* uneven chunks */
  if (g_rand_boolean (rand)) {
    m.mlp = LS_MLP_SWIGLU;
    m.norm = LS_NORM_RMSNORM;
    m.position = LS_POSITION_ROPE;
    m.attention = LS_ATTENTION_FLASH;
    m.linear_bias = m.tied_embeddings = m.dropout = false;
  }
  return m;
}

static inline uint32_t
pick (GRand *rand, uint32_t n, const uint32_t *choices)
{
  return choices[g_rand_int_range (rand, 0, (gint32) n)];
}

static inline void
random_experts (GRand *rand, LsModel *m)
{
  m->moe.n_experts = 8;
  m->moe.top_k = pick (rand, 2, (uint32_t[]) { 1, 2 });
  m->moe.expert_ffn = 512;
  m->moe.shared_ffn = g_rand_boolean (rand) ? 256 : 0;
  m->moe.every = pick (rand, 2, (uint32_t[]) { 1, 2 });
  m->moe.n_dense_layers = pick (rand, 2, (uint32_t[]) { 0, 1 });
  m->moe.groups = g_rand_boolean (rand) ? 4 : 0;
  m->moe.top_groups = m->moe.groups / 2;
  m->linear_bias = false;
}

static inline void
random_latent (GRand *rand, LsModel *m)
{
  m->latent.kv_lora = 128;
  m->latent.q_lora = g_rand_boolean (rand) ? 256 : 0;
  m->latent.rope_dim = 32;
  m->head_dim = 96;
  m->v_dim = 64;
  m->position = LS_POSITION_ROPE;
  m->linear_bias = false;
}

static inline void
random_layers (GRand *rand, LsModel *m)
{
  bool is_rope = m->position == LS_POSITION_ROPE;
  m->n_kv_heads = pick (rand, 3, (uint32_t[]) { 1, 4, 16 });
  m->mlp = g_rand_int_range (rand, 0, 4);
  m->attn.qkv_bias = g_rand_boolean (rand);
  m->attn.qk_norm = g_rand_boolean (rand);
  m->attn.rotary_dim = is_rope && g_rand_boolean (rand) ? m->head_dim / 2 : 0;
  m->attn.unrotated_every = is_rope ? pick (rand, 3, (uint32_t[]) { 0, 2, 4 }) : 0;
  m->attn.window = pick (rand, 2, (uint32_t[]) { 0, 128 });
  m->attn.full_every = m->attn.window > 0 ? pick (rand, 2, (uint32_t[]) { 0, 4 }) : 0;
}

/* Of a small model another kind. */
static inline void
random_kind (GRand *rand, LsModel *m)
{
  if (g_rand_int_range (rand, 0, 3) == 0)
    random_experts (rand, m);
  if (g_rand_int_range (rand, 0, 4) == 0)
    random_latent (rand, m);
  else if (g_rand_int_range (rand, 0, 3) == 0)
    random_layers (rand, m);
  m->predict.layers = pick (rand, 5, (uint32_t[]) { 0, 0, 0, 0, 1 });
  if (m->predict.layers > 0 && g_rand_boolean (rand)) {
    m->predict.layers = 2;
    m->predict.pattern = (char *) (g_rand_boolean (rand) ? "ad" : "D");
    m->predict.shared = g_rand_boolean (rand);
  }
  m->tied_embeddings = m->tied_embeddings || m->predict.layers > 1;
}

/* One that Megatron-LM has no recipe of its own for, with any p2p. */
static inline void
random_schedule (GRand *rand, LsStrategy *s)
{
  static const char *const with_one_chunk[]
      = { "naive", "gpipe",  "zb-h1",     "zb-h2",    "zb-2p",  "zbv",
          "v-min", "hanayo", "dualpipev", "dualpipe", "chimera" /* these need an even pp */ };
  static const char *const with_more[] = { "looped-bfs", "interleaved-zb" };
  guint i = (guint) g_rand_int_range (rand, 0, s->vpp > 1 ? 2 : s->pp > 1 ? 11 : 9);
  s->schedule = g_strdup (s->vpp > 1 ? with_more[i] : with_one_chunk[i]);
  s->global_batch = s->dp * s->pp * 2; /* legal for all */
  if (s->pp > 1)
    s->mp.p2p
        = (int) pick (rand, 3, (uint32_t[]) { LS_P2P_BATCHED, LS_P2P_SCATTER_GATHER, LS_P2P_OVERLAPPED });
}

/* Sequences cut over two ranks, where there is room for twice as many. */
static inline void
random_context (GRand *rand, LsStrategy *s)
{
  s->mp.cp_kind = g_rand_int_range (rand, 0, 3);
  s->mp.cp_balance = g_rand_boolean (rand);
  if (s->gpus > 16 || g_rand_boolean (rand))
    return;
  s->cp = 2;
  s->gpus *= 2;
  s->use.attention = LS_ATTENTION_FLASH;
  s->dp_kind = LS_DP_AUTO;
}

static inline void
random_overlap (GRand *rand, LsStrategy *s)
{
  s->mp.tp_overlap = s->tp > 1 && s->sp && g_rand_boolean (rand);
  s->mp.tp_overlap_kind = g_rand_int_range (rand, 0, 2);
  uint32_t *const blocks[] = { &s->mp.tp_max_ctas, &s->mp.cp_max_ctas, &s->mp.ep_max_ctas, &s->mp.dp_max_ctas,
                               &s->mp.pp_max_ctas };
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
    *blocks[i] = g_rand_boolean (rand) ? 0 : 1u << g_rand_int_range (rand, 0, 5);
  s->mp.sp_save_gathered = g_rand_boolean (rand);
}

static inline void
random_fsdp (GRand *rand, LsStrategy *s)
{
  if (s->dp == 1 || g_rand_int_range (rand, 0, 4) > 0)
    return;
  s->dp_kind = g_rand_boolean (rand) ? LS_DP_FSDP1 : LS_DP_FSDP2;
  s->zero_stage = 2 + (uint32_t) g_rand_int_range (rand, 0, 2);
  s->data.layers_per_unit = pick (rand, 2, (uint32_t[]) { 1, 3 });
  s->data.limit_all_gathers = g_rand_boolean (rand);
  s->data.backward_prefetch = g_rand_int_range (rand, 0, 3);
  s->data.forward_prefetch = (uint32_t) g_rand_int_range (rand, 0, 2);
  s->data.grad_sync = g_rand_int_range (rand, 0, 3);
}

/* Some have adapters on frozen weights: drawn from what is drawn already. */
static inline void
random_adapters (LsStrategy *s)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  bool can = !(sched && (sched->is_split || sched->always_pairs));
  s->lora.rank = can && (s->global_batch + s->pp + s->tp + s->recompute) % 4 == 0 ? 8 : 0;
}

/* Some have documents of several lengths in a sequence: likewise. */
static inline void
random_lengths (const LsModel *m, LsStrategy *s)
{
  static const char *const texts[] = { "uniform:1:512", "fixed:100", "lognormal:100:1.5:512" };
  g_autofree char *why = NULL;
  uint32_t number = s->global_batch + s->pp + 2 * s->tp + 3 * s->cp + s->recompute;
  if ((m->attention != LS_ATTENTION_FLASH && s->use.attention != LS_ATTENTION_FLASH) || number % 2 == 0)
    return;
  s->docs.lengths = g_strdup (texts[number % 3]);
  s->docs.drawn = ls_lengths_parse (s->docs.lengths, &why);
  s->docs.seed = number;
  s->docs.draw = number % 5 == 0 ? LS_LENGTHS_MEAN : LS_LENGTHS_EACH;
  s->docs.balance = number % 7 == 0 ? LS_LENGTHS_SORTED : LS_LENGTHS_AS_DRAWN;
}

/* Some flush their pipeline twice a step: drawn from what is drawn already. */
static inline void
random_flushes (LsStrategy *s)
{
  if (s->pp == 1 || (s->global_batch + s->tp + s->recompute + s->vpp) % 3 != 0)
    return;
  s->mp.pipeline_batch = s->global_batch / s->dp;
  s->global_batch *= 2;
}

static inline void
random_strategy (GRand *rand, LsStrategy *s)
{
  ls_strategy_init (s);
  s->tp = pick (rand, 3, (uint32_t[]) { 1, 2, 4 });
  s->pp = pick (rand, 3, (uint32_t[]) { 1, 2, 4 });
  s->dp = pick (rand, 2, (uint32_t[]) { 1, 2 });
  s->vpp = s->pp > 1 && g_rand_boolean (rand) ? 2 : 1;
  s->sp = g_rand_boolean (rand);
  s->gpus = s->tp * s->pp * s->dp;
  s->micro_batch = 1;
  s->global_batch = s->dp * s->pp * (uint32_t) g_rand_int_range (rand, 1, 3);
  s->recompute = g_rand_int_range (rand, 0, 3);
  s->data.overlap = g_rand_boolean (rand);
  s->zero_stage = s->dp > 1 && g_rand_boolean (rand) ? 1 : 0;
  if (s->dp > 1 && s->pp == 1 && s->zero_stage == 0 && g_rand_boolean (rand))
    s->dp_kind = LS_DP_DDP;
  if (s->pp > 1)
    s->mp.p2p = (int) pick (rand, s->vpp > 1 ? 3 : 2,
                            (uint32_t[]) { LS_P2P_BATCHED, LS_P2P_SCATTER_GATHER, LS_P2P_OVERLAPPED });
  s->dtype = g_rand_boolean (rand) ? LS_DTYPE_FP16 : LS_DTYPE_BF16;
  s->opt.grad_norm = g_rand_int_range (rand, 0, 4) > 0;
  if (g_rand_boolean (rand))
    random_schedule (rand, s);
  random_overlap (rand, s);
  random_context (rand, s);
  s->mp.p2p_warmup_flush = g_rand_boolean (rand);
  s->opt.post_validation = g_rand_int_range (rand, 0, 4) == 0;
  random_fsdp (rand, s);
  random_flushes (s);
  random_adapters (s);
}

static const LsNccl nccl = {
  .dispatch = { .dispatch = { .token = LS_US, .per_sm = 20e9 },
                .combine = { .token = LS_US, .per_sm = 20e9 },
                .of_nvlink = 0.8,
                .of_nic = 0.9,
                .base_intra = 30 * LS_US,
                .base_inter = 60 * LS_US },
  LS_TEST_NCCL_OF_JOB,
  .base_all_gather = 9 * LS_US,
  .base_reduce_scatter = 8 * LS_US,
  .hop_intra = LS_US,
  .hop_inter = 5 * LS_US,
  .sm_share_per_channel = 0.0093,
};

typedef struct {
  LsModel model;
  LsStrategy strategy; /* resolved */
  LsCluster *cluster;
  LsPlan *plan;
  LsCalibration calibration;
  double slow[64];
} Job;

/* Half of them on machines of which it was measured: communication waits for SMs, copies for each other,
 * streams take longer in a layer. Persistent GEMMs, half of them. */
static inline void
random_around (LsAround *a, GRand *rand)
{
  if (g_rand_boolean (rand))
    a->priority_wait = g_rand_int_range (rand, 1, 50) * LS_US;
  a->copy_duplex = g_rand_double_range (rand, 0.5, 1);
  a->streams_in_layer = g_rand_double_range (rand, 0.8, 1.3);
  a->gemms = g_rand_boolean (rand) ? LS_GEMMS_PERSISTENT : LS_GEMMS_TILES;
}

static inline bool
job_init (Job *j, GRand *rand)
{
  LsClusterSpec spec = tiny_dgx (4);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  *j = (Job) { .cluster = ls_cluster_build (&spec, NULL) };
  ls_calibration_init_roofline (&j->calibration);
  j->model = small_model (rand);
  random_strategy (rand, &j->strategy);
  random_lengths (&j->model, &j->strategy);
  if (ls_strategy_resolve (&j->strategy, &j->model, j->strategy.gpus, 8, diags))
    j->plan = ls_lower (&j->model, &j->strategy, NULL, &error);
  else {
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (false, __FILE__, __LINE__, "unexpectedly refused: %s", text);
  }
  LS_CHECK_NO_ERROR (error);
  for (int r = 0; r < 64; r++)
    j->slow[r] = 1 + 0.01 * g_rand_int_range (rand, 0, 20);
  random_around (&j->calibration.around, rand);
  return j->plan != NULL;
}

static inline void
job_clear (Job *j)
{
  ls_plan_free (j->plan);
  ls_strategy_clear (&j->strategy);
  ls_cluster_free (j->cluster);
  ls_calibration_clear (&j->calibration);
}

#endif
