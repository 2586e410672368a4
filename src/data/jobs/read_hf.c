/* data/jobs/read_hf.c — config.json of Hugging Face, read: its parts, what it leaves out, changes behind its
 * name. */
#include <string.h>

#include "data/jobs/hf_family.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"
#include "model/mixer.h"

/* --- what a file is --------------------------------------------------------------------- */

bool
ls_is_hf_config (const LsJsonDoc *doc)
{
  return !hf_get (doc, "schema") && (hf_get (doc, "model_type") || hf_get (doc, "architectures"));
}

/* Experts where the family has none that we know. */
static bool
is_dense (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  static const char *const counts[]
      = { "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts" };
  if (f->experts != HF_DENSE)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS (counts); i++) {
    const cJSON *n = hf_get (doc, counts[i]), *most = n;
    if (cJSON_IsArray (n))
      cJSON_ArrayForEach (most, n)
        if (cJSON_IsNumber (most) && most->valuedouble > 1)
          break;
    if (cJSON_IsNumber (most) && most->valuedouble > 1)
      return hf_refuse (doc, n, diags, "experts in a model_type that has none");
  }
  return true;
}

/* By the name of its class, or since the type says so. */
static bool
has_head (const HfFamily *f, const cJSON *name)
{
  const char *text = cJSON_GetStringValue (name);
  const cJSON *one;
  for (guint i = 0; text && f && i < f->chain->len; i++)
    cJSON_ArrayForEach (one, hf_of_chain (f, i, "classes"))
      if (strcmp (one->valuestring, text) == 0)
        return true;

  static const char *const endings[] = { "CausalLM", "LMHeadModel", "ConditionalGeneration" };
  bool has = false;
  for (size_t i = 0; text && i < G_N_ELEMENTS (endings); i++)
    has = has || strstr (text, endings[i]);
  return has;
}

static bool
is_decoder (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  const cJSON *both = hf_get (doc, "is_encoder_decoder"), *name;
  bool has_encoder = f && f->encoder;
  if (cJSON_IsTrue (both) && !has_encoder)
    return hf_refuse (doc, both, diags, "a model with an encoder; only decoders, and T5, can be simulated");
  cJSON_ArrayForEach (name, hf_get (doc, "architectures"))
    if (!has_head (f, name))
      return hf_refuse (
          doc, name, diags,
          "not known to be a decoder with a language-model head, which is all that can be simulated; a "
          "decoder with another head is simulated with that one where architectures=null stands after its "
          "name");

  return true;
}

/* --- what it must say ------------------------------------------------------------------- */

bool
hf_has_experts (const HfFamily *f, const HfConfig *c)
{
  bool has_none = f->experts == HF_INTERLEAVED && c->interleave == 0; /* of so many layers */
  bool is_one = f->one_is_dense && c->m.moe.n_experts == 1;
  return f->experts != HF_DENSE && !has_none && !is_one
      && (c->m.moe.n_experts > 0 || !f->experts_are_optional);
}

/* Attention. */
static bool
is_latent (const HfFamily *f, const HfConfig *c)
{
  return f->latent && c->use_mla;
}

static bool
is_complete (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  bool has_experts = hf_has_experts (f, c), latent = is_latent (f, c),
       has_own_width = has_experts && (f->experts == HF_STEPPED || f->experts == HF_AFTER),
       has_mlp = !has_experts || c->m.moe.expert_ffn == 0 || c->dense_layers > 0,
       has_no_rule = c->expansion == 0 && c->ffn_share == 0; /* else the others have four times hidden */
  const struct {
    uint32_t value;
    const char *key;
    bool is_needed;
  } needs[] = {
    { c->m.n_layers, "num_hidden_layers", true },
    { c->m.hidden, "hidden_size", true },
    { c->m.n_heads, "num_attention_heads", true },
    { c->m.vocab, "vocab_size", true },
    { c->m.seq, "max_position_embeddings", true },
    { c->m.ffn, "intermediate_size", ls_mlp_is_gated (f->model.mlp) && has_mlp && has_no_rule },
    { c->m.moe.n_experts, f->experts == HF_AFTER ? "n_routed_experts" : "num_experts", has_experts },
    { c->m.moe.top_k, "num_experts_per_tok", has_experts },
    { c->m.moe.expert_ffn, "moe_intermediate_size", has_own_width },
    { c->m.compressed.out_groups, "o_groups", f->compressed },
    { c->m.compressed.out_lora, "o_lora_rank", f->compressed },
    { c->m.latent.q_lora, "q_lora_rank", f->compressed },
    { c->m.attn.window, "sliding_window", f->compressed },
    { c->m.latent.kv_lora, "kv_lora_rank", latent },
    { c->m.latent.rope_dim, "qk_rope_head_dim", latent },
    { c->nope_dim, "qk_nope_head_dim", latent },
    { c->m.v_dim, "v_head_dim", latent },
  };
  bool is_complete = true;
  for (guint i = 0; i < G_N_ELEMENTS (needs); i++)
    if (needs[i].is_needed && needs[i].value == 0)
      is_complete
          = ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags, "missing key \"%s\"", needs[i].key);
  return is_complete;
}

/* --- files that hold a model as a part ----------------------------------------------------------- */

/* Whether a file has a part for each side. outer: NULL allowed. */
static bool
hf_has_sides (const LsJsonDoc *outer)
{
  return outer && cJSON_IsTrue (hf_get (outer, "is_encoder_decoder"))
      && cJSON_IsObject (hf_get (outer, "decoder"));
}

