/* Pins which layers of a config.json see less than the whole sequence, or have no rope: by lists of the file, by
 * max_window_layers, by the rule of its type; that none is dropped unsaid. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"

#define SHAPE                                                                                                \
  "\"hidden_size\":256,\"intermediate_size\":512,\"num_attention_heads\":4,\"vocab_size\":1000,"             \
  "\"max_position_embeddings\":8192,\"num_key_value_heads\":4,\"head_dim\":64"
#define ON "\"sliding_window\":64,\"use_sliding_window\":true"

static bool
read_keys (const char *keys, LsModel *ret_model, GPtrArray *notes, char **ret_said)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = g_strdup_printf ("{%s}", keys);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  bool ok = doc && ls_model_read (doc, ret_model, notes, diags);
  *ret_said = ls_diag_list_format (diags);
  return ok;
}

/* A letter a layer: w has a window, f sees all; of those without rope W and F. */
static char *
letters_of (const LsModel *m)
{
  GString *letters = g_string_new (NULL);
  for (uint32_t i = 0; i < m->n_layers; i++) {
    uint32_t kind = ls_model_layer_kind (m, i);
    char letter = kind & LS_LAYER_WINDOWED ? 'w' : 'f';
    g_string_append_c (letters, kind & LS_LAYER_UNROTATED ? g_ascii_toupper (letter) : letter);
  }
  return g_string_free (letters, FALSE);
}

/* Of the notes, that on the length of sequences apart, the first; NULL: there is none. */
static const char *
first_note (const GPtrArray *notes)
{
  for (guint i = 0; i < notes->len; i++)
    if (!g_str_has_prefix (notes->pdata[i], "sequences of")
        && !g_str_has_prefix (notes->pdata[i], "the file leaves out"))
      return notes->pdata[i];
  return NULL;
}

/* layer_types as letters have it. */
static char *
types_of (const char *letters)
{
  GString *text = g_string_new ("\"layer_types\":[");
  for (const char *c = letters; *c; c++)
    g_string_append_printf (text, "%s\"%s_attention\"", c > letters ? "," : "",
                            *c == 'w' ? "sliding" : "full");
  return g_string_free (g_string_append_c (text, ']'), FALSE);
}

static void
check_layers (const char *keys, const char *letters, const char *note)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *said = NULL;
  LsModel m = { 0 };
  bool ok = read_keys (keys, &m, notes, &said);
  g_autofree char *own = ok ? letters_of (&m) : NULL;
  ls_check_impl (g_strcmp0 (own, letters) == 0 && g_strcmp0 (first_note (notes), note) == 0, __FILE__,
                 __LINE__, "%s: %s, not %s; %s %s", keys, own, letters,
                 first_note (notes) ? first_note (notes) : "", said);
  for (uint32_t i = 0; ok && i < m.n_layers; i++) {
    LsModel layer = ls_model_of_kind (&m, ls_model_layer_kind (&m, i));
    LS_CHECK (g_ascii_tolower (letters[i]) == 'f' || layer.window == 64);
  }
  ls_model_clear (&m);
}

/* What has a period is said by it, from the last or from the first; what has none, layer by layer. */
static void
lists_say_which_layers_are_windowed (void)
{
  static const char *const lists[]
      = { "wfwf", "fwfw", "wwwf", "fwww", "ffff", "wwww", "fffw", "wfff", "wwfwwwfw" };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    g_autofree char *types = types_of (lists[i]);
    g_autofree char *keys = g_strdup_printf (
        "\"model_type\":\"qwen3\"," SHAPE "," ON ",\"num_hidden_layers\":%zu,%s", strlen (lists[i]), types);
    check_layers (keys, lists[i], NULL);
  }
  LsModel m = { 0 };
  g_autofree char *said = NULL, *types = types_of ("wwwfwwwf");
  g_autofree char *keys
      = g_strdup_printf ("\"model_type\":\"qwen3\"," SHAPE "," ON ",\"num_hidden_layers\":8,%s", types);
  if (LS_CHECK (read_keys (keys, &m, NULL, &said)))
    LS_CHECK (m.window == 64 && m.full_every == 4 && m.n_layer_window == 0);
  ls_model_clear (&m);
}

