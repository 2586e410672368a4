/* What is legal of the optimizer, and of what is offloaded with it. */
#include "model/operators.h"
#include "strategy/dp_traits.h"
#include "strategy/shard.h"
#include "strategy/strategy_rules.h"

static bool
needs_matrices (const LsOptimizerKind *kind)
{
  return ls_optimizer_multiplies (kind) || ls_optimizer_factors (kind);
}

void
fill_optimizer (LsStrategy *s)
{
  bool is_asked = s->zero_stage > 0 && s->optimizer_kind && needs_matrices (s->optimizer_kind);
  if (!is_asked && s->optimizer_cut == LS_OPTIMIZER_CUT_ELEMENTS)
    s->optimizer_cut = LS_OPTIMIZER_CUT_AUTO;
  if (s->zero_stage == 0)
    s->optimizer_cut = LS_OPTIMIZER_CUT_AUTO;
  else if (is_asked && s->optimizer_cut == LS_OPTIMIZER_CUT_AUTO && s->dp_kind == LS_DP_MEGATRON)
    s->optimizer_cut = LS_OPTIMIZER_CUT_TENSORS;
  if (s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS)
    s->gather_overlap = 0;
}

static bool
sums_products (const LsOptimizerKind *kind)
{
  for (guint p = 0; p < kind->parts->len; p++) {
    const GArray *kernels = g_array_index (kind->parts, LsOptimizerPart, p).kernels;
    for (guint i = 0; i < kernels->len; i++)
      if (g_array_index (kernels, LsOptimizerKernel, i).sums)
        return true;
  }
  return false;
}

/* Preconditioners and sums of rows are of whole matrices; Newton-Schulz is known of pieces that are gathered.
 */
static void
check_shards (const LsStrategy *s, LsDiagList *diags)
{
  const LsOptimizerKind *kind = s->optimizer_kind;
  if (s->zero_stage == 0 || s->optimizer_cut == LS_OPTIMIZER_CUT_TENSORS || !needs_matrices (kind))
    return;
  if (s->dp_kind != LS_DP_MEGATRON)
    unsupported (
        diags, "/optimizer",
        "%s needs whole matrices, of which ranks have pieces with dp_kind %s and zero %u: how they are "
        "put together there has no source here; expected zero 0, or dp_kind megatron with zero 1",
        s->optimizer, ls_dp_kind_name (s->dp_kind), s->zero_stage);
  else if (!sums_products (kind))
    unsupported (
        diags, "/optimizer_cut",
        "%s keeps preconditioners, or sums of rows and columns, of whole matrices: how pieces of them "
        "are put together has no source here; expected tensors",
        s->optimizer);
}

static void
check_dealt (const LsStrategy *s, LsDiagList *diags)
{
  if (s->optimizer_cut != LS_OPTIMIZER_CUT_TENSORS)
    return;
  if (!s->optimizer_kind || !needs_matrices (s->optimizer_kind))
    conflict (diags, "/optimizer_cut",
              "expected elements with an optimizer that steps on each element by itself; got tensors");
  if (s->dp_kind != LS_DP_MEGATRON)
    conflict (diags, "/optimizer_cut",
              "expected elements with dp_kind %s, as Megatron-LM deals tensors out; got "
              "tensors",
              ls_dp_kind_name (s->dp_kind));
  if (s->zero_group > 0)
    unsupported (diags, "/optimizer_cut",
                 "tensors are dealt out over all data-parallel ranks, not over groups of "
                 "%u; expected zero 1 without a group",
                 s->zero_group);
}

/* PyTorch's gradients have the format of their weights, and moments too. */
static void
check_own_weights (const LsStrategy *s, LsDiagList *diags)
{
  LsDtype own = ls_strategy_weights (s);
  if (s->grad_dtype != (int) own)
    conflict (diags, "/grad_dtype", "expected %s with master %s, as weights are; got %s", ls_dtype_name (own),
              s->master == LS_MASTER_NONE ? "none" : "weights", ls_dtype_name ((LsDtype) s->grad_dtype));
  bool is_first = s->moment_dtype != LS_DTYPE_FP32;
  if (is_first || s->variance_dtype != LS_DTYPE_FP32)
    conflict (
        diags, is_first ? "/moment_dtype" : "/variance_dtype",
        "expected fp32, its default, with master none or weights, whose moments are as weights are; got %s",
        ls_dtype_name ((LsDtype) (is_first ? s->moment_dtype : s->variance_dtype)));
  if (s->grad_fusion)
    conflict (diags, "/grad_fusion",
              "expected false with master none or weights: autograd adds gradients; got true");
}