/* Of a file with a part for each side, the encoder's, or what of it reads text. */
static const cJSON *
hf_encoder_part (const LsJsonDoc *outer)
{
  const cJSON *part = hf_get (outer, "encoder"), *text = ls_json_at (part, "text_config");
  return cJSON_IsObject (text) ? text : part;
}

/* Its layers, which are as wide as the decoder's. */
static bool
hf_read_encoder (const LsJsonDoc *outer, const LsJsonDoc *decoder, HfConfig *c, LsDiagList *diags)
{
  static const char *const widths[]
      = { "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim" };
  const cJSON *part = hf_encoder_part (outer), *n = ls_json_at (part, "num_hidden_layers");
  for (size_t i = 0; i < G_N_ELEMENTS (widths); i++) {
    const cJSON *theirs = cJSON_GetObjectItemCaseSensitive (part, widths[i]);
    if (!cJSON_Compare (theirs, hf_get (decoder, widths[i]), true) && (theirs || hf_get (decoder, widths[i])))
      return hf_refuse (outer, theirs ? theirs : part, diags,
                        "an encoder of other widths than its decoder cannot be simulated");
  }
  if (!cJSON_IsNumber (n) || n->valuedouble < 1 || n->valuedouble > 65535)
    return hf_refuse (outer, part ? part : ls_json_doc_root (outer), diags,
                      "expected num_hidden_layers of the encoder");
  c->encoder_layers = (uint32_t) n->valuedouble;
  return true;
}

/* Whether a part of a file has one table of tokens: as it says, or the whole does (usual: neither). Notes
 * tell which counts where they differ. Transformers 4, tie_weights(), asks get_text_config(); 5,
 * get_expanded_tied_weights_keys(), the config of the class with the head, which is the whole's (both in
 * modeling_utils.py). */
static bool
hf_is_tied (const LsJsonDoc *part, const LsJsonDoc *outer, bool usual, GPtrArray *notes)
{
  const cJSON *inside = hf_get (part, "tie_word_embeddings"),
              *outside = hf_get (outer, "tie_word_embeddings");
  const char *version = cJSON_GetStringValue (hf_get (outer, "transformers_version"));
  bool is_outside = version && g_ascii_strtoull (version, NULL, 10) >= 5;
  if (!cJSON_IsBool (inside) || !cJSON_IsBool (outside))
    return cJSON_IsBool (outside) ? cJSON_IsTrue (outside)
        : cJSON_IsBool (inside)   ? cJSON_IsTrue (inside)
                                  : usual;
  if (cJSON_IsTrue (inside) != cJSON_IsTrue (outside))
    ls_note (notes,
             "tie_word_embeddings is %s in the part that reads text and %s outside of "
             "it: Transformers %s; taken as %s",
             cJSON_IsTrue (inside) ? "true" : "false", cJSON_IsTrue (outside) ? "true" : "false",
             is_outside ? "5, which saved the file, heeds the latter" : "before 5 heeds the former",
             cJSON_IsTrue (is_outside ? outside : inside) ? "true" : "false");
  return cJSON_IsTrue (is_outside ? outside : inside);
}

/* A model of ours has one table for both sides: with a head apart they are as many weights. */
static bool
hf_separate_tables (const LsJsonDoc *doc, LsModel *m, GPtrArray *notes, LsDiagList *diags)
{
  bool is_tied = m->tied_embeddings;
  m->tied_embeddings = false;
  g_ptr_array_add (
      notes, g_strdup ("the decoder's table of tokens, which is the head's, is counted as the head alone"));
  return is_tied
      || hf_refuse (doc, ls_json_doc_root (doc), diags, "three tables of tokens cannot be simulated");
}

/* Of a multimodal file the part that reads text, of one with a part for each side the decoder's; NULL: it is
 * no such file. */
static const cJSON *
hf_text_part (const LsJsonDoc *doc)
{
  static const char *const names[] = { "text_config", "language_config", "llm_config", "decoder_config" };
  const cJSON *outer = hf_get (doc, "thinker_config");
  const cJSON *within = cJSON_IsObject (outer) ? outer : ls_json_doc_root (doc);
  if (hf_has_sides (doc))
    return hf_get (doc, "decoder");
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++) {
    const cJSON *part = cJSON_GetObjectItemCaseSensitive (within, names[i]);
    if (cJSON_IsObject (part))
      return part;
  }
  return NULL;
}

/* target_modules in words of the knob lora_modules: "q,v"; NULL: one is none of these, or a pattern. */
static char *
modules_of_adapter (const LsJsonDoc *doc)
{
  static const char *const names[]
      = { "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", NULL };
  g_autoptr (GString) words = g_string_new (NULL);
  const cJSON *module, *list = hf_get (doc, "target_modules");
  if (cJSON_IsString (list) && strcmp (list->valuestring, "all-linear") == 0)
    return g_strdup ("all-linear");
  cJSON_ArrayForEach (module, list) {
    if (!cJSON_IsString (module) || !g_strv_contains (names, module->valuestring))
      return NULL;
    g_string_append_printf (words, "%s%.*s", words->len > 0 ? "," : "",
                            (int) (strlen (module->valuestring) - strlen ("_proj")), module->valuestring);
  }
  return cJSON_IsArray (list) && words->len > 0 ? g_string_free (g_steal_pointer (&words), FALSE) : NULL;
}

/* What names its model elsewhere: Ultravox has the name of what reads text, and a params.json of Meta's or
 * Mistral's own code is none of Hugging Face's. */
