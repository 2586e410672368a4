/* Weights of a model, and FLOPs of training as Megatron-LM counts them. A multiply-add is 2 FLOPs; the
 * backward pass costs twice the forward: its matrix products are computed once
 * for the gradient of each factor.
 *
 *     per token    6 * (parameters that it multiplies)     linear layers, logits
 *     per sequence 3 * 2 * 2 s^2 q, half of it if causal   Q K^T and P V, q = heads * head_dim; of a
 *                                                          windowed layer what its window leaves
 *
 *     per sequence 3 * 2 * 2 s^2 q                         of an encoder's layers, causal or not; of
 *                                                          attention to its tokens s times the decoder's
 *     per sequence 3 * 2 (s^2 / 2) of an indexer's heads * width
 *     per sequence 3 * products of chunks                  of each mixer (model/mixer.h)
 *
 * which for q = h, f = 4h is 72 B L s h^2 (1 + s/6h + V/12hL). Of experts a token multiplies
 * top_k, the shared ones and the router; values may be narrower than keys: q is the mean. Behind an encoder
 * the tokens are the decoder's, but for keys and values of the encoder's. */
#include "model/mixer.h"
#include "model/operators.h"

/* --- weights ------------------------------------------------------------------------------ */

/* What operators learn, of a rank that has all. */
enum {
  ALL,
  ACTIVE,   /* what one token meets: of experts, those that it is sent to */
  LINEAR,   /* of these, in products                                      */
  ADAPTERS, /* of all: what learns beside weights that do not             */
  N_SUMS
};

typedef struct {
  uint64_t n[N_SUMS];
} Weights;

static void
add_operator (Weights *w, const LsOperatorParams *p)
{
  for (uint32_t i = 0; i < p->n; i++) {
    uint64_t met = p->n_met > 0 ? p->n_met * ls_tensor_numel (&p->shape[i]) : p->numel[i];
    w->n[ALL] += p->numel[i];
    w->n[ACTIVE] += met;
    w->n[LINEAR] += p->shape[i].kind == LS_TENSOR_MATRIX ? met : 0;
    w->n[ADAPTERS] += p->is_adapter ? met : 0;
  }
}

static Weights
weights_of (const GArray *operators)
{
  Weights w = { 0 };
  for (guint i = 0; i < operators->len; i++)
    add_operator (&w, &g_array_index (operators, LsOperator, i).params);
  return w;
}

static LsShard
whole_shard (const LsModel *m)
{
  return (LsShard) { .tp = 1,
                     .micro_batch = 1,
                     .seq = m->seq,
                     .vocab_multiple = 1,
                     .dtype = LS_DTYPE_BF16,
                     .grad_dtype = LS_DTYPE_FP32 };
}

static Weights
weights_of_operators (const LsModel *m, const LsShard *s, uint32_t kind)
{
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_of_kind (m, s, kind, operators);
  return weights_of (operators);
}

/* Of a layer; products also those with the weights of another one, some of them twice. */
static Weights
weights_of_kind (const LsModel *m, const LsShard *s, uint32_t kind)
{
  const Weights own = weights_of_operators (m, s, kind);
  Weights w = weights_of_operators (m, s, kind & ~(uint32_t) LS_LAYER_AGAIN);
  w.n[ALL] = own.n[ALL];
  w.n[ACTIVE] = own.n[ACTIVE];
  w.n[LINEAR] += ls_streams_again_params (m);
  return w;
}

/* Of all layers but those of multi-token prediction. */
static Weights
weights_of_layers (const LsModel *m, const LsShard *s)
{
  uint32_t first[LS_MAX_MODEL_KINDS], n_of[LS_MAX_MODEL_KINDS] = { 0 };
  uint32_t n_kinds = ls_model_first_of_kinds (m, first);
  Weights sum = { 0 };
  for (uint32_t i = 0; i < m->n_layers; i++)
    n_of[ls_model_kind_place (m, first, n_kinds, i)]++;
  for (uint32_t k = 0; k < n_kinds; k++) {
    const Weights w = weights_of_kind (m, s, ls_model_layer_kind (m, first[k]));
    for (int i = 0; i < N_SUMS; i++)
      sum.n[i] += n_of[k] * w.n[i];
  }
  return sum;
}

/* Of what stands before the layers and behind them, with those of multi-token prediction, which may have
 * weights of their own. */
static Weights
weights_of_ends (const LsModel *all, uint64_t vocab, bool are_own)
{
  LsModel m = *all;
  const LsShard s = whole_shard (all);
  g_autoptr (GArray) operators = ls_operators_new ();
  m.vocab = (uint32_t) vocab;
  m.predict.shared &= !are_own;
  ls_operators_embedding (&m, &s, operators);
  ls_operators_head (&m, &s, !m.tied_embeddings, operators);
  return weights_of (operators);
}

