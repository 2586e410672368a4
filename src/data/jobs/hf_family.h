/* data/jobs/hf_family.h — types of decoders as `config.json` of Hugging Face names them: what their files say
 * in other words, and what they do not say (private to read_hf.c and hf_*.c).
 *
 * Facts of a type are in models/types/huggingface.json: keys of a model that all of the type have, defaults
 * of its configuration class, other names of keys, notes on what is left out. A type that is `like` another
 * has all of that one's first; of `variants`, which stand for models of several kinds under one name, the
 * keys of a file say what it is like. */
#ifndef LS_DATA_JOBS_HF_FAMILY_H
#define LS_DATA_JOBS_HF_FAMILY_H

#include <stdbool.h>

#include "base/diag.h"
#include "data/text/field.h"
#include "data/text/json_doc.h"
#include "model/model.h"

/* Numbers of layers one by one; n 0: all have the same. */
#define MAX_PREDICTIONS 64

typedef struct {
  uint32_t *of; /* [n] */
  uint32_t n;
} HfWidths;

/* What the types have in common; keys have several spellings. */
typedef struct {
  LsModel m;                   /* what keys of a file mean as they stand, over what the type has */
  char *activation, *position; /* position: rope, nope, alibi, or what the type has */
  uint32_t embedding_width;    /* opt */
  uint32_t heads_per_kv;       /* plamo: heads of queries to one of keys and values */
  uint32_t expansion;          /* mpt: ffn / hidden */
  double rotary_share;         /* of head_dim */
  uint32_t both_sides_window;  /* modernbert: keys on both sides of an encoder's query, half of them before */
  uint32_t window_v_dim;       /* of layers with a window, if others differ */
  uint32_t full_kv_heads, full_head_dim; /* of layers without, if those with differ */
  bool use_sliding_window;
  uint32_t max_window_layers; /* UINT32_MAX: not said */
  bool adjusts_ffn;           /* lfm2: two thirds of ffn times a factor, up to a multiple */
  double ffn_factor;
  uint32_t ffn_multiple;
  double ffn_share, key_share, value_share; /* xlstm: of hidden, up to that multiple; of keys; of values */
  double gated_ratio;                       /* fla: 3 / 2 of ffn_share */
  uint32_t n_shared, dense_layers, dense_ffn, sparse_step, interleave;
  bool use_mla; /* what a latent type may be without */
  uint32_t nope_dim, index_top_blocks;
  bool doubles_ffn;                   /* gemma4: of layers that share keys and values */
  uint32_t n_predictions;             /* multi-token prediction */
  char *predict_pattern;              /* of ours, too */
  uint32_t mixer_expand, mixer_width; /* of all heads; 0: hidden, or a multiple */
  uint32_t adapter_rank;              /* zamba: blocks that layers share, and their adapters */
  bool adapts_attention, mem_rope;
  uint32_t mixer_rank; /* of the step sizes; 0: a sixteenth of hidden, rounded up */
  uint32_t decay_rank, rate_rank, value_rank, gate_rank; /* rwkv7 */
  bool mixer_conv_bias;
  bool mixer_gate, attention_gate;
  uint32_t ngram_tokens, ngram_splits;         /* longcat: tables of 2 to so many tokens, so many of each */
  double ngram_ratio;                          /* rows of one to words */
  uint32_t passes;                             /* of a token through all layers */
  uint32_t decoder_layers;                     /* with an encoder */
  uint32_t encoder_layers;                     /* where the file has a part for each side */
  uint32_t attention_period, attention_offset; /* of so many layers this one has attention, from 0 */
  uint32_t expert_period, expert_offset;
  bool attention_bias, mlp_bias, bias;
  bool post_norm;                         /* hyperclovax: norms behind attention and MLP, too */
  bool multi_query, grouped_query, alibi; /* falcon */
  bool norm_before;                       /* opt */
  double dropout;                         /* of the residual stream */
  HfWidths layer_heads, layer_kv_heads, layer_ffn, layer_window, layer_experts, layer_top_k, layer_expert_ffn;
  char *pattern; /* of layers, where blocks or a list of experts say it; NULL: they do not */
} HfConfig;