static bool
refuse_elsewhere (const LsJsonDoc *doc, LsDiagList *diags)
{
  const char *text = cJSON_GetStringValue (hf_get (doc, "text_model_id"));
  const cJSON *config = hf_get (doc, "text_config");
  bool is_named = text && !(config && config->child);
  if (!is_named && !(hf_get (doc, "dim") && hf_get (doc, "n_layers") && !hf_get (doc, "model_type")))
    return false;
  ls_json_doc_diag_code (doc, LS_ERROR_UNSUPPORTED, ls_json_doc_root (doc), diags, NULL,
                         is_named
                             ? "what reads text is another model: expected %s as --model"
                             : "a params.json%s of the model's own code: expected the config.json of its "
                               "Hugging Face repository, or the model's name",
                         is_named ? text : "");
  return true;
}

bool
ls_refuse_adapter (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *base = hf_get (doc, "base_model_name_or_path"), *rank = hf_get (doc, "r");
  if (hf_get (doc, "schema"))
    return false;
  if (!hf_get (doc, "peft_type"))
    return refuse_elsewhere (doc, diags);
  g_autofree char *modules = modules_of_adapter (doc);
  g_autofree char *number = cJSON_IsNumber (rank) ? g_strdup_printf ("%.0f", rank->valuedouble) : NULL;
  ls_json_doc_diag_code (
      doc, LS_ERROR_UNSUPPORTED, ls_json_doc_root (doc), diags, NULL,
      "an adapter of PEFT, no model: expected its base%s%s as --model, with --lora-rank %s "
      "--lora-modules %s",
      cJSON_IsString (base) ? " " : "", cJSON_IsString (base) ? base->valuestring : "", number ? number : "N",
      modules ? modules : "A,B (lockstep run --help memory)");
  return true;
}

/* --- a file, read -------------------------------------------------------------------------------- */

/* The node of a key that has two spellings; the root if it is neither. */
static const cJSON *
first_of (const LsJsonDoc *doc, const char *key, const char *other)
{
  const cJSON *node = hf_get (doc, key) ? hf_get (doc, key) : hf_get (doc, other);
  return node ? node : ls_json_doc_root (doc);
}

static bool
check_shape (const LsJsonDoc *doc, const HfConfig *c, const LsModel *m, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc);
  if (c->m.head_dim == 0 && m->latent.kv_lora == 0 && c->m.hidden % c->m.n_heads != 0)
    return ls_json_doc_wrong (doc, first_of (doc, "num_attention_heads", "n_head"), diags,
                              "%u heads do not divide a hidden size of %u", c->m.n_heads, c->m.hidden);
  if (!ls_model_shares_keys_evenly (m))
    return ls_json_doc_wrong (doc, first_of (doc, "num_key_value_heads", "num_kv_heads"), diags,
                              "%u heads do not share %u heads of keys and values evenly", m->n_heads,
                              m->n_kv_heads);
  uint64_t inner = (uint64_t) c->mixer_expand * c->m.hidden,
           own = (uint64_t) c->m.mixer.heads * c->m.mixer.head_dim;
  if (m->mixer.kind == LS_MIXER_MAMBA2 && hf_get (doc, "expand") && inner > 0 && own > 0
      && c->mixer_width == 0 && inner != own)
    return ls_json_doc_wrong (doc, hf_get (doc, "expand"), diags,
                              "expand x hidden_size = %" G_GUINT64_FORMAT
                              " is not num_heads x head_dim = %u x %u",
                              inner, c->m.mixer.heads, c->m.mixer.head_dim);
  if (c->key_share > 0 && c->value_share > 0
      && (ls_mixer_inner (m) != (uint64_t) (c->value_share * c->m.hidden)
          || (uint64_t) m->mixer.heads * m->mixer.state != (uint64_t) (c->key_share * c->m.hidden)))
    return hf_refuse (doc, first_of (doc, "num_heads", "expand_ratio"), diags,
                      "expected heads that divide the width of all keys and that of all values");
  if (m->mixer.kind == LS_MIXER_KDA && c->value_share > 0 && m->mixer.head_dim != c->m.mixer.state)
    return hf_refuse (doc, first_of (doc, "expand_v", "head_dim"), diags,
                      "values of kda wider or narrower than keys cannot be simulated; expected 1");
  if (c->window_v_dim > 0 && c->window_v_dim != ls_model_v_dim (m))
    return hf_refuse (
        doc, hf_get (doc, "swa_v_head_dim"), diags,
        "values of another width in layers with a window cannot be simulated; expected v_head_dim");
  if ((c->embedding_width > 0 && c->embedding_width != c->m.hidden) || !c->norm_before)
    return hf_refuse (doc, root, diags,
                      "an OPT with norms after the layers or a narrower embedding (opt-350m) cannot be "
                      "simulated");
  return true;
}

/* Falcon: one shared head, groups, or as many as there are queries. PLaMo: one for so many, rounded up,
 * whatever num_key_value_heads says. */
static uint32_t
kv_heads (const HfFamily *f, const HfConfig *c)
{
  if (f->kv_by_flag && !c->grouped_query)
    return c->multi_query ? 1 : c->m.n_heads;
  if (c->heads_per_kv > 0)
    return (c->m.n_heads + c->heads_per_kv - 1) / c->heads_per_kv;
  return c->m.n_kv_heads ? c->m.n_kv_heads : c->m.n_heads;
}

