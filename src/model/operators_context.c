/* Attention over sequences that are cut over c context-parallel ranks; what moves between
 * them is added by lower/layers/lower_cp.c.
 *
 * Problem. A rank has s/c tokens of each sequence and, with a causal mask, needs the keys and
 * values of all tokens before them.
 *
 * Ring (Liu et al. 2023; Transformer Engine's AttnFuncWithCPAndKVP2P): c steps, each with the
 * keys and values of one rank, which travel. Balanced, a rank has parts i and 2c - 1 - i of 2c:
 * its own tokens first, causal; then either all queries with half of the keys, or half of the
 * queries with all keys. FLOPs forward, with d the width of all heads:
 *
 *     step 0   4 b (s/c)^2 d / 2        step 1 to c - 1   4 b (s/c) (s/2c) d, the same
 *
 * Rank i has i steps of the first kind, c - 1 - i of the second; all ranks run the program of
 * rank c/2 here. Unbalanced, rank i computes in steps 0 to i, whole squares after the first,
 * and idles in the others: programs differ (ls_context_is_uneven).
 * Each partial result is scaled by its log-sum-exp into the sum of those before; the backward
 * adds up dQ, dK and dV likewise.
 *
 * All-gather (Llama 3, Grattafiori et al. 2024, section 3.3.2): s/c queries with all s keys,
 * half of the pairs if balanced; unbalanced, rank i sees the keys of ranks 0 to i.
 *
 * Ulysses (Jacobs et al. 2023): all s tokens, heads / c.
 *
 * Worked example: s = 8192, c = 4, b = 1, d = 4096: 4 steps of 4 * 2048^2 * 4096 / 2 = 34.4
 * GFLOP, 137 together; times 4 ranks that is 4 s^2 d / 2.
 *
 * Latent attention cuts and sends what its up-projections make: keys n wide, values and so the context v
 * wide (Transformer Engine, AttnFuncWithCPAndKVP2P with enable_mla); its kernels are those of heads
 * (n + v) / 2 wide (operators_mla.c). An indexer would need the keys of all ranks before it chooses: refused.
 *
 * A window leaves less of each step: all steps are taken to lose the same share, and all keys and values
 * travel. So do documents in a ring, which cuts each of them over its ranks (Transformer Engine's thd
 * layout); with an all-gather whole sequences are cut, and a rank meets what it meets (model/documents.h).
 *
 * Deviations. Transformer Engine runs even and odd steps on two streams, so that the last
 * tiles of one meet the first of the next; here steps follow each other. Its two kernels of an
 * all-gather (one per part of the sequence, side by side too) are one.
 *
 * saved_bytes: Q, K, V of this rank are kept by the QKV operator and the context by the
 * projection, as without cp; received keys and values are not kept (Transformer Engine's ring
 * keeps those it held last instead of its own, which are as many). Ulysses keeps the context
 * twice: before its all-to-all, for the backward of attention, and after it. */
#include "model/operators_build.h"

static bool
is_ring (const LsShard *s)
{
  return s->cp_kind == LS_CP_RING;
}

bool
ls_context_is_uneven (const LsShard *s)
{
  return s->cp > 1 && s->cp_kind != LS_CP_ULYSSES && !s->cp_balance;
}

bool
ls_context_cuts_sequences (const LsShard *s)
{
  return s->cp > 1 && s->cp_kind == LS_CP_ALL_GATHER;
}

/* false: nothing is left by the mask. */
static bool
ring_part (const LsShard *s, uint32_t cp_rank, uint32_t step, LsAttentionPart *part)
{
  part->queries = part->keys = s->seq / s->cp;
  part->pairs = step == 0 ? 0.5 : 1;
  if (!s->cp_balance)
    return step <= cp_rank;
  if (step > 0 && step <= s->cp / 2)
    part->keys /= 2;
  else if (step > 0)
    part->queries /= 2;
  return true;
}