static Weights
weights_of_layer (const LsModel *m, uint32_t layer)
{
  const LsShard s = whole_shard (m);
  return weights_of_kind (m, &s, ls_model_layer_kind (m, layer));
}

uint64_t
ls_model_layer_params (const LsModel *m, uint32_t layer)
{
  return weights_of_layer (m, layer).n[ALL];
}

uint64_t
ls_model_layer_linear_params (const LsModel *m, uint32_t layer)
{
  return weights_of_layer (m, layer).n[LINEAR];
}

uint64_t
ls_model_linear_params (const LsModel *m, uint64_t vocab)
{
  const LsShard s = whole_shard (m);
  return weights_of_layers (m, &s).n[LINEAR] + weights_of_ends (m, vocab, true).n[LINEAR]
      + (1 + m->predict.layers) * vocab * m->hidden;
}

uint64_t
ls_model_params (const LsModel *m, uint64_t vocab)
{
  const LsShard s = whole_shard (m);
  return weights_of_layers (m, &s).n[ALL] + weights_of_ends (m, vocab, false).n[ALL];
}

/* Of tables for several tokens a token takes a row each. */
uint64_t
ls_model_active_params (const LsModel *m, uint64_t vocab)
{
  const LsShard s = whole_shard (m);
  return weights_of_layers (m, &s).n[ACTIVE] + weights_of_ends (m, vocab, false).n[ACTIVE]
      - (ls_ngram_rows (m) - m->halves.ngram_tables) * ls_ngram_width (m);
}

uint64_t
ls_lora_params (const LsModel *m, const LsLora *lora)
{
  LsShard s = whole_shard (m);
  s.lora = *lora;
  return lora->rank > 0 ? weights_of_layers (m, &s).n[ADAPTERS] : 0;
}

/* --- FLOPs -------------------------------------------------------------------------------- */

double
ls_model_two_way_flops (const LsModel *m, uint32_t seq)
{
  double s = seq, q = (double) m->n_heads * m->head_dim, n = m->sides.encoder_layers;
  return n == 0 ? 0 : 4 * s * q * (s * n + ls_model_decoder_seq (m, seq) * (m->n_layers - n));
}

/* With an encoder. */
static double
two_sided_flops (const LsModel *m, uint64_t vocab, uint32_t seq, bool causal)
{
  double s = seq, t = ls_model_decoder_seq (m, seq), q = (double) m->n_heads * m->head_dim;
  double keys = 2.0 * m->hidden * m->n_kv_heads * m->head_dim,
         decoders = m->n_layers - m->sides.encoder_layers;
  double encoder = 0, decoder = (double) vocab * m->hidden - (m->sides.merged_cross ? 0 : keys * decoders);
  for (uint32_t i = 0; i < m->n_layers; i++)
    *(i < m->sides.encoder_layers ? &encoder : &decoder) += (double) ls_model_layer_linear_params (m, i);
  double linear = 6 * (s * (encoder + keys * decoders) + t * decoder);
  return linear + (causal ? 6 : 12) * t * t * q * decoders + 3 * ls_model_two_way_flops (m, seq);
}

double
ls_model_flops (const LsModel *m, uint64_t vocab, uint32_t seq, double n_sequences, bool causal)
{
  if (m->sides.encoder_layers > 0)
    return n_sequences * two_sided_flops (m, vocab, seq, causal);
  double s = seq;
  double linear = 6 * s * (double) ls_model_linear_params (m, vocab);
  double widths = 0, mixers = 0, indexed = 0; /* widths: of heads, as if no layer had a window */
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++) {
    uint32_t kind = ls_model_layer_kind (m, i);
    widths += ls_layer_has_attention (kind)
        ? 2 * ls_model_attention_pairs (m, kind, seq) * ls_model_attention_width (m, kind)
        : 0;
    mixers += (kind & LS_LAYER_MIXER) != 0;
    indexed += ls_model_index_flops (m, kind, seq);
  }
  double attention = 12 * s * s * widths;
  linear += 3 * indexed;
  linear += mixers > 0 ? 3 * mixers * ls_mixer_flops (m, 1, seq) : 0;
  return n_sequences * (linear + (causal ? attention / 2 : attention));
}

double
ls_lora_flops_saved (const LsModel *m, const LsLora *lora, uint64_t vocab, uint32_t seq, double n_sequences)
{
  if (lora->rank == 0)
    return 0;
  double tokens = n_sequences * seq, frozen = (double) ls_model_linear_params (m, vocab);
  return tokens * (2 * frozen - 6 * (double) ls_lora_params (m, lora));
}