/* A config.json is named after its folder. */
static char *
model_name (const LsJsonDoc *doc)
{
  g_autofree char *stem = ls_json_doc_stem (doc);
  if (strcmp (stem, "config") != 0)
    return g_steal_pointer (&stem);
  g_autofree char *folder = g_path_get_dirname (ls_json_doc_name (doc));
  return strcmp (folder, ".") == 0 ? g_steal_pointer (&stem) : g_path_get_basename (folder);
}

static LsMlp
activation (const HfFamily *f, const HfConfig *c)
{
  bool is_gelu = c->activation && strstr (c->activation, "gelu");
  bool says_gate = c->activation && g_str_has_prefix (c->activation, "gated-");
  if (ls_mlp_is_gated (f->model.mlp) || says_gate)
    return !c->activation ? f->model.mlp : is_gelu ? LS_MLP_GEGLU : LS_MLP_SWIGLU;
  return g_strcmp0 (c->activation, "relu2") == 0 ? LS_MLP_RELU2 : f->model.mlp;
}

/* modeling_lfm2.py of Transformers, Lfm2MLP: whole numbers after each step. */
static uint32_t
adjusted_width (const HfConfig *c, uint32_t ffn)
{
  uint64_t multiple = MAX (1, c->ffn_multiple), n = (uint64_t) (2.0 * ffn / 3);
  n = (uint64_t) (c->ffn_factor * (double) n);
  return (uint32_t) MIN (multiple * ((n + multiple - 1) / multiple), UINT32_MAX);
}

/* modeling_xlstm.py of Transformers, round_up_to_next_multiple_of(); fla/modules/mlp.py, GatedMLP, where an
 * MLP of three matrices is to have as many weights as one of two. */
static uint32_t
shared_width (const HfConfig *c)
{
  uint32_t multiple = MAX (1, c->ffn_multiple);
  double share = c->gated_ratio > 0 ? c->gated_ratio * 2 / 3 : c->ffn_share;
  return (uint32_t) ((share * c->m.hidden + multiple - 1) / multiple) * multiple;
}

static uint32_t
inner_width (const HfFamily *f, const HfConfig *c)
{
  uint32_t ratio = c->expansion ? c->expansion : 4;
  uint32_t said = c->m.ffn ? c->m.ffn : c->m.moe.expert_ffn, own = said ? said : ratio * c->m.hidden;
  if (c->ffn_share > 0 && said == 0)
    return shared_width (c);
  return c->adjusts_ffn ? adjusted_width (c, own) : own / (f->halves_ffn ? 2 : 1);
}

/* The file counts the layers of an encoder, and of a decoder as many unless it says otherwise. */
static void
add_decoder (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  if (!f->encoder)
    return;
  m->sides.encoder_layers = c->encoder_layers > 0 ? c->encoder_layers : c->m.n_layers;
  m->sides.decoder_seq = c->m.sides.decoder_seq;
  m->n_layers = m->sides.encoder_layers + (c->decoder_layers > 0 ? c->decoder_layers : c->m.n_layers);
}

/* Heads of layers with a window and without; 0 where these are those of all. */
static void
set_window_heads (const HfConfig *c, LsModel *m)
{
  uint32_t heads = c->m.attn.window_heads ? c->m.attn.window_heads : m->n_heads,
           kv_heads = c->m.attn.window_kv_heads ? c->m.attn.window_kv_heads : m->n_kv_heads,
           head_dim = c->m.attn.window_head_dim ? c->m.attn.window_head_dim : m->head_dim;
  if (c->m.head_dim == 0 && c->m.attn.window_heads > 0
      && c->m.attn.window_head_dim == 0) /* as they divide hidden */
    head_dim = c->m.hidden / c->m.attn.window_heads;
  m->n_kv_heads = c->full_kv_heads ? c->full_kv_heads : m->n_kv_heads;
  m->head_dim = c->full_head_dim ? c->full_head_dim : m->head_dim;
  m->attn.window_heads = heads != m->n_heads ? heads : 0;
  m->attn.window_kv_heads = kv_heads != m->n_kv_heads ? kv_heads : 0;
  m->attn.window_head_dim = head_dim != m->head_dim ? head_dim : 0;
}

static LsPosition
position (const HfFamily *f, const HfConfig *c)
{
  if (c->mem_rope)
    return LS_POSITION_ROPE;
  return c->alibi || g_strcmp0 (c->position, "alibi") == 0 ? LS_POSITION_ALIBI
      : g_strcmp0 (c->position, "rope") == 0               ? LS_POSITION_ROPE
      : g_strcmp0 (c->position, "nope") == 0               ? LS_POSITION_NONE
                                                           : f->model.position;
}

static void
add_beside (const HfConfig *c, LsModel *m)
{
  m->halves.streams = c->m.halves.streams > 1 ? c->m.halves.streams : 0;
  m->halves.stream_kind = m->halves.streams > 0 ? m->halves.stream_kind : LS_STREAMS_MIXED;
  m->halves.layer_vocab = c->m.halves.layer_input > 0 ? c->m.halves.layer_vocab : 0;
  m->attn.noise_heads = 2 * c->m.attn.noise_heads == c->m.n_heads ? 0 : c->m.attn.noise_heads;
  if (c->ngram_ratio > 0 && c->ngram_tokens > 1) {
    m->halves.ngram_tables = c->ngram_splits * (c->ngram_tokens - 1);
    m->halves.ngram_rows
        = m->halves.ngram_tables > 0 ? (uint32_t) MIN (c->ngram_ratio * c->m.vocab, 1u << 31) + 1 : 0;
  }
}

