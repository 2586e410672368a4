/* FLOPs of training, as Megatron-LM counts them. A multiply-add is 2 FLOPs; the
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
#include "model/compressed.h"
#include "model/difference.h"
#include "model/mixer.h"
#include "model/predict.h"

/* Without those of compressed keys. */
static double
token_pairs (const LsModel *m, uint32_t kind, uint32_t seq)
{
  double s = seq, w = m->attn.window;
  if (kind & LS_LAYER_ENCODER)
    return 1;
  if (!(kind & LS_LAYER_WINDOWED))
    return 0.5;
  if (m->attn.window_kind == LS_WINDOW_CHUNK)
    return w < s ? w / (2 * s) : 0.5;
  return w < s ? (w - w * w / (2 * s)) / s : 0.5;
}

double
ls_model_attention_pairs (const LsModel *m, uint32_t kind, uint32_t seq)
{
  LsModel own = ls_model_of_kind (m, kind);
  return token_pairs (&own, kind, seq) + ls_compressed_pairs (m, kind, seq);
}

bool
ls_model_masks_window (const LsModel *m, uint32_t kind, uint32_t seq)
{
  const LsModel own = ls_model_of_kind (m, kind);
  bool is_plain = own.index.heads == 0 && !ls_model_is_compressed (&own) && !(kind & LS_LAYER_ENCODER);
  return is_plain && kind & LS_LAYER_WINDOWED && own.attn.window <= seq;
}

double
ls_model_index_flops (const LsModel *m, uint32_t kind, uint32_t seq)
{
  bool has_indexer = ls_layer_has_attention (kind) && !(kind & LS_LAYER_CHOSEN) && kind & LS_LAYER_WINDOWED
      && (!ls_model_is_compressed (m) || kind & LS_LAYER_CSA);
  uint32_t n_keys = seq / MAX (1, ls_compressed_ratio (m, kind));
  return has_indexer ? (double) seq * n_keys * m->index.heads * m->index.dim : 0;
}

double
ls_model_attention_width (const LsModel *m, uint32_t kind)
{
  LsModel own = ls_model_of_kind (m, kind);
  return ls_difference_calls (&own) * own.n_heads * ((double) own.head_dim + ls_model_v_dim (&own)) / 2;
}

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
