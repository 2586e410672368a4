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
 * Ulysses (Jacobs et al. 2023): all s tokens, heads / c. Fewer heads of keys and values than ranks are
 * repeated to c before they are exchanged, one for each rank (InternLM/xtuner@b934f462,
 * xtuner/v1/module/attention/mha.py, repeat_kv); the copy is the one that packs them, and the sum of their
 * gradients the one that unpacks.
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
 * PyTorch's ring (torch/distributed/tensor/experimental/_attention.py, pytorch/pytorch@f2127dbd, of 2025):
 * the steps of a balanced ring, whether keys and values come one by one or are gathered at the first step.
 * They are those of all heads (repeat_kv). Bytes per element of O, or of dQ, dK and dV, that a step has:
 *
 *                     eager                                      compiled: one kernel of what is pointwise
 *     first forward   O to fp32: 6                               -
 *     others          O to fp32, a difference, a product, a      the sum so far and O read, the new sum
 *                     difference: 42; half of Q: cat, 8 of all   written: 10, 8 of them of the whole sum;
 *     last            O to 16 bits: 6                            the first read, the last written in 16 bits
 *     first backward  zeros 4, += 10; dK, dV joined: 8           6
 *     others          += 10, of a half: cat, 8 of all; joined    10, 8 of them of the whole sum
 *     last            dQ to 16 bits: 6; dK, dV once they came    6
 *
 * Log-sum-exps, 1/d of O, are left out. Worked example: 32,768 tokens, d 4096, c 8, compiled: a step forward
 * with all queries moves 10 x 134 M bytes to sum up.
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

bool
ls_context_is_pytorchs (const LsShard *s)
{
  return s->cp > 1 && s->cp_steps != LS_CP_STEPS_TE && s->cp_kind != LS_CP_ULYSSES;
}

static bool
is_ring (const LsShard *s)
{
  return s->cp_kind == LS_CP_RING || ls_context_is_pytorchs (s);
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
    .kv_heads = ls_context_is_pytorchs (s) ? cut->heads : cut->kv_heads,
    .pairs = 0.5,
    .cp_rank = cp_rank,
  };
  if (is_ring (s))
    return ring_part (s, cp_rank, step, part);
  if (s->cp_kind == LS_CP_ULYSSES) {
    part->heads /= s->cp;
    part->kv_heads = MAX (part->kv_heads / s->cp, 1);
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

/* --- PyTorch's ring ----------------------------------------------------------------------------------- */

/* Elements of a tensor: of all tokens of this rank, and of those of a step. */
typedef struct {
  double all, part;
} Elements;

static Elements
elements (const LsCut *cut, uint64_t tokens, uint64_t width)
{
  double heads = (double) cut->heads * cut->shard->micro_batch;
  double all = (double) cut->shard->seq / cut->shard->cp;
  return (Elements) { all * heads * (double) width, (double) tokens * heads * (double) width };
}

static double
eager_sum (Elements o, bool is_first, bool is_last)
{
  double sum = is_first ? 6 * o.all : 42 * o.part + (o.part < o.all ? 8 * o.all : 0);
  return sum + (is_last ? 6 * o.all : 0);
}

static double
compiled_sum (Elements o, uint32_t step, bool is_last)
{
  return step == 0 ? 0 : ((step == 1 ? 2 : 4) + (is_last ? 2 : 4)) * o.all + 2 * o.part;
}

/* is_sent: joined with another for the next rank. */
static double
eager_grad (Elements x, bool is_first, bool is_last, bool is_sent)
{
  double sum = is_first ? 14 * x.all : 10 * x.part + (x.part < x.all ? 8 * x.all : 0);
  return sum + (is_sent ? 8 * x.all : 0) + (is_last ? 6 * x.all : 0);
}

static double
compiled_grad (Elements x, bool is_first, bool is_last)
{
  return (is_first ? 4 : 8) * x.all + 2 * x.part + (is_last ? 6 * x.all : 0);
}

static void
sum_as_pytorch (const LsCut *cut, const LsAttentionPart *part, uint32_t step, LsContextStep *ret)
{
  const LsModel *m = cut->model;
  bool is_eager = cut->shard->cp_steps == LS_CP_STEPS_PYTORCH, is_first = step == 0,
       is_last = step + 1 == cut->shard->cp;
  uint64_t v = ls_model_v_dim (m), kv = m->head_dim + v;
  Elements o = elements (cut, part->queries, v), dq = elements (cut, part->queries, m->head_dim),
           dkv = elements (cut, part->keys, kv);
  double sum = is_eager ? eager_sum (o, is_first, is_last) : compiled_sum (o, step, is_last);
  double grad = is_eager ? eager_grad (dq, is_first, is_last, false) + eager_grad (dkv, is_first, false, true)
                         : compiled_grad (dq, is_first, is_last) + compiled_grad (dkv, is_first, false);
  uint64_t rows = part->queries * cut->shard->micro_batch;
  ret->merge
      = ls_kernel_stream ("attention-merge", LS_KERNEL_ELEMENTWISE, cut->act, rows, cut->heads * v, sum, 0);
  ret->merge_grad = ls_kernel_stream ("attention-grad-merge", LS_KERNEL_ELEMENTWISE, cut->act, rows,
                                      cut->heads * m->head_dim, grad, 0);
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
  if (ls_context_is_pytorchs (s))
    sum_as_pytorch (&cut, &part, step, ret_step);
  if (!is_ring (s) || ls_context_is_pytorchs (s))
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
  bool has_all = ls_context_is_pytorchs (s);
  uint64_t times = s->cp_kind == LS_CP_ULYSSES ? MAX (s->cp / cut.kv_heads, 1) : 1;
  return (LsContextBytes) {
    .q = cut.tokens * cut.q_width * cut.elt,
    .k = cut.tokens * (has_all ? cut.q_width : cut.k_width * times) * cut.elt,
    .v = cut.tokens * (has_all ? cut.context_width : cut.v_width * times) * cut.elt,
    .context = cut.tokens * cut.context_width * cut.elt,
  };
}

void
ls_operator_context_parallel (LsOperator *op, const LsCut *cut)
{
  op->comm.is_context_parallel = true;
  op->kept.saved_bytes = 4 * cut->tokens * cut->heads;
  if (cut->shard->cp_kind == LS_CP_ULYSSES)
    op->kept.saved_bytes += cut->tokens * cut->context_width * cut->elt;
}