static LsModel
to_model (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c)
{
  LsModel m = c->m;
  m.latent = f->model.latent; /* what not all models of a type have is added where they have it */
  m.compressed = f->model.compressed;
  m.sides = f->model.sides;
  m.predict = f->model.predict;
  m.layers = f->model.layers;
  m.moe = f->model.moe;
  m.moe.router_hidden = c->m.moe.router_hidden;
  m.attn.window = 0;
  m.layers.pattern = m.predict.pattern = NULL;
  m.name = model_name (doc);
  m.source = g_strdup_printf (LS_HF_SOURCE ", model_type %s", f->model_type);
  m.n_layers = c->m.n_layers * (f->layers_are_patterns ? (uint32_t) strlen (f->model.layers.pattern) : 1);
  m.n_kv_heads = kv_heads (f, c);
  m.head_dim
      = c->m.head_dim ? c->m.head_dim : (c->m.layers.shared_blocks > 0 ? 2 : 1) * c->m.hidden / c->m.n_heads;
  if (c->m.head_dim == 0 && hf_may_have_own_heads (f))
    m.left_out = g_strdup_printf ("head_dim %u", m.head_dim);
  set_window_heads (c, &m);
  /* Latent types say it for latent attention alone, and may be without. */
  m.v_dim = f->latent || f->compressed || c->m.v_dim == m.head_dim ? 0 : c->m.v_dim;
  m.ffn = inner_width (f, c);
  m.mlp = activation (f, c);
  m.position = position (f, c);
  m.attention = LS_ATTENTION_FLASH;
  m.attn.gate |= c->attention_gate;
  m.attn.qk_norm_over = m.attn.qk_norm ? m.attn.qk_norm_over : LS_QK_NORM_HEAD;
  m.dropout = c->dropout > 0;
  m.norms = c->post_norm ? LS_NORMS_BOTH : m.norms;
  m.attn.scaled_rope = m.position == LS_POSITION_ROPE && hf_rope_is_scaled (doc);
  m.attn.rotary_dim = c->rotary_share < 1 ? (uint32_t) (c->rotary_share * m.head_dim) : c->m.attn.rotary_dim;
  if (m.position != LS_POSITION_ROPE || m.attn.rotary_dim >= m.head_dim)
    m.attn.rotary_dim = 0;
  m.linear_bias |= (c->bias && !f->qkv_bias_alone) || (c->attention_bias && c->mlp_bias);
  m.attn.qkv_bias |= (c->attention_bias && !c->mlp_bias) || (c->bias && f->qkv_bias_alone);
  hf_add_mixer (f, c, &m);
  add_decoder (f, c, &m);
  add_beside (c, &m);
  return m;
}

/* What no layer has is 0. */
static void
add_compressed (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  if (!f->compressed)
    return;
  m->compressed = c->m.compressed;
  m->latent.q_lora = c->m.latent.q_lora;
  m->latent.rope_dim = c->m.latent.rope_dim ? c->m.latent.rope_dim
      : m->attn.rotary_dim                  ? m->attn.rotary_dim
                                            : m->head_dim;
  m->attn.rotary_dim = 0;
  m->index = (LsKeyIndexer) { .heads = c->m.index.heads, .dim = c->m.index.dim, .top = c->m.index.top };
  if (!strchr (m->layers.pattern, 'S')) {
    m->compressed.csa_ratio = 0;
    m->index = (LsKeyIndexer) { 0 };
  }
  if (!strchr (m->layers.pattern, 'H'))
    m->compressed.hca_ratio = 0;
}

static void
add_latents (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  if (!is_latent (f, c)) {
    m->latent.q_lora = f->latent_queries ? c->m.latent.q_lora : 0;
    if (c->index_top_blocks > 0) /* else they are what latent attention would have */
      m->index = (LsKeyIndexer) { .heads = m->index.heads, .dim = m->index.dim, .block = m->index.block };
    else
      m->index = f->model.index;
    return;
  }
  m->latent = c->m.latent;
  m->v_dim = c->m.v_dim;
  m->index.block = m->index.top = 0;
  if (m->index.every <= 1)
    m->index.every = m->index.first = 0;
  m->head_dim = c->nope_dim + c->m.latent.rope_dim;
  m->attn.rotary_dim = 0;
  m->n_kv_heads = m->n_heads;
}

/* Adapters beside the MLP are in all such layers, whatever use_shared_mlp_adapter says (Zamba2MLP). */
static void
add_shared_blocks (const HfConfig *c, LsModel *m)
{
  if (!m->layers.pattern || !strchr (m->layers.pattern, 'B'))
    return;
  m->layers.shared_blocks = c->m.layers.shared_blocks;
  m->layers.block_mlp_rank = c->adapter_rank;
  m->layers.block_attention_rank = c->adapts_attention ? c->adapter_rank : 0;
}

/* Layers that are dense one by one, and experts of which not every so-manieth layer has. */
static bool
check_layers (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  if (f->experts == HF_STEPPED && c->dense_layers > 0 && c->sparse_step > 1)
    return hf_refuse (doc, first_of (doc, "decoder_sparse_step", "moe_layer_freq"), diags,
                      "experts in every n-th layer after dense ones; expected 1");
  if (c->expert_period > 0 && c->expert_offset + 1 != c->expert_period)
    return hf_refuse (doc, first_of (doc, "expert_layer_offset", "expert_layer_period"), diags,
                      "experts in another than the last of expert_layer_period layers; expected the last");
  if (f->experts == HF_AFTER && c->sparse_step > 1)
    return hf_refuse (doc, first_of (doc, "decoder_sparse_step", "moe_layer_freq"), diags,
                      "experts in every n-th layer from 0 on; expected 1");
  return true;
}

