/* data/jobs/hf_family.h — families of decoders as `config.json` of Hugging Face names them: their keys, and
 * what their files do not say (private to read_hf.c and hf_family.c). */
#ifndef LS_DATA_JOBS_HF_FAMILY_H
#define LS_DATA_JOBS_HF_FAMILY_H

#include <stdbool.h>

#include "base/diag.h"
#include "data/text/field.h"
#include "data/text/json_doc.h"
#include "model/model.h"

/* What the families have in common; keys have several spellings. */
typedef struct {
  char *activation;
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq;
  uint32_t embedding_width; /* opt */
  uint32_t sliding_window;
  uint32_t experts, top_k, expert_ffn, shared_ffn, n_shared, dense_layers, dense_ffn, sparse_step, interleave;
  uint32_t q_lora, kv_lora, rope_dim, nope_dim, v_dim;
  uint32_t n_predictions;  /* multi-token prediction */
  bool use_sliding_window; /* qwen2 */
  bool tied;
  bool attention_bias, mlp_bias, bias;
  bool multi_query, grouped_query, alibi; /* falcon */
  bool norm_before;                       /* opt */
  double dropout;                         /* of the residual stream */
} HfConfig;

/* How a family says which experts there are. */
typedef enum {
  HF_DENSE,
  HF_MIXTRAL,  /* every layer; intermediate_size is an expert's                        */
  HF_QWEN,     /* each decoder_sparse_step-th, mlp_only_layers apart; shared as wide as said */
  HF_DEEPSEEK, /* from first_k_dense_replace on, each moe_layer_freq-th; n_shared_experts     */
  HF_LLAMA4,   /* each interleave_moe_layer_step-th; one shared expert                  */
} HfExperts;

/* Defaults of a family and what its files do not say. seq 0: must be given. */
typedef struct {
  const char *model_type;
  LsMlp mlp;
  LsNorm norm;
  LsPosition position;
  uint32_t seq;
  bool tied;
  bool linear_bias;
  bool qkv_bias;
  double dropout;
  HfExperts experts;
  bool qk_norm, is_latent;
} HfFamily;

/* Of HfConfig. */
extern const LsField hf_fields[];

const cJSON *hf_get (const LsJsonDoc *doc, const char *key); /* of the root; NULL: not there */

/* A diagnostic at a node (NULL: the root) with a reason; false. */
bool hf_refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *reason);

/* By model_type, else by architectures, with a note (notes: NULL or char *). NULL: a diagnostic says which
 * there are. */
const HfFamily *hf_find_family (const LsJsonDoc *doc, GPtrArray *notes, LsDiagList *diags);

/* Whether it is a decoder of the kinds that are modelled; else a diagnostic. */
bool hf_is_decoder (const LsJsonDoc *doc, LsDiagList *diags);
bool hf_is_dense (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags);

#endif
