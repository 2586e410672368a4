/* Defaults and legality of a strategy (DESIGN.md section 9).
 *
 * First what is derived is filled in, then each rule looks at the result on its own,
 * so that all broken rules are reported at once. A number that could not be derived
 * stays 0 and silences the rules that need it. */
#include <string.h>

#include "base/suggest.h"
#include "parallel/chunks.h"
#include "parallel/lower.h"
#include "parallel/sched.h"
#include "parallel/strategy.h"

#define conflict(diags, pointer, ...) \
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, NULL, __VA_ARGS__)
#define unsupported(diags, pointer, ...) \
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, NULL, 0, 0, pointer, NULL, NULL, __VA_ARGS__)

/* ---- what must hold before anything can be derived ---- */

static gboolean
check_values (const LsStrategy *s, LsDiagList *diags)
{
  const struct {
    const char *pointer;
    uint32_t value;
  } at_least_one[] = {
    { "/tp", s->tp },   { "/pp", s->pp },   { "/cp", s->cp },
    { "/ep", s->ep },   { "/vpp", s->vpp }, { "/micro_batch", s->micro_batch },
  };

  guint n_before = ls_diag_list_n (diags);
  for (guint i = 0; i < G_N_ELEMENTS (at_least_one); i++)
    if (at_least_one[i].value == 0)
      conflict (diags, at_least_one[i].pointer, "expected at least 1; got 0");
  if (s->zero_stage > 3)
    conflict (diags, "/zero", "expected a stage from 0 to 3; got %u", s->zero_stage);
  return ls_diag_list_n (diags) == n_before;
}

/* ---- defaults ---- */

/* tp * pp * cp, or UINT64_MAX if that overflows. */
static uint64_t
ranks_per_replica (const LsStrategy *s)
{
  uint64_t n;
  if (!g_uint64_checked_mul (&n, (uint64_t) s->tp * s->pp, s->cp))
    return UINT64_MAX;
  return n;
}

/* The data-parallel degree that the numbers of GPUs and of ranks per replica imply,
 * or 0, with a diagnostic. */
static uint32_t
derive_dp (const LsStrategy *s, uint32_t n_gpus, LsDiagList *diags)
{
  uint64_t replica = ranks_per_replica (s);

  if (s->gpus > n_gpus) {
    conflict (diags, "/gpus", "expected at most the %u of the cluster; got %u", n_gpus, s->gpus);
    return 0;
  }
  if (s->gpus % replica != 0 || s->gpus == 0) {
    conflict (diags, "/gpus", "expected a multiple of tp * pp * cp = %u * %u * %u; got %u", s->tp, s->pp, s->cp,
              s->gpus);
    return 0;
  }

  uint32_t dp = s->gpus / (uint32_t) replica;
  if (s->dp != 0 && s->dp != dp) {
    g_autofree char *hint = g_strdup_printf ("dp follows from gpus; to use a part of the cluster, set gpus to"
                                             " tp * pp * cp * dp = %" G_GUINT64_FORMAT, replica * s->dp);
    ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, "/dp", NULL, s->dp < dp ? hint : NULL,
                 "expected gpus / (tp * pp * cp) = %u / (%u * %u * %u) = %u; got %u", s->gpus, s->tp, s->pp, s->cp,
                 dp, s->dp);
    return 0;
  }
  return dp;
}

static uint32_t
derive_global_batch (const LsStrategy *s, LsDiagList *diags)
{
  uint64_t batch;
  if (!g_uint64_checked_mul (&batch, (uint64_t) s->dp * s->micro_batch, s->pp) || batch > UINT32_MAX) {
    conflict (diags, "/global_batch", "expected dp * micro_batch * pp = %u * %u * %u to stay below 2^32", s->dp,
              s->micro_batch, s->pp);
    return 0;
  }
  return (uint32_t) batch;
}

static LsDtype
default_grad_dtype (int dtype)
{
  switch (dtype) {
  case LS_DTYPE_FP16:
    return LS_DTYPE_FP16;
  case LS_DTYPE_BF16:
  case LS_DTYPE_FP8: /* fp8 recipes keep their gradients in bf16 */
    return LS_DTYPE_BF16;
  default:
    return LS_DTYPE_FP32;
  }
}

/* Data parallelism: what dp 1 makes void, then the kind that zero asks for. */
static void
fill_data_parallel (LsStrategy *s)
{
  if (s->dp == 1) {
    s->dp_kind = LS_DP_NONE;
    s->dp_overlap = false;
    s->zero_stage = 0;
  }
  if (s->dp_kind == LS_DP_AUTO)
    s->dp_kind = s->zero_stage >= 2 ? LS_DP_DEEPSPEED : LS_DP_MEGATRON;
  if (s->zero_stage == 0 || s->zero_group == s->dp)
    s->zero_group = 0;
}