#define LENGTH_REMEDY "set the training length with --seq"
#define PREDICT_NOTE                                                                                         \
  "layers that predict further tokens are left out: predict_layers=1 after the model's name brings one"

static bool
is_known_activation (const char *name)
{
  static const char *const known[] = { "gelu",       "gelu_fast", "gelu_new", "gelu_pytorch_tanh",
                                       "quick_gelu", "silu",      "swish",    "gated-gelu",
                                       "gated-silu", "swiglu",    NULL };
  return g_strv_contains (known, name);
}

/* A model sends each token to a whole number of experts. */
static void
note_zero_experts (const HfConfig *c, GPtrArray *notes)
{
  uint64_t all = (uint64_t) c->m.moe.n_experts + c->m.moe.zero_experts,
           part = (uint64_t) c->m.moe.top_k * c->m.moe.n_experts;
  if (part % all == 0)
    ls_note (notes,
             "a token is sent to %u experts, zero_expert_num of which do "
             "nothing: the mean number of the others is simulated",
             c->m.moe.top_k);
  else
    ls_note (notes,
             "experts that do nothing are %u of %" G_GUINT64_FORMAT
             ": were all chosen alike, a token would meet %.2f others; %" G_GUINT64_FORMAT " simulated",
             c->m.moe.zero_experts, all, (double) part / (double) all, MAX (1, (part + all / 2) / all));
}

static void
drop_notes (GPtrArray *notes, const char *end)
{
  for (guint i = notes ? notes->len : 0; i-- > 0;)
    if (g_str_has_suffix (g_ptr_array_index (notes, i), end))
      g_ptr_array_remove_index (notes, i);
}

static void
note_assumptions (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, GPtrArray *notes)
{
  static const char *const positions[] = { "alibi", "nope", "rope", NULL };
  ls_note (notes, "sequences of %u tokens, the longest position; " LENGTH_REMEDY, c->m.seq);
  if (c->activation && !is_known_activation (c->activation))
    ls_note (notes, "the activation is assumed to cost as much as GELU or SiLU");
  if (c->position && !g_strv_contains (positions, c->position))
    ls_note (notes, "position_embedding_type %s is not known: taken as others of %s", c->position,
             f->model_type);
  if (c->m.moe.zero_experts > 0)
    note_zero_experts (c, notes);
  if (c->m.halves.kv_shared_layers > 0 && f->own_behind_half == 0)
    ls_note (notes,
             "weights of keys and values that a checkpoint may have in layers which use those of others "
             "are left out");
  if (c->n_predictions > 0)
    ls_note (notes, PREDICT_NOTE);
  hf_note_omissions (doc, f, notes);
  if (c->m.predict.layers > 0)
    drop_notes (notes, PREDICT_NOTE);
}

/* Behind what is read of each layer. */
static void
repeat_layers (const HfConfig *c, LsModel *m)
{
  if (c->passes <= 1)
    return;
  m->layers.own = m->n_layers;
  m->n_layers *= c->passes;
}

static bool
read_config (const LsJsonDoc *doc, const HfFamily *f, HfConfig *c, LsModel *ret_model, GPtrArray *notes,
             LsDiagList *diags)
{
  if (!hf_read_config (f, doc, c, notes, diags))
    return false;
  c->m.n_layers = c->m.n_layers ? c->m.n_layers : hf_count_layers (doc);
  c->m.n_heads = f->heads_are_experts ? c->m.n_kv_heads * MIN (c->m.moe.top_k, 65536) : c->m.n_heads;
  if (!hf_read_auto_sizes (doc, c, diags) || !hf_read_beside (doc, c, diags)
      || !hf_read_indexers (doc, c, diags) || !hf_read_blocks (doc, c, notes, diags))
    return false;
  if (hf_has_experts (f, c) && !hf_read_dense_layers (doc, f, c, diags))
    return false;
  if (!is_complete (doc, f, c, diags))
    return false;
  hf_share_out (f, c);
  LsModel model = to_model (doc, f, c);
  hf_add_experts (f, c, &model);
  add_latents (f, c, &model);
  bool ok = check_shape (doc, c, &model, diags) && check_layers (doc, f, c, diags)
      && hf_add_pattern (doc, f, c, &model, diags);
  if (ok)
    hf_add_blocks (c, &model);
  if (ok)
    add_shared_blocks (c, &model);
  if (ok)
    add_compressed (f, c, &model);
  ok = ok && hf_add_layers (doc, f, c, &model, notes, diags) && hf_add_predictions (doc, f, c, &model, diags);
  repeat_layers (c, &model);
  model.moe.sigmoid_router = model.moe.sigmoid_router && model.moe.n_experts > 0;
  if (ok)
    *ret_model = model;
  else
    ls_model_clear (&model);
  note_assumptions (doc, f, c, notes);
  return ok;
}

/* What neither the file nor its class has: a head of its own, and keys and values for each head. */
static void
note_unsaid (const LsJsonDoc *doc, const LsJsonDoc *outer, const HfFamily *f, const HfConfig *c,
             const LsModel *m, GPtrArray *notes)
{
  static const char tied[] = "tie_word_embeddings";
  bool says_tied = m->tied_embeddings || hf_get (doc, tied) || (outer && hf_get (outer, tied)),
       says_heads = c->m.n_kv_heads > 0 || c->heads_per_kv > 0 || f->kv_by_flag || m->latent.kv_lora > 0
      || !ls_mlp_is_gated (m->mlp) || ls_model_n_attention_layers (m) == 0;
  g_autofree char *heads
      = says_heads ? NULL : g_strdup_printf ("num_key_value_heads %u, one for each head", m->n_kv_heads);
  if (heads || !says_tied)
    ls_note (notes, "where the file is silent: %s%s%s", says_tied ? "" : "tie_word_embeddings false",
             heads && !says_tied ? "; " : "", heads ? heads : "");
}