/* How a type says which experts there are. */
typedef enum {
  HF_DENSE,
  HF_EVERY,       /* every layer; intermediate_size is an expert's, unless that is said apart     */
  HF_STEPPED,     /* each decoder_sparse_step-th, mlp_only_layers apart; shared as wide as said  */
  HF_AFTER,       /* from first_k_dense_replace on, each moe_layer_freq-th; n_shared_experts      */
  HF_INTERLEAVED, /* each interleave_moe_layer_step-th; one shared expert                         */
} HfExperts;

/* Which layers have a window, where no list of the file says it. */
typedef enum {
  HF_WINDOWS_BEHIND,    /* those behind the first max_window_layers; unless said, by the period of the type */
  HF_WINDOWS_ALL,       /* all, whatever max_window_layers says                          */
  HF_WINDOWS_SECOND,    /* the first and each second after it, of the first max_window_layers */
  HF_WINDOWS_UNROTATED, /* those without rope */
  HF_WINDOWS_FIRST_HALF, /* those with attention of the first half of all */
  HF_WINDOWS_LISTED,     /* none: a list must say it */
} HfWindows;

/* A type of model; seq 0: must be given. */
typedef struct {
  LsModel
      model; /* what all of the type have, by the keys of our files; the rest is 0. First: see hf_family.c */
  char *model_type;
  HfExperts experts;
  HfWindows windows;
  bool experts_are_optional;
  bool one_is_dense;        /* a file with one expert, too */
  bool latent;              /* attention */
  bool heads_are_experts;   /* queries and outputs of attention are by experts, as MLPs are */
  bool latent_queries;      /* of plain attention, from a latent of q_lora_rank */
  bool compressed;          /* attention to compressed keys, in layers that a list tells */
  bool slides;              /* sliding_window is heeded */
  bool unrotated_full;      /* layers that see the whole sequence have no rope, if others do not */
  bool dense_is_shared;     /* without experts the MLP is as wide as the shared one would be */
  bool ffn_is_shared;       /* with experts, intermediate_size is that of an MLP beside them */
  bool halves_ffn;          /* intermediate_size is twice the inner width */
  bool qkv_bias_alone;      /* attention_bias is of Q, K and V alone, and so is bias */
  bool halves;              /* a list of layers names one half of a layer each */
  bool layers_are_patterns; /* each layer of a file is all of layer_pattern */
  bool encoder;             /* num_layers of an encoder, then a decoder's; or a part of the file for each */
  uint32_t least_rank;      /* of mamba2's step sizes: hidden / 16, or this; 0: none */
  uint32_t own_behind_half; /* of layers behind the first half, so many have keys or a memory of their own; 0:
                               all, unless the file says otherwise */
  double mixer_key_share;   /* of hidden, of a mixer with as many heads as attention; 0: it says all */
  bool own_tables;          /* both have a table of words */
  bool first_of_lists; /* a list has a number for each of several sets of experts, the first of what reads */
  bool kv_by_flag;     /* heads of keys and values by multi_query and new_decoder_architecture */
  const LsJsonDoc *config; /* while it is made: the file that tells which variant it is; borrowed */
  LsJsonDoc *doc;          /* models/types/huggingface.json */
  GPtrArray *chain;        /* const cJSON *: the types that it is like, the first first, and itself */
} HfFamily;

void hf_family_free (HfFamily *f); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (HfFamily, hf_family_free)

/* The keys that are read of such a file, into an HfConfig; with section those of its object of that name, in
 * the spellings that the type gives. Ends in a NULL key; newly allocated, its words are the family's. */
LsField *hf_fields_of (const HfFamily *f, const char *section);
/* Reads what the file leaves out, then the file, into c. Keys that are not understood go to notes. */
bool hf_read_config (const HfFamily *f, const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes,
                     LsDiagList *diags);