/* A pattern in letters; layers that see all have no rope, and such a layer is said by a period alone. */
static void
layers_that_see_all_may_have_no_rope (void)
{
#define EXAONE "\"model_type\":\"exaone4\"," SHAPE ",\"num_hidden_layers\":4,\"sliding_window\":64,"
  g_autofree char *pairs = types_of ("wfwf"), *all = types_of ("ffff"), *first = types_of ("fwww");
  g_autofree char *of_pairs = g_strconcat (EXAONE, pairs, NULL), *of_all = g_strconcat (EXAONE, all, NULL),
                  *of_first = g_strconcat (EXAONE, first, NULL);
  check_layers (EXAONE "\"sliding_window_pattern\":\"LLLG\"", "wwwF", NULL);
  check_layers (of_pairs, "wFwF", NULL);
  check_layers (of_all, "ffff", NULL);
  check_layers (of_first, "fwwW", "no rope: taken as each 4. layer, which the file has in other layers");
}

/* Without a list: Qwen's behind max_window_layers, 28 if that is not said; each second of the first so many of
 * Qwen2-MoE; all of Qwen3-MoE; SmolLM3's without rope; each second of VaultGemma; none of Laguna; all but each
 * third from the first of ModernBERT's decoder, half of whose 128 keys an encoder has behind; as AFMoE's file says. */
