#include "strategy/shard.h"

#include <string.h>

#include <lockstep/error.h>

#include "base/draw.h"
#include "model/expert_load.h"

/* --- chunks -------------------------------------------------------------------------------------- */

static G_GNUC_PRINTF (3, 4) gboolean refuse (LsDiagList *diags, const char *pointer, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, NULL, "%s", message);
  return FALSE;
}

static gboolean
check_given (const LsStrategy *s, const LsModel *m, uint32_t n_chunks, LsDiagList *diags)
{
  static const char pointer[] = "/layers_per_chunk";

  if (s->layout.n_layers_per_chunk != n_chunks)
    return refuse (diags, pointer, "expected pp * vpp = %u * %u = %u numbers; got %u", s->pp, s->vpp,
                   n_chunks, s->layout.n_layers_per_chunk);

  uint64_t sum = 0;
  for (uint32_t i = 0; i < n_chunks; i++) {
    if (s->layout.layers_per_chunk[i] == 0 && i > 0 && i < n_chunks - 1)
      return refuse (diags, pointer,
                     "expected at least one layer in chunk %u; got 0 (only the first and"
                     " the last chunk may be without)",
                     i);
    sum += s->layout.layers_per_chunk[i];
  }
  if (sum != m->n_layers)
    return refuse (diags, pointer,
                   "expected numbers that sum to the model's %u layers; got %" G_GUINT64_FORMAT, m->n_layers,
                   sum);
  return TRUE;
}

/* Each chunk between the first and the last needs a layer. */
static gboolean
check_room (const LsStrategy *s, const LsModel *m, uint32_t n_chunks, LsDiagList *diags)
{
  if (n_chunks <= m->n_layers + UINT64_C (2))
    return TRUE;
  return refuse (diags, s->vpp > 1 ? "/vpp" : "/pp",
                 "expected pp * vpp to be at most layers + 2 = %u + 2, as only the first and the"
                 " last chunk may be without layers; got %u * %u = %u",
                 m->n_layers, s->pp, s->vpp, n_chunks);
}

bool
ls_chunks_are_even (uint32_t n_layers, uint64_t n_chunks)
{
  return n_layers % n_chunks == 0 || (n_layers + UINT64_C (2)) % n_chunks == 0;
}

bool
ls_chunks_want_balance (const LsStrategy *s, const LsModel *m)
{
  uint64_t n_chunks = (uint64_t) s->pp * s->vpp;
  return !s->layout.layers_per_chunk && n_chunks > 1
      && (s->layout.layer_rule != LS_LAYER_RULE_AUTO || !ls_chunks_are_even (m->n_layers, n_chunks));
}

static uint32_t
layers_of_chunk (const LsStrategy *s, const LsModel *m, uint32_t n_chunks, uint32_t chunk)
{
  if (s->layout.layers_per_chunk)
    return s->layout.layers_per_chunk[chunk];
  if (m->n_layers % n_chunks == 0)
    return m->n_layers / n_chunks;
  gboolean is_end = chunk == 0 || chunk == n_chunks - 1;
  return (m->n_layers + 2) / n_chunks - (is_end ? 1 : 0);
}

gboolean
ls_chunk_layers (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers, LsDiagList *diags)
{
  if ((uint64_t) s->pp * s->vpp > LS_MAX_CHUNKS)
    return refuse (diags, "/pp", "expected pp * vpp to be at most %d; got %u * %u", LS_MAX_CHUNKS, s->pp,
                   s->vpp);

  uint32_t n_chunks = s->pp * s->vpp;
  if (!(s->layout.layers_per_chunk ? check_given : check_room) (s, m, n_chunks, diags))
    return FALSE;

  g_assert (!ret_layers || !ls_chunks_want_balance (s, m));
  for (uint32_t i = 0; ret_layers && i < n_chunks; i++)
    ret_layers[i] = layers_of_chunk (s, m, n_chunks, i);
  return TRUE;
}

uint32_t
ls_encoder_chunks (const LsStrategy *s, const LsModel *m)
{
  uint32_t n_chunks = s->pp * s->vpp, sum = 0;
  for (uint32_t i = 0; i < n_chunks && sum <= m->sides.encoder_layers && !ls_chunks_want_balance (s, m);
       i++) {
    sum += layers_of_chunk (s, m, n_chunks, i);
    if (sum == m->sides.encoder_layers)
      return i + 1;
  }
  return 0;
}

/* --- operators ----------------------------------------------------------------------------------- */