static void
fill_tensor_parallel (LsStrategy *s)
{
  if (s->tp == 1) {
    s->sp = false;
    s->tp_overlap = false;
  }
}

static void
fill_pipeline (LsStrategy *s)
{
  if (s->pp == 1)
    s->p2p = LS_P2P_NONE;
  else if (s->p2p == LS_P2P_AUTO)
    s->p2p = LS_P2P_BATCHED;
  if (!s->schedule)
    s->schedule = g_strdup (s->vpp > 1 ? "interleaved-1f1b" : s->pp > 1 ? "1f1b" : "none");
  const LsSched *sched = ls_sched_find (s->schedule);
  if (s->vpp == 1 && sched && sched->n_chunks)
    s->vpp = sched->n_chunks (&(LsSchedShape) { .pp = s->pp, .n_micro_batches = 1 });
}

static void
fill_from_model (LsStrategy *s, const LsModel *model)
{
  if (s->seq == 0)
    s->seq = model->seq;
  if (s->attention == LS_ATTENTION_AUTO)
    s->attention = model->attention;
  if (s->grad_dtype == LS_DTYPE_AUTO)
    s->grad_dtype = default_grad_dtype (s->dtype);
}

static void
fill (LsStrategy *s, const LsModel *model, uint32_t n_gpus, LsDiagList *diags)
{
  if (s->gpus == 0)
    s->gpus = n_gpus;
  s->dp = derive_dp (s, n_gpus, diags);
  fill_data_parallel (s);
  fill_tensor_parallel (s);
  fill_pipeline (s);
  fill_from_model (s, model);
  if (s->global_batch == 0 && s->dp != 0)
    s->global_batch = derive_global_batch (s, diags);
}

/* ---- rules ---- */

static void
check_tensor_parallel (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->n_heads % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the model's %u heads; got %u", m->n_heads, s->tp);
  if (m->n_kv_heads % s->tp != 0 && s->tp % m->n_kv_heads != 0)
    conflict (diags, "/tp", "expected a divisor or a multiple of the model's %u key-value heads; got %u",
              m->n_kv_heads, s->tp);
  if (m->ffn % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the model's ffn width %u; got %u", m->ffn, s->tp);
  if (s->sp && s->seq % s->tp != 0)
    conflict (diags, "/sp", "expected a sequence length divisible by tp = %u; got %u", s->tp, s->seq);
}

static void
check_data_parallel (const LsStrategy *s, LsDiagList *diags)
{
  if (s->dp_kind == LS_DP_NONE && s->dp > 1)
    conflict (diags, "/dp_kind", "expected a way to reduce gradients, as dp = %u; got none", s->dp);
  if (s->dp_kind == LS_DP_DDP && s->zero_stage > 0)
    conflict (diags, "/zero", "expected 0, as ddp replicates optimizer, gradients and parameters; got %u",
              s->zero_stage);
}

static void
check_dtypes (const LsStrategy *s, LsDiagList *diags)
{
  if (s->dtype == LS_DTYPE_TF32 || s->dtype == LS_DTYPE_BYTE)
    conflict (diags, "/dtype", "expected fp16, bf16, fp8 or fp32; got %s", ls_dtype_name (s->dtype));

  LsDtype own = default_grad_dtype (s->dtype);
  if (s->grad_dtype != LS_DTYPE_FP32 && s->grad_dtype != (int) own)
    conflict (diags, "/grad_dtype", "expected %s%s with dtype %s; got %s", ls_dtype_name (own),
              own == LS_DTYPE_FP32 ? "" : " or fp32", ls_dtype_name (s->dtype), ls_dtype_name (s->grad_dtype));
}

/* Micro-batches of a rank, or 0, with a diagnostic if the numbers are there. */
static uint32_t
check_batch (const LsStrategy *s, LsDiagList *diags)
{
  if (s->dp == 0 || s->global_batch == 0)
    return 0;
  uint64_t per_step = (uint64_t) s->dp * s->micro_batch;
  if (s->global_batch % per_step != 0) {
    conflict (diags, "/global_batch", "expected a multiple of dp * micro_batch = %u * %u = %" G_GUINT64_FORMAT
              "; got %u", s->dp, s->micro_batch, per_step, s->global_batch);
    return 0;
  }
  return (uint32_t) (s->global_batch / per_step);
}

/* The order of a rank counts its forwards and backwards, 2 m vpp, in 32 bits. */
static gboolean
check_order_size (const LsStrategy *s, uint32_t n_micro_batches, LsDiagList *diags)
{
  if ((uint64_t) n_micro_batches * s->vpp < G_MAXINT32)
    return TRUE;
  ls_diag_add (diags, LS_ERROR_LIMIT, NULL, 0, 0, "/global_batch", NULL, NULL,
               "expected fewer than 2^31 chunk forwards per step on a rank; got %u micro-batches, vpp %u",
               n_micro_batches, s->vpp);
  return FALSE;
}

/* The schedule, or NULL with a diagnostic if there is none or a job cannot run it. */
static const LsSched *
check_schedule (const LsStrategy *s, LsDiagList *diags)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  if (!sched) {
    g_autoptr (GPtrArray) names = g_ptr_array_new ();
    for (guint i = 0; ls_sched_at (i); i++)
      g_ptr_array_add (names, (gpointer) ls_sched_at (i)->name);
    g_ptr_array_add (names, NULL);
    const char *near = ls_suggest (s->schedule, (const char *const *) names->pdata);
    g_autofree char *hint = near ? g_strdup_printf ("did you mean \"%s\"?", near) : NULL;
    ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, "/schedule", NULL, hint, "expected a pipeline schedule; got \"%s\"",
                 s->schedule);
    return NULL;
  }
  const char *missing = ls_sched_lower_refusal (sched);
  if (missing)
    unsupported (diags, "/schedule", "schedule %s: %s", s->schedule, missing);
  return missing ? NULL : sched;
}

