/* Pins counts of types whose code a publisher had beside its files before or instead of Transformers, and of what
 * reads text in multimodal models; what of a file says which kind it is, and that what cannot matter gives no note. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"

/* Of layers like Llama's: attention, an MLP of so many matrices, norms; tables of words beside them. */
#define LAYERS(n_, h_, heads_, kv_, dim_, matrices_, ffn_, norms_)                                           \
  ((n_)                                                                                                      \
   * (2.0 * (h_) * (heads_) * (dim_) + 2.0 * (h_) * (kv_) * (dim_) + (double) (matrices_) * (h_) * (ffn_)    \
      + (double) (norms_) * (h_)))
#define TABLES(n_, vocab_, h_) ((double) (n_) * (vocab_) * (h_) + (h_))

typedef struct {
  const char *keys;
  double total, active; /* active 0: all */
  LsPosition position;
  const char *note; /* the first but that on the length; NULL: none */
} Case;

static void
check_case (const Case *c, double tolerance)
{
  LsModel m = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *text = g_strdup_printf ("{%s}", c->keys);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  bool ok = doc && ls_model_read (doc, &m, notes, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  if (!ls_check_impl (ok, __FILE__, __LINE__, "%s", said))
    return;
  double total = (double) ls_model_params (&m, m.vocab),
         active = (double) ls_model_active_params (&m, m.vocab);
  double of_token = c->active > 0 ? c->active : c->total;
  const char *note = NULL;
  for (guint i = notes->len; i-- > 0;)
    if (!g_str_has_prefix (notes->pdata[i], "sequences of")
        && !g_str_has_prefix (notes->pdata[i], "the file leaves out"))
      note = notes->pdata[i];
  ls_check_impl (fabs (total / c->total - 1) < tolerance && fabs (active / of_token - 1) < tolerance,
                 __FILE__, __LINE__, "%.70s: %.0f and %.0f, counted %.0f and %.0f", c->keys, total, active,
                 c->total, of_token);
  LS_CHECK_INT (m.position, ==, c->position);
  LS_CHECK_STR (note, c->note);
  ls_model_clear (&m);
}

static void
check_cases (const Case *cases, guint n)
{
  for (guint i = 0; i < n; i++)
    check_case (&cases[i], 5e-4);
}

#define SIDE_BY_SIDE "attention and MLP are taken one after the other, not side by side"

/* stablelm-3b-4e1t (2 795 443 200), Yi-6B (6 061 035 520) and Baichuan-13B (13 264 901 120) as their files hold;
 * Skywork-13B, Aquila-7B, phi-1_5 (1.42 B), BTLM-3B-8K (2.65 B), CodeShell-7B, Refact-1.6B, moss-moon-003 (16.7 B)
 * by the shapes of their layers. Grok-2 as sglang's grok.py counts it, with an MLP of 32768 beside the experts: 270 B,
 * of which 115 B are active. */
static void
publishers_code_counts_the_same (void)
{
  static const Case cases[] = {
    { "\"architectures\":[\"StableLMEpochForCausalLM\"],\"model_type\":\"stablelm_epoch\",\"hidden_size\":2560,"
      "\"intermediate_size\":6912,\"max_position_embeddings\":4096,\"num_attention_heads\":32,\"num_heads\":32,"
      "\"num_hidden_layers\":32,\"num_key_value_heads\":32,\"rope_pct\":0.25,\"rotary_scaling_factor\":1.0,"
      "\"vocab_size\":50304",
      2795443200, 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"YiForCausalLM\"],\"model_type\":\"Yi\",\"hidden_size\":4096,\"vocab_size\":64000,"
      "\"intermediate_size\":11008,\"max_position_embeddings\":4096,\"num_attention_heads\":32,"
      "\"num_hidden_layers\":32,\"num_key_value_heads\":4",
      6061035520, 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"SkyworkForCausalLM\"],\"model_type\":\"skywork\",\"hidden_size\":4608,"
      "\"intermediate_size\":12288,\"max_position_embeddings\":4096,\"num_attention_heads\":36,"
      "\"num_hidden_layers\":52,\"num_key_value_heads\":36,\"vocab_size\":65519",
      TABLES (2, 65519, 4608) + LAYERS (52, 4608, 36, 36, 128, 3, 12288, 2), 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"AquilaModel\"],\"model_type\":\"aquila\",\"hidden_size\":4096,\"vocab_size\":100008,"
      "\"intermediate_size\":11008,\"max_position_embeddings\":2048,\"num_attention_heads\":32,"
      "\"num_hidden_layers\":32",
      TABLES (2, 100008, 4096) + LAYERS (32, 4096, 32, 32, 128, 3, 11008, 2), 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"BaichuanForCausalLM\"],\"model_type\":\"baichuan\",\"_from_model_config\":true,"
      "\"hidden_size\":5120,\"intermediate_size\":13696,\"model_max_length\":4096,\"num_attention_heads\":40,"
      "\"num_hidden_layers\":40,\"vocab_size\":64000",
      13264901120, 0, LS_POSITION_ALIBI, NULL },
    { "\"architectures\":[\"BaiChuanForCausalLM\"],\"model_type\":\"baichuan\",\"hidden_size\":4096,"
      "\"intermediate_size\":11008,\"max_position_embeddings\":4096,\"num_attention_heads\":32,"
      "\"num_hidden_layers\":32,\"vocab_size\":64000",
      7000559616, 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"MixFormerSequentialForCausalLM\"],\"model_type\":\"mixformer-sequential\","
      "\"architecture\":{\"block_cls\":\"parallel\",\"mixer\":{},\"mlp\":{\"mlp_cls\":\"mlp\"}},"
      "\"activation_function\":\"gelu_new\",\"n_embd\":2048,\"n_head\":32,\"n_inner\":null,\"n_layer\":24,"
      "\"n_positions\":2048,\"resid_pdrop\":0.0,\"rotary_dim\":32,\"vocab_size\":51200",
      1418270720, 0, LS_POSITION_ROPE, SIDE_BY_SIDE },
    { "\"architectures\":[\"BTLMLMHeadModel\"],\"model_type\":\"btlm\",\"activation_function\":\"swiglu\","
      "\"n_embd\":2560,\"n_head\":32,\"n_inner\":6826,\"n_layer\":32,\"n_positions\":8192,"
      "\"position_embedding_type\":\"alibi\",\"resid_pdrop\":0.0,\"vocab_size\":50257,\"mup_width_scale\":0.1,"
      "\"alibi_scaling\":null,\"tie_word_embeddings\":true",
      TABLES (1, 50257, 2560) + LAYERS (32, 2560, 32, 32, 80, 3, 6826, 4) + 32 * (5.0 * 2560 + 2 * 6826), 0,
      LS_POSITION_ALIBI, NULL },
    { "\"architectures\":[\"CodeShellForCausalLM\"],\"model_type\":\"kclgpt\",\"group_query_attention\":true,"
      "\"activation_function\":\"gelu_pytorch_tanh\",\"attention_softmax_in_fp32\":true,\"n_embd\":4096,"
      "\"n_head\":32,\"n_inner\":16384,\"n_layer\":42,\"n_positions\":8192,\"num_query_groups\":8,"
      "\"position_embedding_type\":\"rope\",\"resid_pdrop\":0.1,\"rope_scaling\":null,\"vocab_size\":70144",
      TABLES (1, 70144, 4096) + LAYERS (42, 4096, 32, 8, 128, 2, 16384, 4), 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"GPTRefactForCausalLM\"],\"model_type\":\"gpt_refact\",\"multi_query\":true,"
      "\"attention_bias_in_fp32\":true,\"n_embd\":2048,\"n_head\":32,\"n_inner\":null,\"n_layer\":32,"
      "\"n_positions\":4096,\"resid_pdrop\":0.1,\"vocab_size\":49216",
      TABLES (2, 49216, 2048) + LAYERS (32, 2048, 32, 1, 64, 3, 5632, 2), 0, LS_POSITION_ALIBI, NULL },
    { "\"architectures\":[\"MossForCausalLM\"],\"model_type\":\"moss\",\"n_embd\":6144,\"n_head\":24,"
      "\"n_layer\":34,\"n_positions\":2048,\"n_ctx\":2048,\"rotary_dim\":64,\"vocab_size\":107008",
      TABLES (2, 107008, 6144) + LAYERS (34, 6144, 24, 24, 256, 2, 24576, 2) + 34.0 * (6144 + 24576), 0,
      LS_POSITION_ROPE, "biases of the MLP and of the head are left out" },
    { "\"architectures\":[\"Grok1ForCausalLM\"],\"model_type\":\"git\",\"vocab_size\":131072,"
      "\"hidden_size\":8192,\"intermediate_size\":32768,\"moe_intermediate_size\":16384,"
      "\"max_position_embeddings\":131072,\"num_experts_per_tok\":2,\"num_local_experts\":8,"
      "\"residual_moe\":true,\"num_attention_heads\":64,\"num_key_value_heads\":8,\"num_hidden_layers\":64,"
      "\"head_dim\":128,\"final_logit_softcapping\":50,\"attn_logit_softcapping\":30.0,"
      "\"router_logit_softcapping\":30.0,\"attn_temperature_len\":1024,\"sliding_window_size\":-1,"
      "\"global_attn_every_n\":1",
      TABLES (2, 131072, 8192) + LAYERS (64, 8192, 64, 8, 128, 3, 32768 + 8 * 16384, 4),
      TABLES (2, 131072, 8192) + LAYERS (64, 8192, 64, 8, 128, 3, 32768 + 2 * 16384, 4), LS_POSITION_ROPE,
      "the cap on attention scores is taken to cost nothing" },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

#define PART(type_, keys_)                                                                                   \
  "\"architectures\":[\"SomeForConditionalGeneration\"],\"vision_config\":{},"                               \
  "\"text_config\":{\"model_type\":\"" type_ "\"" keys_ "}"
#define MULTIMODAL "a multimodal model: the part that reads text is simulated, without what sees or hears"

/* By the shapes of their layers: Muse Glimmer 30B (whose encoder is 1.9 B), GLM-OCR, North Micro Vision, Emu3 (8.5 B),
 * DeepSeek-OCR-2 (3 B, 570 M active but for both tables), Cosmos3-Edge, Voxtral-Mini-4B-Realtime (3.4 B), Granite
 * Vision 4 (Granite 4.0 Micro). */
static void
parts_that_read_text_count_the_same (void)
{
  static const Case cases[] = {
    { PART ("muse_glimmer_text", ""),
      TABLES (2, 202048, 6656) + LAYERS (52, 6656, 32, 2, 128, 3, 19968, 4) + 52.0 * 6656 * 32 * 128, 0,
      LS_POSITION_ROPE,
      "norms of queries, of keys and of the embedding, which have no weights, are left out" },
    { PART ("glm_ocr_text",
            ",\"hidden_size\":1536,\"intermediate_size\":4608,\"head_dim\":128,"
            "\"rope_parameters\":{\"partial_rotary_factor\":1.0}"),
      TABLES (2, 59392, 1536) + LAYERS (16, 1536, 16, 8, 128, 3, 4608, 4), 0, LS_POSITION_ROPE, MULTIMODAL },
    { PART ("cohere_compass_text",
            ",\"hidden_size\":2048,\"intermediate_size\":6144,\"num_hidden_layers\":28,"
            "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":262144"),
      TABLES (1, 262144, 2048) + LAYERS (28, 2048, 16, 8, 128, 3, 6144, 1), 0, LS_POSITION_ROPE,
      SIDE_BY_SIDE },
    { PART ("emu3_text_model", ""), TABLES (2, 184622, 4096) + LAYERS (32, 4096, 32, 8, 128, 3, 14336, 2), 0,
      LS_POSITION_ROPE, MULTIMODAL },
    { "\"model_type\":\"Emu3\",\"architectures\":[\"Emu3ForCausalLM\"],\"boi_token_id\":151852,"
      "\"image_area\":518400",
      TABLES (2, 184622, 4096) + LAYERS (32, 4096, 32, 8, 128, 3, 14336, 2), 0, LS_POSITION_ROPE, NULL },
    { PART ("deepseek_ocr2_text",
            ",\"hidden_size\":1280,\"intermediate_size\":6848,\"num_hidden_layers\":3,\"vocab_size\":129280,"
            "\"num_attention_heads\":10,\"moe_intermediate_size\":896,\"num_experts_per_tok\":6,"
            "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\"]"),
      TABLES (2, 129280, 1280) + LAYERS (1, 1280, 10, 10, 128, 3, 6848, 2)
          + LAYERS (2, 1280, 10, 10, 128, 3, 66 * 896, 2) + 2.0 * 64 * 1280,
      TABLES (2, 129280, 1280) + LAYERS (1, 1280, 10, 10, 128, 3, 6848, 2)
          + LAYERS (2, 1280, 10, 10, 128, 3, 8 * 896, 2) + 2.0 * 64 * 1280,
      LS_POSITION_ROPE, MULTIMODAL },
    { PART ("cosmos3_edge_text", ""), TABLES (2, 131072, 2048) + LAYERS (28, 2048, 16, 8, 128, 2, 9216, 2), 0,
      LS_POSITION_ROPE, MULTIMODAL },
    { PART ("voxtral_realtime_text",
            ",\"hidden_size\":3072,\"intermediate_size\":9216,\"num_hidden_layers\":26,\"head_dim\":128,"
            "\"num_key_value_heads\":8,\"num_attention_heads\":32,\"vocab_size\":131072,"
            "\"sliding_window\":8192,\"tie_word_embeddings\":true"),
      TABLES (1, 131072, 3072) + LAYERS (26, 3072, 32, 8, 128, 3, 9216, 2), 0, LS_POSITION_ROPE,
      "scales behind a norm of each layer, made from the delay by products of rank 32, are left out" },
    { PART (
          "granite4_vision_text",
          ",\"hidden_size\":2560,\"intermediate_size\":8192,\"num_hidden_layers\":40,\"num_attention_heads\":40,"
          "\"num_key_value_heads\":8,\"vocab_size\":100352,\"tie_word_embeddings\":true"),
      TABLES (1, 100352, 2560) + LAYERS (40, 2560, 40, 8, 64, 3, 8192, 2), 0, LS_POSITION_ROPE, MULTIMODAL },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

/* Of a class in which a head is as wide as the file's other widths say, and Gemma's 256 is none: 128, in the one
 * layer of three with attention; the rest as Griffin's recurrent unit has it. MPT has ALiBi unless its file says
 * otherwise, and then a table of positions. Chameleon-34B has norms behind, 7B before. CTRL (1.64 B) is what its
 * class says; GLM-4.1V's attention has biases, whatever the file says; GOT-OCR-2.0 and EXAONE 4.5 (the 32.0 B of
 * EXAONE 4) are types of others. */
static void
what_a_file_leaves_out_is_of_its_class (void)
{
#define MPT                                                                                                  \
  "\"model_type\":\"mpt\",\"d_model\":512,\"n_heads\":8,\"n_layers\":2,\"vocab_size\":1000,\"max_seq_len\":2048"
#define CHAMELEON                                                                                            \
  "\"model_type\":\"chameleon\",\"architectures\":[\"ChameleonForConditionalGeneration\"],\"vq_config\":{}"
  static const Case cases[] = {
    { MPT ",\"attn_config\":{\"alibi\":false}",
      TABLES (1, 1000, 512) + LAYERS (2, 512, 8, 8, 64, 2, 2048, 2) + 2048 * 512, 0, LS_POSITION_LEARNED,
      NULL },
    { MPT ",\"attn_config\":{\"alibi\":true,\"qk_ln\":true}",
      TABLES (1, 1000, 512) + LAYERS (2, 512, 8, 8, 64, 2, 2048, 4), 0, LS_POSITION_ALIBI, NULL },
    { MPT, TABLES (1, 1000, 512) + LAYERS (2, 512, 8, 8, 64, 2, 2048, 2), 0, LS_POSITION_ALIBI, NULL },
    { CHAMELEON, TABLES (2, 65536, 4096) + LAYERS (32, 4096, 32, 32, 128, 3, 11008, 4), 0, LS_POSITION_ROPE,
      "biases of the norms of queries and keys are left out" },
    { "\"model_type\":\"ctrl\",\"architectures\":[\"CTRLLMHeadModel\"]",
      TABLES (1, 246534, 1280) + LAYERS (48, 1280, 16, 16, 80, 2, 8192, 4), 0, LS_POSITION_NONE,
      "the activation is taken to cost as much as GELU or SiLU" },
    { PART ("glm4v_text",
            ",\"hidden_size\":4096,\"intermediate_size\":13696,\"num_hidden_layers\":40,"
            "\"num_attention_heads\":32,\"num_key_value_heads\":2,\"vocab_size\":151552"),
      TABLES (2, 151552, 4096) + LAYERS (40, 4096, 32, 2, 128, 3, 13696, 4) + 40.0 * 36 * 128, 0,
      LS_POSITION_ROPE, MULTIMODAL },
    { "\"model_type\":\"GOT\",\"architectures\":[\"GOTQwenForCausalLM\"],\"hidden_size\":1024,"
      "\"intermediate_size\":2816,\"num_attention_heads\":16,\"num_key_value_heads\":16,"
      "\"num_hidden_layers\":24,\"vocab_size\":151860,\"use_sliding_window\":false,\"max_window_layers\":21,"
      "\"im_end_token\":151858,\"tie_word_embeddings\":true",
      TABLES (1, 151860, 1024) + LAYERS (24, 1024, 16, 16, 64, 3, 2816, 2) + 24.0 * 48 * 64, 0,
      LS_POSITION_ROPE, "a multimodal model: the part that reads text is simulated, without what sees" },
    { PART ("exaone4_5_text",
            ",\"hidden_size\":5120,\"intermediate_size\":27392,\"num_hidden_layers\":64,"
            "\"num_attention_heads\":40,\"num_key_value_heads\":8,\"vocab_size\":102400,"
            "\"max_position_embeddings\":131072,\"sliding_window\":4096"),
      32003216384, 0, LS_POSITION_ROPE, MULTIMODAL },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
  const char *text = "{\"model_type\":\"recurrent_gemma\",\"hidden_size\":1024,\"intermediate_size\":6144,"
                     "\"num_attention_heads\":8,\"num_hidden_layers\":3,\"vocab_size\":1000,"
                     "\"num_key_value_heads\":1}",
             *post = "{" CHAMELEON ",\"swin_norm\":true}",
             *biased = "{" PART ("glm4v_text",
                                 ",\"hidden_size\":512,\"intermediate_size\":512,"
                                 "\"num_hidden_layers\":2,\"num_attention_heads\":8,"
                                 "\"vocab_size\":1000,\"attention_bias\":false") "}";
  LsModel m = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags),
                        of_post = ls_json_doc_parse (post, strlen (post), "config.json", diags),
                        of_biased = ls_json_doc_parse (biased, strlen (biased), "config.json", diags);
  LS_CHECK (ls_model_read (doc, &m, NULL, diags));
  LS_CHECK (m.head_dim == 128 && m.rotary_dim == 64 && m.tied_embeddings && m.seq == 8192);
  ls_model_clear (&m);
  LS_CHECK (ls_model_read (of_post, &m, NULL, diags));
  LS_CHECK (m.norms == LS_NORMS_POST && m.qk_norm);
  ls_model_clear (&m);
  LS_CHECK (ls_model_read (of_biased, &m, NULL, diags));
  LS_CHECK (m.qkv_bias && m.norms == LS_NORMS_BOTH);
  ls_model_clear (&m);
}

/* By the arguments of modules in the code: Solar-Open2-250B, whose layers with KDA have products of rank 128 for decay and
 * gate; Open-Llama-V2; Doge-320M, of which residual weights and what makes the mask, 0.04 %, are left out. GPT-2
 * of a file that has neither a model_type nor a head. */
static void
further_decoders_count_as_their_code_says (void)
{
#define KDA(h_, width_, heads_, dim_)                                                                        \
  (4.0 * (h_) * (width_) + (h_) * (heads_) + 12.0 * (width_) + 2.0 * (dim_) * ((h_) + (width_)) + (width_)   \
   + (heads_) + (dim_))
#define SOLAR(met_)                                                                                          \
  (TABLES (2, 196608, 4096) + LAYERS (12, 4096, 64, 8, 128, 1, 8192, 0) + 36.0 * KDA (4096, 8192, 64, 128)   \
   + 48.0 * (2 * 4096 + 320 * 4096 + ((met_) + 1) * 3.0 * 4096 * 1280))
#define DOGE_LAYER (2.0 * 1024 + 2 * 128 + 4 * 128 * 4 + 4)
  static const Case cases[] = {
    { "\"model_type\":\"solar_open2\",\"architectures\":[\"SolarOpen2ForCausalLM\"],\"gqa_interval\":3,"
      "\"linear_attn_config\":{\"short_conv_kernel_size\":4,\"head_dim\":128,\"num_heads\":64,\"num_kv_heads\":null},"
      "\"gqa_layers\":[0,4,8,12,16,20,24,28,32,36,40,44]",
      SOLAR (320), SOLAR (8), LS_POSITION_NONE, NULL },
    { "\"model_type\":\"open-llama\",\"vocab_size\":64000,\"tie_word_embeddings\":false",
      TABLES (1, 64000, 4096) + LAYERS (32, 4096, 32, 32, 128, 3, 11008, 2), 0, LS_POSITION_ROPE,
      "the norm behind the embedding is left out" },
    { "\"model_type\":\"open-llama\",\"shared_input_output_embedding\":false,\"use_stable_embedding\":true",
      TABLES (2, 100000, 4096) + LAYERS (32, 4096, 32, 32, 128, 3, 11008, 2), 0, LS_POSITION_ROPE,
      "the norm behind the embedding is left out" },
    { "\"model_type\":\"doge\",\"num_key_value_heads\":4,\"is_moe\":false,\"num_experts\":16384,"
      "\"num_experts_per_tok\":64,\"keep_window_size\":2048,\"tie_word_embeddings\":true",
      TABLES (1, 32768, 1024) + LAYERS (32, 1024, 8, 4, 128, 3, 2048, 2) + 32 * DOGE_LAYER, 0,
      LS_POSITION_ROPE,
      "the mask that values make, keys that it leaves out past keep_window_size, and weights of residuals are "
      "left out" },
    { "\"architectures\":[\"GPT2Model\"],\"n_embd\":768,\"n_layer\":12,\"n_head\":12,\"vocab_size\":50257",
      124439808, 0, LS_POSITION_LEARNED,
      "model_type (none) is not known; read as gpt2, which its architecture GPT2Model is" },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

/* By the arguments of modules in the code: what is left out of Ettin, a matrix before the head and a bias of it, is
 * 0.3 %. Apple's own model has 21 layers that use the last keys and values of those before them. */
static void
decoders_of_few_files_count_as_their_code_says (void)
{
#define PLM_LAYER                                                                                            \
  (2048.0 * 16 * 192 + 2048 * 576 + 512 + 512 * 16 * 256 + 2048 * 2048 + 2 * 2048 * 8192 + 2 * 2048)
  static const Case cases[] = {
    { "\"model_type\":\"gpt_neox_japanese\",\"hidden_size\":2560,\"num_hidden_layers\":32,"
      "\"num_attention_heads\":32,\"intermediate_multiple_size\":4,\"vocab_size\":32000,\"rotary_pct\":1.0,"
      "\"rotary_emb_base\":10000",
      TABLES (1, 32000, 2560) + LAYERS (32, 2560, 32, 32, 80, 2, 10240, 4), 0, LS_POSITION_ROPE,
      "a bias of the last layer is left out" },
    { "\"model_type\":\"modernbert-decoder\",\"architectures\":[\"ModernBertDecoderForCausalLM\"],"
      "\"hidden_size\":1792,\"intermediate_size\":3840,\"num_hidden_layers\":28,\"num_attention_heads\":28,"
      "\"vocab_size\":50368,\"norm_bias\":false,\"decoder_bias\":true,\"hidden_activation\":\"gelu\"",
      TABLES (1, 50368, 1792) + LAYERS (28, 1792, 28, 28, 64, 3, 3840, 2), 0, LS_POSITION_ROPE,
      "a matrix of the hidden size with a norm before the head, and the head's bias, are left out" },
    { "\"model_type\":\"talkie\",\"vocab_size\":65540,\"n_layer\":40,\"n_head\":40,\"n_embd\":5120,"
      "\"head_dim\":128,\"max_seq_len\":2048",
      TABLES (2, 65540, 5120) + LAYERS (40, 5120, 40, 40, 128, 3, 13696, 0), 0, LS_POSITION_ROPE,
      "weights of norms, which it has not, are counted; what adds the embedding behind each layer is left "
      "out" },
    { "\"model_type\":\"plm\",\"hidden_size\":2048,\"intermediate_size\":8192,\"num_hidden_layers\":32,"
      "\"num_attention_heads\":16,\"kv_lora_rank\":512,\"q_lora_rank\":null,\"qk_nope_head_dim\":128,"
      "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"vocab_size\":151936,\"max_position_embeddings\":4096,"
      "\"hidden_act\":\"relu2\"",
      TABLES (1, 151936, 2048) + 32 * PLM_LAYER, 0, LS_POSITION_ROPE,
      "the activation is taken to cost as much as GELU or SiLU" },
    { "\"model_type\":\"afm7\",\"vocab_size\":153600,\"hidden_dim\":2048,\"num_layers\":56,"
      "\"num_kv_reuse_layers\":21,\"num_heads\":16,\"num_kv_heads\":2,\"max_position_embeddings\":4096",
      TABLES (1, 153600, 2048) + LAYERS (56, 2048, 16, 2, 128, 3, 6656, 2) - 21 * 2.0 * 2048 * 256, 0,
      LS_POSITION_ROPE,
      "weights of keys and values that a checkpoint may have in layers which use those of others are left "
      "out" },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

/* To the last one, by the arguments of modules in the code, but for what a note leaves out. */
static void
decoders_of_2026_count_as_their_code_says (void)
{
#define KOLIBRI(experts_)                                                                                    \
  (TABLES (2, 128000, 2560) + LAYERS (50, 2560, 48, 4, 128, 3 * ((experts_) + 1), 512, 4)                    \
   + 50 * (384.0 * 2560 + 2 * 128))
#define K2                                                                                                   \
  "\"model_type\":\"k2_horizon\",\"layernorm_num_groups\":4,\"rope_head_dim\":128,\"hidden_size\":4096,"     \
  "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":250624,"             \
  "\"intermediate_size\":12288,\"num_hidden_layers\":36"
#define K2_SIZE (TABLES (2, 250624, 4096) + LAYERS (36, 4096, 32, 8, 128, 3, 12288, 2))
#define K2_SPARSE(experts_)                                                                                  \
  (K2_SIZE + 34 * 4096.0 * (3 * (((experts_) + 2) * 768 - 12288.0) + 64) + 36 * 4096.0 * 4096                \
   + 36 * 40 * 128.0)
#define COGVLM(inner_, words_)                                                                               \
  "\"hidden_size\":4096,\"intermediate_size\":" #inner_ ",\"num_attention_heads\":32,"                       \
  "\"num_hidden_layers\":32,\"vocab_size\":" #words_ ",\"template_version\":\"chat\""
#define ZGCM(gates_)                                                                                         \
  (TABLES (2, 155136, 4096) + LAYERS (32, 4096, 32, 8, 128, 3, 11008, 2) + 32 * 2 * 128                      \
   + (gates_) *4096.0 * 4096)
  static const char *const groups
      = "norms are taken over whole widths, not by groups, and biases of routers are left out";
  const Case cases[] = {
    { "\"model_type\":\"kolibri1\",\"head_dtype\":\"float32\",\"use_sliding_window\":true,\"norm_topk_prob\":false",
      KOLIBRI (384), KOLIBRI (6), LS_POSITION_ROPE, NULL },
    { K2, K2_SIZE, 0, LS_POSITION_ROPE, groups },
    { K2 ",\"attention_gate_func\":null,\"num_experts\":0,\"mova_num_experts\":0", K2_SIZE, 0,
      LS_POSITION_ROPE, groups },
    { K2
      ",\"attention_gate_func\":\"softplus\",\"query_key_norm\":true,\"num_experts\":64,\"moe_gate_bias\":true,"
      "\"num_experts_per_tok\":8,\"moe_intermediate_size\":768,\"num_shared_experts\":2,\"mlp_only_layers\":[0,1]",
      K2_SPARSE (64), K2_SPARSE (8), LS_POSITION_ROPE, groups },
    { "\"model_type\":\"apertus1p5_text\",\"hidden_size\":4096,\"intermediate_size\":21504,\"num_hidden_layers\":32,"
      "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"output_vocab_size\":null",
      TABLES (2, 266752, 4096) + LAYERS (32, 4096, 32, 8, 128, 2, 21504, 2) + 32 * 2 * 128, 0,
      LS_POSITION_ROPE, NULL },
    { "\"model_type\":\"zgcm\",\"window_attn_skip_freq\":6,\"attention_gate_layers\":null,\"layer_types\":null",
      ZGCM (27), 0, LS_POSITION_ROPE, NULL },
    { "\"model_type\":\"zgcm\",\"window_attn_skip_freq\":1", ZGCM (0), 0, LS_POSITION_ROPE, NULL },
    { "\"architectures\":[\"CogVLMForCausalLM\"]," COGVLM (11008, 32000), 6738415616, 0, LS_POSITION_ROPE,
      "model_type (none) is not known; read as cogvlm, which its architecture CogVLMForCausalLM is" },
    { "\"model_type\":\"cogvlm\",\"num_multi_query_heads\":4," COGVLM (14336, 128256),
      8030261248 - 32 * 2 * 4096 * 512, 0, LS_POSITION_ROPE,
      "experts of images are left out: all tokens are taken as words" },
    { "\"model_type\":\"cogvlm\"," COGVLM (14336, 128256), 8030261248, 0, LS_POSITION_ROPE,
      "experts of images are left out: all tokens are taken as words" },
    { "\"model_type\":\"lille-130m\",\"block_size\":512,\"layer_norm_eps\":1e-5,\"n_embd\":640,\"n_head\":10,"
      "\"n_kv_heads\":2,\"n_layer\":24,\"rope_theta\":10000,\"vocab_size\":32768",
      TABLES (1, 32768, 640) + LAYERS (24, 640, 10, 2, 64, 3, 1792, 2), 0, LS_POSITION_ROPE, NULL },
    { "\"model_type\":\"phi-msft\",\"n_embd\":2560,\"n_head\":32,\"n_layer\":32,\"n_positions\":2048,\"n_inner\":null,"
      "\"rotary_dim\":32,\"vocab_size\":51200,\"num_local_experts\":4,\"num_experts_per_tok\":2",
      TABLES (2, 51200, 2560) + LAYERS (32, 2560, 32, 32, 80, 2 * 4, 10240, 2) + 225.0 * 2560,
      TABLES (2, 51200, 2560) + LAYERS (32, 2560, 32, 32, 80, 2 * 2, 10240, 2) + 225.0 * 2560,
      LS_POSITION_ROPE, "attention and MLP are taken one after the other, not side by side" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    check_case (&cases[i], 1e-12);
}

/* What asks for nothing is not told; what may matter is. */
static void
only_what_may_matter_is_told (void)
{
#define LLAMA                                                                                                \
  "\"model_type\":\"llama\",\"hidden_size\":512,\"intermediate_size\":512,\"num_hidden_layers\":2,"          \
  "\"num_attention_heads\":8,\"vocab_size\":1000,\"max_position_embeddings\":2048,"
  double total = TABLES (2, 1000, 512) + LAYERS (2, 512, 8, 8, 64, 3, 512, 2);
  const Case cases[] = {
    { LLAMA
      "\"quirk\":null,\"initializer_factor\":1.0,\"eod_token_id\":3,\"use_flash_attn\":\"auto\",\"bf16\":true,"
      "\"max_tokenizer_truncation\":4096,\"unsloth_fixed\":true,\"_attn_implementation_autoset\":true",
      total, 0, LS_POSITION_ROPE, NULL },
    { LLAMA "\"use_mtp\":true", total, 0, LS_POSITION_ROPE, "key \"use_mtp\" is not used" },
  };
  check_cases (cases, G_N_ELEMENTS (cases));
}

LS_TEST_SUITE (LS_TEST (publishers_code_counts_the_same), LS_TEST (parts_that_read_text_count_the_same),
               LS_TEST (what_a_file_leaves_out_is_of_its_class),
               LS_TEST (further_decoders_count_as_their_code_says),
               LS_TEST (decoders_of_few_files_count_as_their_code_says),
               LS_TEST (decoders_of_2026_count_as_their_code_says), LS_TEST (only_what_may_matter_is_told))