static void
check_states (const LsStrategy *s, LsDiagList *diags)
{
  const LsAdamStates states = ls_strategy_adam (s);
  if (ls_master_is_the_weight (states.master)) {
    check_own_weights (s, diags);
    return;
  }
  const char *pointer = s->master != LS_MASTER_FP32 ? "/master"
      : s->moment_dtype != LS_DTYPE_FP32            ? "/moment_dtype"
                                                    : "/variance_dtype";
  bool is_alone = s->dp_kind == LS_DP_NONE, is_megatron = s->dp_kind == LS_DP_MEGATRON && s->zero_stage == 1;
  if (ls_adam_is_plain (&states))
    return;
  if (s->optimizer_kind)
    conflict (diags, pointer, "expected fp32 with optimizer %s, whose file says what it keeps", s->optimizer);
  else if ((!is_alone && !is_megatron) || s->offload != LS_OFFLOAD_NONE)
    conflict (diags, pointer,
              "expected fp32 but with dp_kind megatron and zero 1, whose precision-aware optimizer alone has "
              "narrower states; got dp_kind %s and zero %u",
              ls_dp_kind_name (s->dp_kind), s->zero_stage);
  bool is_bf16 = ls_dtype_between ((LsDtype) s->dtype) == LS_DTYPE_BF16;
  if (s->master != LS_MASTER_FP32 && !is_bf16)
    conflict (diags, "/master",
              "expected fp32 with dtype %s, as bf16 weights only have 16 bits of an fp32 one; got "
              "%s",
              ls_dtype_name ((LsDtype) s->dtype), s->master == LS_MASTER_FP16 ? "fp16" : "remainder");
}

/* ZeRO-Offload and ZeRO-Infinity. */
static void
check_offload (const LsStrategy *s, LsDiagList *diags)
{
  if (s->offload == LS_OFFLOAD_NONE)
    return;
  if (s->dp_kind != LS_DP_DEEPSPEED)
    conflict (diags, "/offload",
              "expected none with dp_kind %s, as only --dp-kind deepspeed offloads; got %s",
              ls_dp_kind_name (s->dp_kind), s->offload == LS_OFFLOAD_PARAMETERS ? "parameters" : "optimizer");
  else if (s->offload == LS_OFFLOAD_PARAMETERS && s->zero_stage != 3)
    conflict (diags, "/offload",
              "expected none or optimizer with zero %u, as only stage 3 gathers parameters when they are "
              "used; got parameters",
              s->zero_stage);
  else if (s->zero_stage == 0)
    conflict (diags, "/offload", "expected zero 1 to 3 with it, whose optimizer is cut; got zero 0");
  else if (s->offload_to == LS_OFFLOAD_TO_NVME && s->zero_stage != 3)
    conflict (diags, "/offload_to", "expected cpu with zero %u, as ZeRO-Infinity is stage 3; got nvme",
              s->zero_stage);
  if (s->post_validation)
    conflict (diags, "/post_validation",
              "expected none with offload, whose optimizer waits for the norm; got it");
}

void
check_optimizer (const LsStrategy *s, LsDiagList *diags)
{
  check_offload (s, diags);
  check_states (s, diags);
  check_dealt (s, diags);
  if (!s->optimizer_kind)
    return;
  check_shards (s, diags);
  if (s->offload != LS_OFFLOAD_NONE)
    unsupported (diags, "/optimizer", "what %s takes on a CPU has no source here; expected adam with offload",
                 s->optimizer);
  if (s->optimizer_tp == LS_OPTIMIZER_TP_DISTRIBUTED && !sums_products (s->optimizer_kind))
    conflict (diags, "/optimizer_tp",
              "expected blockwise, as %s has no product that is summed over ranks; got "
              "distributed",
              s->optimizer);
  if (s->optimizer_tp == LS_OPTIMIZER_TP_DUPLICATED && ls_optimizer_has_tiles (s->optimizer_kind))
    conflict (diags, "/optimizer_tp",
              "expected blockwise, as %s cuts what a rank has of a matrix into tiles; got duplicated",
              s->optimizer);
}