static void
the_rule_of_a_type_says_it (void)
{
  static const struct {
    const char *keys, *letters;
  } cases[] = {
    { "\"model_type\":\"qwen2\"," ON ",\"num_hidden_layers\":4,\"max_window_layers\":4", "ffff" },
    { "\"model_type\":\"qwen2\"," ON ",\"num_hidden_layers\":4,\"max_window_layers\":3", "fffw" },
    { "\"model_type\":\"qwen2\"," ON ",\"num_hidden_layers\":4,\"max_window_layers\":2", "ffww" },
    { "\"model_type\":\"qwen2\"," ON ",\"num_hidden_layers\":4,\"max_window_layers\":1", "fwww" },
    { "\"model_type\":\"qwen2\"," ON ",\"num_hidden_layers\":4,\"max_window_layers\":0", "wwww" },
    { "\"model_type\":\"qwen2\"," ON ",\"num_hidden_layers\":30", "ffffffffffffffffffffffffffffww" },
    { "\"model_type\":\"qwen2\",\"sliding_window\":64,\"num_hidden_layers\":4,\"max_window_layers\":0",
      "ffff" },
    { "\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":null,\"num_hidden_layers\":4,"
      "\"max_window_layers\":0",
      "ffff" },
    { "\"model_type\":\"qwen3_moe\"," ON ",\"num_hidden_layers\":4,\"max_window_layers\":3,\"num_experts\":2,"
      "\"num_experts_per_tok\":1,\"moe_intermediate_size\":64",
      "wwww" },
    { "\"model_type\":\"smollm3\"," ON ",\"num_hidden_layers\":8", "fffWfffW" },
    { "\"model_type\":\"smollm3\"," ON ",\"num_hidden_layers\":4,\"no_rope_layers\":[1,0,1,0]", "fWfW" },
    { "\"model_type\":\"smollm3\",\"sliding_window\":64,\"num_hidden_layers\":4", "fffF" },
    { "\"model_type\":\"laguna\",\"sliding_window\":64,\"num_hidden_layers\":4,\"gating\":false", "ffff" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *keys = g_strdup_printf (SHAPE ",%s", cases[i].keys);
    check_layers (keys, cases[i].letters, NULL);
  }
  check_layers (SHAPE ",\"model_type\":\"qwen2_moe\"," ON ",\"num_hidden_layers\":6,\"max_window_layers\":3,"
                      "\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":64",
                "wfwfff", "the gate of the shared expert is left out");
  const char *left_out
      = "a matrix of the hidden size with a norm before the head, and the head's bias, are left out";
  check_layers (SHAPE ",\"model_type\":\"modernbert-decoder\",\"num_hidden_layers\":6", "fwwfww", left_out);
  check_layers (SHAPE
                ",\"model_type\":\"modernbert-decoder\",\"num_hidden_layers\":4,\"local_attention\":200,"
                "\"sliding_window\":64,\"global_attn_every_n_layers\":2",
                "fwfw", left_out);
  check_layers (SHAPE ",\"model_type\":\"afmoe\",\"sliding_window\":64,\"num_hidden_layers\":4,"
                      "\"global_attn_every_n_layers\":2,\"num_experts\":2,\"num_experts_per_tok\":1,"
                      "\"moe_intermediate_size\":64",
                "wFwF", NULL);
  check_layers (SHAPE ",\"model_type\":\"kolibri1\",\"sliding_window\":64,\"num_hidden_layers\":6,"
                      "\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":64",
                "wwwwFw", NULL);
  check_layers (
      SHAPE
      ",\"model_type\":\"zgcm\",\"sliding_window\":64,\"num_hidden_layers\":4,\"layer_types\":[\"full_attention\","
      "\"sliding_attention\",\"sliding_attention\",\"sliding_attention\"],"
      "\"attention_gate_layers\":[false,true,true,true]",
      "fwww", NULL);
  check_layers (SHAPE ",\"model_type\":\"vaultgemma\",\"sliding_window\":64,\"num_hidden_layers\":4", "wfwf",
                "the cap on attention scores is taken to cost nothing");
}

/* Where heads go with windows a period must do, and is told; one that would leave no window is refused. A type
 * without windows tells that it heeds none. */
static void
what_no_layer_can_have_is_told (void)
{
#define MIMO                                                                                                      \
  "\"model_type\":\"mimo_v2_flash\",\"hidden_size\":256,\"intermediate_size\":512,\"moe_intermediate_size\":64,"  \
  "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"swa_num_key_value_heads\":4,\"head_dim\":64,"            \
  "\"swa_head_dim\":64,\"v_head_dim\":64,\"swa_v_head_dim\":64,\"n_routed_experts\":2,\"num_experts_per_tok\":1," \
  "\"vocab_size\":1000,\"num_hidden_layers\":8,\"sliding_window\":64,"
  g_autofree char *said = NULL;
  LsModel m = { 0 };
  check_layers (
      MIMO "\"hybrid_layer_pattern\":[0,1,1,0,1,1,1,1]", "wwwfwwwf",
      "attention over the whole sequence: taken as each 4. layer, which the file has in other layers");
  LS_CHECK (!read_keys (MIMO "\"hybrid_layer_pattern\":[0,0,0,0,0,0,0,1]", &m, NULL, &said));
  LS_CHECK (strstr (said, "/hybrid_layer_pattern: windows in so few layers"));
  check_layers (SHAPE ",\"model_type\":\"llama\",\"num_hidden_layers\":2,\"sliding_window\":64", "ff",
                "windows are not used: attention of llama sees whole sequences");
  check_layers (SHAPE
                ",\"model_type\":\"llama\",\"num_hidden_layers\":2,\"layer_types\":[\"sliding_attention\","
                "\"full_attention\"]",
                "ff", "windows are not used: attention of llama sees whole sequences");
  check_layers (SHAPE ",\"model_type\":\"llama\",\"num_hidden_layers\":2,\"sliding_window\":null", "ff",
                NULL);
  check_layers (SHAPE ",\"model_type\":\"llama\",\"num_hidden_layers\":2,\"sliding_window\":64,"
                      "\"use_sliding_window\":false",
                "ff", NULL);
}

/* Lightning attention in the place of attention: MiniMax's class has each second layer for it where no list says
 * more, from the second; the first models have seven of eight. */
static void
mixers_have_a_rule_too (void)
{
  static const char *const types[][2]
      = { { "minimax", "AM" }, { "minimax_text_01", "MMMMMMMA" }, { "minimax_m1", "MMMMMMMA" } };
  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    LsModel m = { 0 };
    g_autofree char *said = NULL,
                    *keys = g_strdup_printf (SHAPE ",\"model_type\":\"%s\",\"num_hidden_layers\":8,"
                                                   "\"num_local_experts\":4,\"num_experts_per_tok\":2",
                                             types[i][0]);
    LS_CHECK (read_keys (keys, &m, NULL, &said));
    LS_CHECK_STR (m.layer_pattern, types[i][1]);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (lists_say_which_layers_are_windowed), LS_TEST (layers_that_see_all_may_have_no_rope),
               LS_TEST (the_rule_of_a_type_says_it), LS_TEST (what_no_layer_can_have_is_told),
               LS_TEST (mixers_have_a_rule_too))