LsLora
ls_strategy_lora (const LsStrategy *s, const LsModel *m)
{
  LsLora lora = { .rank = s->lora.rank,
                  .is_nf4 = s->lora.qlora,
                  .is_fp8 = s->fp8.params && s->fp8.recipe != LS_FP8_MXFP8 };
  g_autofree char *wrong = NULL;
  if (lora.rank > 0)
    ls_lora_modules (m, s->lora.modules, &lora.modules, &wrong);
  return lora;
}

static bool
has_shards (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2;
}

/* What runs again op by op has its inputs in 16 bits. */
static LsFp8Linear
fp8_linear (const LsStrategy *s)
{
  bool has_ops = s->recompute == LS_RECOMPUTE_SELECTIVE && (s->memory.recompute_parts & LS_RECOMPUTE_OP);
  if (s->dtype != LS_DTYPE_FP8)
    return LS_FP8_LINEAR_TE;
  return has_ops && s->fp8.linear ? LS_FP8_LINEAR_TORCHAO : (LsFp8Linear) s->fp8.linear;
}

bool
ls_strategy_steps_on_weights (const LsStrategy *s)
{
  return has_shards (s) || ls_master_is_the_weight ((LsMaster) s->opt.master);
}

bool
ls_strategy_has_buckets (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_DDP && s->data.overlap && !s->data.bucket_view;
}

LsDtype
ls_strategy_weights (const LsStrategy *s)
{
  bool is_wide = has_shards (s) ? !s->data.narrow_shards : s->opt.master == LS_MASTER_WEIGHTS;
  return is_wide ? LS_DTYPE_FP32 : ls_dtype_between ((LsDtype) s->dtype);
}

LsAdamStates
ls_strategy_adam (const LsStrategy *s)
{
  LsAdamStates states
      = { (LsMaster) s->opt.master, (LsDtype) s->opt.moment_dtype, (LsDtype) s->opt.variance_dtype };
  if (states.master == LS_MASTER_NONE)
    states.moment = states.variance = ls_strategy_weights (s);
  return states;
}

LsStepped
ls_strategy_optimizer_kernels (const LsStrategy *s, uint64_t n, GArray *kernels)
{
  const LsAdamStates states = ls_strategy_adam (s);
  LsDtype dtype = (LsDtype) s->dtype, grad = (LsDtype) s->opt.grad_dtype, weights = ls_strategy_weights (s);
  bool is_own = ls_strategy_steps_on_weights (s), is_plain = ls_adam_is_plain (&states);
  if (is_own)
    ls_optimizer_kernels_own (n, dtype, weights, kernels);
  else if (is_plain)
    ls_optimizer_kernels (n, dtype, grad, kernels);
  else
    ls_optimizer_kernels_narrow (n, dtype, grad, &states, kernels);
  return (LsStepped) { .n_params = n,
                       .is_not_adam = (!is_own && !is_plain) || s->opt.kind,
                       .is_narrow = is_own && weights != LS_DTYPE_FP32 };
}

static LsFormats
formats_of (const LsStrategy *s)
{
  LsFormats formats = s->fp8.module_formats;
  if (s->fp8.bf16_experts)
    formats.of[LS_MODULE_EXPERT_FC1] = formats.of[LS_MODULE_EXPERT_FC2] = LS_FORMAT_BF16;
  return formats;
}