/* outer: the file that doc is a part of, or NULL. */
static bool
read_as_type (const LsJsonDoc *doc, const LsJsonDoc *outer, const HfFamily *f, LsModel *ret_model,
              GPtrArray *notes, LsDiagList *diags)
{
  HfConfig c = {
    .m = f->model,
    .multi_query = true,
    .norm_before = true,
    .use_sliding_window = true,
    .max_window_layers = UINT32_MAX,
    .use_mla = true,
    .rotary_share = 1,
    .mixer_conv_bias = true,
    .mixer_gate = true,
    .attention_offset = UINT32_MAX, /* the last */
  };
  LsModel model = { 0 };
  if (outer)
    hf_read_predictions (outer, &c);
  bool ok = (!hf_has_sides (outer) || hf_read_encoder (outer, doc, &c, diags))
      && read_config (doc, f, &c, &model, notes, diags) && ls_model_complete (doc, &model, diags);
  if (ok && outer)
    model.tied_embeddings = hf_is_tied (doc, outer, model.tied_embeddings, notes);
  ok = ok && (!f->own_tables || hf_separate_tables (doc, &model, notes, diags));
  if (ok)
    note_unsaid (doc, outer, f, &c, &model, notes);
  if (ok)
    *ret_model = model;
  else
    ls_model_clear (&model);
  g_free (c.activation);
  g_free (c.position);
  g_free (c.pattern);
  g_free (c.predict_pattern);
  hf_free_widths (&c);
  return ok;
}

/* The same by the type that doc says, or that outer does where it says none. */
static bool
read_text_model (const LsJsonDoc *doc, const LsJsonDoc *outer, LsModel *ret_model, GPtrArray *notes,
                 LsDiagList *diags)
{
  g_autoptr (LsDiagList) unknown = ls_diag_list_new ();
  g_autoptr (HfFamily) own = hf_find_family (doc, notes, unknown);
  bool is_outer = !own && outer && !hf_get (doc, "model_type");
  g_autoptr (HfFamily) of_outer = is_outer ? hf_find_family (outer, notes, unknown) : NULL;
  HfFamily *f = own ? own : of_outer;
  if (!is_decoder (is_outer || hf_has_sides (outer) ? outer : doc, f, diags))
    return false;
  if (!f)
    hf_family_free (hf_find_family (is_outer ? outer : doc, NULL, diags));
  if (!f || !hf_is_simulated (doc, f, diags) || !is_dense (doc, f, diags))
    return false;
  g_autoptr (GPtrArray) unread = notes ? g_ptr_array_ref (notes) : g_ptr_array_new_with_free_func (g_free);
  return read_as_type (doc, outer, f, ret_model, unread, diags);
}

#define MULTIMODAL "a multimodal model: the part that reads text is simulated, without what sees or hears"

/* Of a multimodal model, what is trained on text. */
bool
ls_model_read_hf (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *text = hf_text_part (doc);
  if (!text) {
    if (notes && cJSON_IsObject (hf_get (doc, "vision_config")))
      ls_note (notes, MULTIMODAL);
    return read_text_model (doc, NULL, ret_model, notes, diags);
  }
  g_autoptr (LsJsonDoc) inner = ls_json_doc_part (doc, text, NULL);
  if (!read_text_model (inner, doc, ret_model, notes, diags))
    return false;
  bool is_side = text == hf_get (doc, "decoder") && hf_encoder_part (doc) == hf_get (doc, "encoder");
  if (notes && !is_side)
    ls_note (notes, MULTIMODAL);
  return true;
}

void
ls_model_notes_drop_length (GPtrArray *notes)
{
  drop_notes (notes, LENGTH_REMEDY);
}

/* --- changes behind the name of a file ----------------------------------------------------------- */

/* The file that is changed: what of it is read, by which keys. */
typedef struct {
  const LsJsonDoc *doc;
  const LsJsonDoc *part; /* what is read: doc, or the part of it that reads text */
  const HfFamily *family;
  const LsField *fields; /* keys that are read of part */
  char *way;             /* to the part, with its dots; "": it is doc */
} Changed;

/* Keys of a model of ours that mean the same in a file of a decoder. Widths of MLPs and what is of experts do
 * not: a type has its own idea of them. */
static const struct {
  const char *own, *theirs;
} alike[] = {
  { "layers", "num_hidden_layers" },     { "hidden", "hidden_size" }, { "heads", "num_attention_heads" },
  { "kv_heads", "num_key_value_heads" }, { "vocab", "vocab_size" },   { "seq", "max_position_embeddings" },
};

/* The key of a file that means the same as this one of ours; NULL: none. */
static const char *
theirs_of (const char *own)
{
  for (size_t i = 0; i < G_N_ELEMENTS (alike); i++)
    if (strcmp (alike[i].own, own) == 0)
      return alike[i].theirs;
  return NULL;
}