/* Layers without experts, where a list says which: mlp_only_layers by number, mlp_layer_types by kind,
 * moe_layers_enum by the numbers of the others. Where they are not the first few c has a pattern of
 * layers. */
bool hf_read_dense_layers (const LsJsonDoc *doc, const HfFamily *f, HfConfig *c, LsDiagList *diags);
/* Into a model that is else complete. */
void hf_add_experts (const HfFamily *f, const HfConfig *c, LsModel *m);
/* Which layers have an indexer, where a list says which: indexer_types. */
bool hf_read_indexers (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags);
void hf_free_widths (HfConfig *c);
/* Layers one by one, by block_configs, by ffn_multipliers or by such lists: c has then the widest of each,
 * and layers that do nothing are left out. */
bool hf_read_blocks (const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes, LsDiagList *diags);
/* Of MLPs in layers that share keys and values, twice the width; sparse ones by
 * activation_sparsity_pattern. */
bool hf_read_beside (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags);
void hf_add_blocks (const HfConfig *c, LsModel *m);
/* What may be a number or the word auto: the rank of step sizes, by any of its names; the width of a head. */
bool hf_read_auto_sizes (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags);
/* The mixer of a type that has one, into a model whose heads are there. */
void hf_add_mixer (const HfFamily *f, const HfConfig *c, LsModel *m);
/* As many heads and as wide as attention's, of a type whose mixer says no more; layers that use what others
 * made. */
void hf_share_out (const HfFamily *f, HfConfig *c);
/* Which layers are windowed and which have no rope: by the lists of the file, its pattern, or the type's rule
 * or period. Notes say where the model has another pattern than the file. */
bool hf_add_layers (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, GPtrArray *notes,
                    LsDiagList *diags);
/* The number of layers, where only a list or a string of them says it; 0: none does. */
uint32_t hf_count_layers (const LsJsonDoc *doc);
/* Layers with a mixer or with one half: by a string or a list of the file, a period of its attention, or as
 * the type has them. */
bool hf_add_pattern (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m,
                     LsDiagList *diags);
/* What is given behind a file's name of multi-token prediction; the layers of its blocks, into a model that
 * is else complete. */
void hf_read_predictions (const LsJsonDoc *outer, HfConfig *c);
bool hf_add_predictions (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m,
                         LsDiagList *diags);
/* Appends what is left out in all models of the type, or since the file asks for it: char *. */
void hf_note_omissions (const LsJsonDoc *doc, const HfFamily *f, GPtrArray *notes);

/* A key of the i-th of the types that it is like, of the last first. */
const cJSON *hf_of_chain (const HfFamily *f, guint i, const char *key);
/* Whether heads of such models need not be hidden / heads wide: some class of theirs has a width. */
bool hf_may_have_own_heads (const HfFamily *f);
bool hf_is_off (const cJSON *node);                                        /* NULL, null, false, 0 or [] */
const cJSON *hf_find_type (const LsJsonDoc *types, const char *name);      /* NULL: there is none */
const cJSON *hf_get (const LsJsonDoc *doc, const char *key);               /* of the root; NULL: not there */
double hf_number (const cJSON *object, const char *key, double otherwise); /* where no number is there */
bool hf_rope_is_scaled (const LsJsonDoc *doc); /* cos and sin are times a factor */

bool hf_has_experts (const HfFamily *f, const HfConfig *c);
/* A diagnostic at a node with a reason; false. */
bool hf_refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *reason);

/* By model_type, else by architectures, with a note (notes: NULL or char *). NULL: a diagnostic says which
 * there are. */
HfFamily *hf_find_family (const LsJsonDoc *doc, GPtrArray *notes, LsDiagList *diags);

/* Whether the type can be simulated, and the file has none of the keys that it says cannot be. */
bool hf_is_simulated (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags);

#endif