LsShard
ls_strategy_shard (const LsStrategy *s, const LsModel *m)
{
  return (LsShard) {
    .tp = s->tp,
    .sp = s->sp && s->tp > 1,
    .micro_batch = s->micro_batch,
    .seq = s->seq,
    .attention = (LsAttention) s->use.attention,
    .qkv_layout = (LsQkvLayout) s->use.qkv_layout,
    .loss = (LsLoss) s->use.loss_kernel,
    .vocab_multiple = s->use.vocab_multiple,
    .train_metrics = s->use.train_metrics,
    .dtype = (LsDtype) s->dtype,
    .grad_dtype = (LsDtype) s->opt.grad_dtype,
    .cp = s->cp,
    .cp_kind = (LsCpKind) s->mp.cp_kind,
    .cp_steps = s->docs.lengths ? LS_CP_STEPS_TE : (LsCpSteps) s->mp.cp_steps, /* flex_attention gathers */
    .cp_balance = s->mp.cp_balance,
    .sp_save_gathered = s->mp.sp_save_gathered,
    .experts.ep = s->ep,
    .experts.etp = s->experts.etp,
    .experts.routes_in_turn = ls_expert_load_is_in_turn (s->experts.load),
    .experts.sends_tokens_once = s->experts.dispatcher != LS_DISPATCHER_ALL_TO_ALL && s->ep > 1,
    .experts.pads_sent_tokens = s->experts.dispatcher == LS_DISPATCHER_HYBRIDEP && s->ep > 1,
    .experts.grouped_gemm = s->experts.grouped_gemm,
    .experts.dispatch_fp8 = s->experts.dispatcher == LS_DISPATCHER_DEEPEP && s->experts.dispatch_fp8,
    .experts.shared_is_beside = s->experts.shared_overlap && s->ep > 1,
    .experts.capacity = s->experts.capacity,
    .experts.padding = (LsExpertPadding) s->experts.padding,
    .fp8.act_store = s->fp8.act_store,
    .fp8.recipe = (LsFp8Recipe) s->fp8.recipe,
    .fp8.linear = fp8_linear (s),
    .fp8.weights = s->fp8.params && s->fp8.recipe != LS_FP8_MXFP8,
    .fp8.attention = (LsFp8Attention) s->fp8.attention,
    .window_mask = s->use.window_mask && !s->docs.lengths, /* kernels that keep documents apart skip */
    .fp8.formats = formats_of (s),
    .fp8.bf16_first = s->fp8.bf16_first,
    .fp8.bf16_last = s->fp8.bf16_last,
    .flash_is_core = s->memory.recompute_flash,
    .apex_norm = s->use.apex_norm,
    .bias_is_apart = s->use.split_bias_dropout,
    .grad.is_fused = s->use.grad_fusion,
    .grad.is_apart = s->use.grad_apart,
    .grad.is_cast = s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage <= 1 && s->dtype == LS_DTYPE_BF16
        && s->opt.grad_dtype == LS_DTYPE_FP32,
    .grad.is_fresh = ls_dp_traits (s->dp_kind)->grad_is_fresh,
    .grad.is_own = ls_master_is_the_weight ((LsMaster) s->opt.master),
    .recipes = s->use.recipes,
    .lora = ls_strategy_lora (s, m),
    .sides_are_apart = m->sides.encoder_layers > 0 && s->pp > 1,
    .gathers_in_pieces
    = s->sp && s->tp > 1 && s->mp.tp_overlap && s->mp.tp_overlap_kind == LS_TP_OVERLAP_RING,
  };
}

static const LsDpTraits kinds[LS_N_DP_KINDS] = {
  [LS_DP_AUTO] = { 0 },
  [LS_DP_NONE] = { .keeps_gradients = true, .is_megatron = true },
  [LS_DP_PS] = { .stages = 1,
                 .expected = "0, as servers sum gradients and each rank keeps the rest",
                 .has_overlap = true,
                 .has_byte_buckets = true,
                 .is_megatron = true },
  [LS_DP_DDP]
  = { .stages = 1,
      .expected
      = "0, as ddp replicates optimizer, gradients and parameters (--dp-kind fsdp2, deepspeed do not)",
      .keeps_gradients = true,
      .has_overlap = true,
      .has_byte_buckets = true },
  [LS_DP_MEGATRON] = { .stages = 1 | 2,
                       .expected = "0 or 1, as Megatron-LM's distributed optimizer shards the optimizer only",
                       .keeps_gradients = true,
                       .has_overlap = true,
                       .has_param_buckets = true,
                       .is_megatron = true },
  [LS_DP_FSDP1] = { .stages = 4 | 8,
                    .expected = "2 (SHARD_GRAD_OP) or 3 (FULL_SHARD)",
                    .is_fsdp = true,
                    .grad_is_fresh = true },
  [LS_DP_FSDP2] = { .stages = 4 | 8,
                    .expected = "2 (reshard_after_forward false) or 3",
                    .is_fsdp = true,
                    .has_reshard = true,
                    .grad_is_fresh = true,
                    .reduces_at_the_end = true },
  [LS_DP_DEEPSPEED] = { .stages = 1 | 2 | 4 | 8, .expected = "0 to 3", .has_overlap = true },
  [LS_DP_XLA_FSDP] = { .stages = 8,
                       .expected = "3, as XLA's FSDP shards everything",
                       .is_fsdp = true,
                       .cuts_operators = true,
                       .has_overlap = true },
};

const LsDpTraits *
ls_dp_traits (int dp_kind)
{
  return &kinds[dp_kind];
}

/* Pairs of a sequence by kind, over those of a whole one; behind these, those of each cp rank. */
enum { PAIRS, WINDOWED, OF_RANK };

typedef struct {
  const LsStrategy *s;
  const LsModel *m;
  uint32_t n_ranks; /* cp, where it cuts sequences; else 0 */
  guint width;      /* OF_RANK + n_ranks                   */
  double *sequence; /* [global_batch * width] as drawn     */
  uint32_t *order;  /* [global_batch] as dealt             */
  double n_documents;
  uint32_t n_longer; /* than a sequence */
} Packer;