/* Layers of an encoder are others than those of its decoder, and layers that tokens pass again count anew. */
static const char *
spelled (const Changed *of, const char *key)
{
  bool is_plain = !of->family->encoder && !hf_has_sides (of->doc) && !hf_get (of->part, "total_ut_steps");
  bool is_theirs = ls_field_find (of->fields, key) != NULL;
  return is_plain && !is_theirs && theirs_of (key) ? theirs_of (key) : key;
}

static bool
has_key (const LsJsonDoc *doc, const char *key)
{
  return hf_get (doc, key) != NULL;
}

/* The keys of the part that say the same as this one, in other spellings: char *, borrowed. */
static GPtrArray *
spellings (const Changed *of, const LsField *field)
{
  GPtrArray *keys = g_ptr_array_new ();
  for (const LsField *f = of->fields; f->key; f++) {
    bool is_same = f->kind == field->kind && f->kind != LS_FIELD_IGNORED && f->offset == field->offset;
    if (is_same && has_key (of->part, f->key) && !g_ptr_array_find (keys, f->key, NULL))
      g_ptr_array_add (keys, (gpointer) f->key);
  }
  return keys;
}

static bool
refuse (const Changed *of, const char *key, const char *change, LsDiagList *diags)
{
  const char *near = theirs_of (key) ? NULL : ls_field_suggest (of->fields, key);
  g_autofree char *hint = near
      ? g_strdup_printf ("did you mean \"%s\"?", near)
      : g_strdup ("expected a key of config.json, such as num_hidden_layers or intermediate_size");
  return ls_json_doc_diag (of->doc, ls_json_doc_root (of->doc), LS_JSON_AT_VALUE, diags, hint,
                           "%s: \"%s\" is not read of a config.json of %s", change, key,
                           of->family->model_type);
}

/* Where a key of the part is spelled otherwise in the file, that one is changed. */
static void
add_of_part (const Changed *of, const LsField *field, const char *key, const char *rest, GPtrArray *ret_list)
{
  g_autoptr (GPtrArray) keys = spellings (of, field);
  if (*rest != '=' || keys->len == 0 || has_key (of->part, key)) {
    g_ptr_array_add (ret_list, g_strconcat (of->way, key, rest, NULL));
    return;
  }
  for (guint i = 0; i < keys->len; i++)
    g_ptr_array_add (ret_list, g_strconcat (of->way, keys->pdata[i], rest, NULL));
}

/* One change, as it is made in the file: once, or in the file and in its part. */
static bool
place (const Changed *of, const char *change, GPtrArray *ret_list, LsDiagList *diags)
{
  gsize n = strcspn (change, ".=");
  g_autofree char *asked = g_strndup (change, n);
  const char *key = spelled (of, asked);
  const LsField *field = ls_field_find (of->fields, key);
  bool is_whole = of->part == of->doc, is_outside = !is_whole && has_key (of->doc, key);
  bool is_inside = is_whole || !is_outside || has_key (of->part, key);
  if (is_outside)
    g_ptr_array_add (ret_list, g_strconcat (key, change + n, NULL));
  if (!is_inside && !(field && field->kind != LS_FIELD_IGNORED))
    return true; /* of the file around the part: its type, its other parts */
  if (!field)
    return refuse (of, asked, change, diags);
  add_of_part (of, field, key, change + n, ret_list);
  return true;
}

/* "text_config." of the node that this is, or "thinker_config.text_config."; newly allocated. */
static char *
way_to (const LsJsonDoc *doc, const cJSON *part)
{
  g_autofree char *pointer = ls_json_doc_pointer (doc, part);
  g_autofree char *dotted = g_strdelimit (g_strdup (pointer + 1), "/", '.');
  return g_strconcat (dotted, ".", NULL);
}

/* As ls_override_apply() takes them; NULL: one is refused. What is no change stays, for that to refuse. */
static char *
placed (const Changed *of, const char *changes, LsDiagList *diags)
{
  g_autoptr (GPtrArray) asked = ls_override_split (changes), list = g_ptr_array_new_with_free_func (g_free);
  gsize n = 0;
  bool ok = true;
  for (guint i = 0; i < asked->len; i++) {
    ok = place (of, asked->pdata[i], list, diags) && ok;
    n += strlen (asked->pdata[i]) + 1;
  }
  if (n <= strlen (changes))
    g_ptr_array_add (list, g_strdup (changes + n));
  g_ptr_array_add (list, NULL);
  return ok ? g_strjoinv (",", (char **) list->pdata) : NULL;
}

LsJsonDoc *
ls_hf_change (LsJsonDoc *doc, const char *changes, LsDiagList *diags)
{
  const cJSON *text = hf_text_part (doc);
  g_autoptr (LsJsonDoc) inner = text ? ls_json_doc_part (doc, text, NULL) : NULL;
  g_autoptr (LsDiagList) unknown = ls_diag_list_new ();
  g_autoptr (HfFamily) of_part = hf_find_family (inner ? inner : doc, NULL, unknown);
  g_autoptr (HfFamily) of_doc = of_part ? NULL : hf_find_family (doc, NULL, unknown);
  HfFamily *family = of_part ? of_part : of_doc;
  if (!family) /* a change may say the type; else it is refused when it is read */
    return ls_override_apply (doc, changes, diags);
  g_autofree LsField *fields = hf_fields_of (family, NULL);
  g_autofree char *way = text ? way_to (doc, text) : g_strdup ("");
  Changed of = { doc, inner ? inner : doc, family, fields, way };
  g_autofree char *list = placed (&of, changes, diags);
  if (list)
    return ls_override_apply (doc, list, diags);
  ls_json_doc_free (doc);
  return NULL;
}
