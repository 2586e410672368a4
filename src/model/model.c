#include "model/model.h"

#define VOCAB_MULTIPLE 128 /* Megatron-LM, --make-vocab-size-divisible-by */

void
ls_model_clear (LsModel *model)
{
  if (!model)
    return;
  g_free (model->name);
  g_free (model->source);
  *model = (LsModel) { 0 };
}

void
ls_model_copy (LsModel *dest, const LsModel *source)
{
  *dest = *source;
  dest->name = g_strdup (source->name);
  dest->source = g_strdup (source->source);
}

uint64_t
ls_model_padded_vocab (const LsModel *m, uint32_t tp)
{
  uint64_t multiple = (uint64_t) VOCAB_MULTIPLE * tp;
  return (m->vocab + multiple - 1) / multiple * multiple;
}

static uint64_t
query_width (const LsModel *m)
{
  return (uint64_t) m->n_heads * m->head_dim;
}

static uint64_t
qkv_width (const LsModel *m)
{
  return query_width (m) + 2 * (uint64_t) m->n_kv_heads * m->head_dim;
}

/* Columns of the first MLP matrix: SwiGLU has gate and up side by side. */
static uint64_t
fc1_width (const LsModel *m)
{
  return (m->mlp == LS_MLP_SWIGLU ? 2 : 1) * (uint64_t) m->ffn;
}

static uint64_t
norm_params (const LsModel *m)
{
  return (m->norm == LS_NORM_LAYERNORM ? 2 : 1) * (uint64_t) m->hidden;
}

/* The four matrices of a layer. */
static uint64_t
layer_linear_params (const LsModel *m)
{
  uint64_t h = m->hidden;
  return h * qkv_width (m) + query_width (m) * h + h * fc1_width (m) + (uint64_t) m->ffn * h;
}

static uint64_t
layer_biases (const LsModel *m)
{
  uint64_t n = 0;
  if (m->linear_bias || m->qkv_bias)
    n += qkv_width (m);
  if (m->linear_bias)
    n += fc1_width (m) + 2 * (uint64_t) m->hidden;
  return n;
}

uint64_t
ls_model_layer_params (const LsModel *m)
{
  return layer_linear_params (m) + layer_biases (m) + 2 * norm_params (m);
}

uint64_t
ls_model_linear_params (const LsModel *m, uint64_t vocab)
{
  return m->n_layers * layer_linear_params (m) + vocab * m->hidden;
}

uint64_t
ls_model_params (const LsModel *m, uint64_t vocab)
{
  uint64_t table = vocab * m->hidden;
  uint64_t positions = m->position == LS_POSITION_LEARNED ? (uint64_t) m->seq * m->hidden : 0;
  uint64_t head = m->tied_embeddings ? 0 : table;
  return table + positions + m->n_layers * ls_model_layer_params (m) + norm_params (m) + head;
}