/* --- what is in a sequence ---------------------------------------------------------------- */

static double
square (double x)
{
  return x * x;
}

/* Pairs of the queries from a to b of a sequence, in a document that begins at `from` and ends at `to`. */
static double
pairs_between (double a, double b, double from, double to)
{
  double first = MAX (a, from) - from, last = MIN (b, to) - from;
  return first < last ? (square (last) - square (first)) / 2 : 0;
}

/* A rank has part i of n, or, balanced, parts i and 2 n - 1 - i of 2 n. */
static double
pairs_of_rank (const Packer *p, uint32_t rank, double from, double to)
{
  double n = p->n_ranks, part = p->s->seq / (p->s->mp.cp_balance ? 2 * n : n), other = 2 * n - 1 - rank;
  double pairs = pairs_between (rank * part, (rank + 1) * part, from, to);
  return p->s->mp.cp_balance ? pairs + pairs_between (other * part, (other + 1) * part, from, to) : pairs;
}

static double
window_share (const Packer *p, uint32_t length)
{
  return 2 * ls_model_attention_pairs (p->m, LS_LAYER_WINDOWED, length);
}

static void
add_document (const Packer *p, uint32_t from, uint32_t length, double *sequence)
{
  sequence[PAIRS] += square (length);
  sequence[WINDOWED] += square (length) * window_share (p, length);
  for (uint32_t r = 0; r < p->n_ranks; r++)
    sequence[OF_RANK + r] += pairs_of_rank (p, r, from, from + length);
}

static void
as_shares (const Packer *p, double *sequence)
{
  uint32_t seq = p->s->seq;
  sequence[PAIRS] /= square (seq);
  sequence[WINDOWED] /= square (seq) * window_share (p, seq);
  for (uint32_t r = 0; r < p->n_ranks; r++)
    sequence[OF_RANK + r] /= pairs_of_rank (p, r, 0, seq);
}

#define MAX_DOCUMENTS 50e6

static gboolean
draw_sequences (Packer *p, uint64_t *state, GError **error)
{
  uint32_t left = 0; /* of the document that goes on */
  for (uint32_t i = 0; i < p->s->global_batch; i++) {
    double *sequence = p->sequence + (size_t) i * p->width;
    for (uint32_t at = 0, length; at < p->s->seq && p->n_documents <= MAX_DOCUMENTS; at += length) {
      if (left == 0) {
        left = ls_lengths_draw (p->s->docs.drawn, state);
        p->n_longer += left > p->s->seq;
      }
      length = MIN (left, p->s->seq - at);
      left -= length;
      add_document (p, at, length, sequence);
      p->n_documents++;
    }
    as_shares (p, sequence);
  }
  if (p->n_documents <= MAX_DOCUMENTS)
    return TRUE;
  return ls_fail (error, LS_ERROR_LIMIT,
                  "lengths: %u sequences of %u tokens hold more than %.3g documents of \"%s\"",
                  p->s->global_batch, p->s->seq, MAX_DOCUMENTS, p->s->docs.lengths);
}

/* --- which comes when ---------------------------------------------------------------------- */

static void
shuffle (Packer *p, uint64_t *state)
{
  for (uint32_t i = p->s->global_batch; i > 1; i--) {
    uint32_t k = (uint32_t) (ls_draw_bits (state) % i), other = p->order[i - 1];
    p->order[i - 1] = p->order[k];
    p->order[k] = other;
  }
}

static int
by_pairs (gconstpointer a, gconstpointer b, gpointer data)
{
  const Packer *p = data;
  uint32_t i = *(const uint32_t *) a, k = *(const uint32_t *) b;
  double x = p->sequence[(size_t) i * p->width + PAIRS], y = p->sequence[(size_t) k * p->width + PAIRS];
  return x != y ? (x > y ? -1 : 1) : i < k ? -1 : i > k;
}

static void
put_in_order (Packer *p, uint64_t *state)
{
  for (uint32_t i = 0; i < p->s->global_batch; i++)
    p->order[i] = i;
  shuffle (p, state);
  if (p->s->docs.balance == LS_LENGTHS_SORTED)
    g_qsort_with_data (p->order, (gint) p->s->global_batch, sizeof *p->order, by_pairs, p);
}

/* Of all micro-batches, in the order in which they are dealt: where micro-batch mb of a copy is. */
static size_t
place_of (const LsStrategy *s, uint32_t copy, uint32_t mb)
{
  bool is_back = s->docs.balance == LS_LENGTHS_SORTED && mb % 2 == 1;
  return (size_t) mb * s->dp + (is_back ? s->dp - 1 - copy : copy);
}