static void
check_pipeline (const LsStrategy *s, uint32_t n_micro_batches, LsDiagList *diags)
{
  if (s->p2p == LS_P2P_NONE && s->pp > 1)
    conflict (diags, "/p2p", "expected a way to send between stages, as pp = %u; got none", s->pp);
  if (s->p2p == LS_P2P_OVERLAPPED && strcmp (s->schedule, "1f1b") == 0)
    conflict (diags, "/p2p", "expected batched or scatter-gather, as 1f1b waits for every p2p (Megatron-LM overlaps"
              " it only with interleaved-1f1b); got overlapped");

  const LsSched *sched = check_schedule (s, diags);
  if (!sched)
    return;
  if (n_micro_batches > 0 && !check_order_size (s, n_micro_batches, diags))
    return;
  /* Without a number of micro-batches, the rules on pp and vpp still hold: pp
   * micro-batches are legal wherever any number is. */
  LsSchedShape shape = {
    .pp = s->pp,
    .vpp = s->vpp,
    .n_micro_batches = n_micro_batches > 0 ? n_micro_batches : s->pp,
  };
  /* Megatron-LM's rule; the order alone does not need it. Sizes are checked elsewhere. */
  bool lacks_stages = s->pp < 2 && strcmp (s->schedule, "interleaved-1f1b") == 0;
  const char *rule = lacks_stages ? "pp must be greater than 1" : sched->refusal (&shape);
  if (rule)
    conflict (diags, "/schedule", "%s: %s; got pp %u, vpp %u, %u micro-batches", s->schedule, rule, s->pp, s->vpp,
              shape.n_micro_batches);
}

/* ---- mechanisms that do not exist yet ---- */

static void
check_built (const LsStrategy *s, LsDiagList *diags)
{
  if (s->cp > 1)
    unsupported (diags, "/cp", "context parallelism is not built yet; expected 1, got %u", s->cp);
  if (s->ep > 1)
    unsupported (diags, "/ep", "expert parallelism is not built yet; expected 1, got %u", s->ep);
  bool needs_shards = s->zero_stage > 1;
  if (needs_shards)
    unsupported (diags, "/zero", "stage %u needs gradients%s sharded by deepspeed, fsdp1, fsdp2 or xla-fsdp, which are not"
                 " built yet; expected 0 or 1", s->zero_stage, s->zero_stage > 2 ? " and parameters" : "");
  if (s->zero_group != 0)
    unsupported (diags, "/zero", "sharding inside groups is not built yet; got %u@%u", s->zero_stage, s->zero_group);
  if (!needs_shards && s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP && s->dp_kind != LS_DP_MEGATRON)
    unsupported (diags, "/dp_kind", "%s is not built yet; expected ddp or megatron", ls_dp_kind_name (s->dp_kind));
  if (s->tp_overlap)
    unsupported (diags, "/tp_overlap", "overlapping tensor-parallel collectives with the GEMMs beside them is not"
                 " built yet; expected 0, got 1");
  if (s->dtype == LS_DTYPE_FP8)
    unsupported (diags, "/dtype", "fp8 is not built yet: the casts, amax reductions and transposed copies that its"
                 " scaling needs are not modelled; expected bf16, fp16 or fp32");
}

gboolean
ls_strategy_resolve (LsStrategy *s, const LsModel *model, uint32_t n_gpus, uint32_t gpus_per_node,
                     LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (!check_values (s, diags))
    return FALSE;

  fill (s, model, n_gpus, diags);
  check_tensor_parallel (s, model, diags);
  check_data_parallel (s, diags);
  check_dtypes (s, diags);
  ls_chunk_layers (s, model, NULL, diags);
  check_pipeline (s, check_batch (s, diags), diags);
  check_built (s, diags);
  return ls_diag_list_n (diags) == n_before;
}