static bool
part_of (const LsCut *cut, uint32_t cp_rank, uint32_t step, LsAttentionPart *part)
{
  const LsShard *s = cut->shard;
  *part = (LsAttentionPart) {
    .queries = s->seq,
    .keys = s->seq,
    .heads = cut->heads,
    .kv_heads = cut->kv_heads,
    .pairs = 0.5,
    .cp_rank = cp_rank,
  };
  if (is_ring (s))
    return ring_part (s, cp_rank, step, part);
  if (s->cp_kind == LS_CP_ULYSSES) {
    part->heads /= s->cp;
    part->kv_heads /= s->cp;
    return true;
  }
  part->queries = s->seq / s->cp;
  if (!s->cp_balance) {
    part->keys = part->queries * (cp_rank + 1);
    part->pairs = (cp_rank + 0.5) / (cp_rank + 1);
  }
  return true;
}

/* The first result is copied, others are added to: read both, write one. The context is as wide as values. */
static LsKernel
merge_of (const LsCut *cut, const LsAttentionPart *part, bool is_first, bool is_backward)
{
  double sequences = cut->shard->micro_batch, head_dim = cut->model->head_dim,
         v_dim = ls_model_v_dim (cut->model);
  double q = sequences * (double) part->queries * (double) part->heads;
  double kv = sequences * (double) part->keys * (double) part->kv_heads;
  double passes = is_first ? 2 : 3;
  double bytes = is_backward ? passes * cut->elt * (q * head_dim + kv * (head_dim + v_dim))
                             : passes * (cut->elt * q * v_dim + 4 * q /* log-sum-exp */);
  return ls_kernel_stream (is_backward ? "attention-grad-merge" : "attention-merge", LS_KERNEL_ELEMENTWISE,
                           cut->act, part->queries * cut->shard->micro_batch,
                           part->heads * (is_backward ? cut->model->head_dim : ls_model_v_dim (cut->model)),
                           bytes, 0);
}

void
ls_context_step (const LsModel *m, const LsShard *s, LsContextPlace place, LsContextStep *ret_step)
{
  LsCut cut;
  LsAttentionPart part;
  uint32_t step = place.step;
  ls_cut_init (&cut, m, s);
  cut.kind = place.layer_kind;
  *ret_step = (LsContextStep) { 0 };
  ret_step->is_idle = !part_of (&cut, place.cp_rank, step, &part);
  if (ret_step->is_idle)
    return;
  ret_step->fwd = ls_attention_kernel (&cut, &part, false);
  ret_step->bwd = ls_attention_kernel (&cut, &part, true);
  if (!is_ring (s))
    return;
  ret_step->merge = merge_of (&cut, &part, step == 0, false);
  ret_step->merge_grad = merge_of (&cut, &part, step == s->cp - 1, true); /* backwards the last comes first */
}

LsKernel
ls_context_copy (const LsShard *s, const char *name, uint64_t n_bytes)
{
  LsDtype act = ls_dtype_between (s->dtype);
  return ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, act, 1, n_bytes / ls_dtype_bytes (act),
                           2.0 * (double) n_bytes, 0);
}

LsContextBytes
ls_context_bytes (const LsModel *m, const LsShard *s)
{
  LsCut cut;
  ls_cut_init (&cut, m, s);
  return (LsContextBytes) {
    .q = cut.tokens * cut.q_width * cut.elt,
    .k = cut.tokens * cut.k_width * cut.elt,
    .v = cut.tokens * cut.v_width * cut.elt,
    .context = cut.tokens * cut.context_width * cut.elt,
  };
}

void
ls_operator_context_parallel (LsOperator *op, const LsCut *cut)
{
  op->context_parallel = true;
  op->saved_bytes = 4 * cut->tokens * cut->heads;
  if (cut->shard->cp_kind == LS_CP_ULYSSES)
    op->saved_bytes += cut->tokens * cut->context_width * cut->elt;
}