/* --- micro-batches -------------------------------------------------------------------------- */

/* The mean of n sequences from this place on; values: [width]. */
static void
mean_of (const Packer *p, size_t place, uint32_t n, double *values)
{
  memset (values, 0, p->width * sizeof *values);
  for (uint32_t i = 0; i < n; i++)
    for (guint k = 0; k < p->width; k++)
      values[k] += p->sequence[(size_t) p->order[place + i] * p->width + k];
  for (guint k = 0; k < p->width; k++)
    values[k] /= n;
}

static LsDocuments
documents_of (const Packer *p, const double *values)
{
  return (LsDocuments) { values[PAIRS], values[WINDOWED], p->n_ranks > 0 ? values + OF_RANK : NULL };
}

/* Keys are the values, in x. */
typedef struct {
  const Packer *p;
  LsPacking *x;
  GHashTable *known;
} Numbering;

/* The number of the documents of n sequences from this place on. */
static uint32_t
number_of (Numbering *n, size_t place)
{
  double *values = n->x->values + (n->x->n_drawn + 1) * n->p->width;
  mean_of (n->p, place, n->p->s->micro_batch, values);
  g_autoptr (GBytes) key = g_bytes_new (values, n->p->width * sizeof *values);
  gpointer found = g_hash_table_lookup (n->known, key);
  if (found)
    return GPOINTER_TO_UINT (found) - 1;
  n->x->drawn[n->x->n_drawn++] = documents_of (n->p, values);
  g_hash_table_insert (n->known, g_steal_pointer (&key), GUINT_TO_POINTER (n->x->n_drawn));
  return n->x->n_drawn - 1;
}

static void
number_micro_batches (const Packer *p, LsPacking *x)
{
  const LsStrategy *s = p->s;
  uint32_t n = ls_strategy_micro_batches (s, 0);
  g_autoptr (GHashTable) known
      = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  Numbering numbering = { p, x, known };
  double most = 0;
  x->number = g_new (uint32_t, (size_t) s->dp * n);
  x->drawn = g_new (LsDocuments, (size_t) s->dp * n);
  for (uint32_t copy = 0; copy < s->dp; copy++) {
    double of_copy = 0;
    for (uint32_t mb = 0; mb < n; mb++) {
      uint32_t number = number_of (&numbering, place_of (s, copy, mb) * s->micro_batch);
      x->number[(size_t) copy * n + mb] = number;
      of_copy += x->drawn[number].pairs;
    }
    most = MAX (most, of_copy);
  }
  x->busiest_copy = most / (n * x->mean.pairs);
}

static LsPacking *
packing_of (const Packer *p)
{
  bool has_each = p->s->docs.draw == LS_LENGTHS_EACH;
  LsPacking *x = g_new0 (LsPacking, 1);
  x->n_documents = p->n_documents;
  x->n_longer = p->n_longer;
  x->busiest_copy = 1;
  x->values = g_new (
      double, (1 + (has_each ? (size_t) p->s->dp * ls_strategy_micro_batches (p->s, 0) : 0)) * p->width);
  mean_of (p, 0, p->s->global_batch, x->values);
  x->mean = documents_of (p, x->values);
  if (has_each)
    number_micro_batches (p, x);
  else if (p->s->mp.cp_balance)
    x->mean.of_rank = NULL; /* as in the mean over ranks */
  return x;
}

gboolean
ls_packing_new (const LsStrategy *s, const LsModel *m, LsPacking **ret_packing, GError **error)
{
  const LsShard shard = ls_strategy_shard (s, m);
  uint64_t state = s->docs.seed;
  *ret_packing = NULL;
  if (!s->docs.drawn)
    return TRUE;
  /* A rank has a part of a sequence wherever documents begin, not a part of each document. */
  bool is_cut = shard.cp > 1 && shard.cp_kind == LS_CP_ALL_GATHER;
  Packer p = { .s = s, .m = m, .n_ranks = is_cut ? s->cp : 0 };
  p.width = OF_RANK + p.n_ranks;
  p.sequence = g_new0 (double, (size_t) s->global_batch *p.width);
  p.order = g_new (uint32_t, s->global_batch);
  gboolean ok = draw_sequences (&p, &state, error);
  if (ok) {
    put_in_order (&p, &state);
    *ret_packing = packing_of (&p);
  }
  g_free (p.sequence);
  g_free (p.order);
  return ok;
}

void
ls_packing_free (LsPacking *packing)
{
  if (!packing)
    return;
  g_free (packing->drawn);
  g_free (packing->number);
  g_free (packing->values);
  g_free (packing);
}
