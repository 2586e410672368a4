/* Pins which products of a model run in a format of their own, and what is cast and kept for them. */
#include "ls_test.h"

#include "model_shapes.h"

static void
texts_are_read_and_written (void)
{
  static const char *const same[]
      = { "", "qkv:bf16,proj:bf16,mixer-out:mxfp8", "expert-fc1:nvfp4,mtp:current" };
  static const char *const wrong[]
      = { "qkv", "qkv:", "qkv:int8", "head:bf16", "qkv:bf16,qkv:mxfp8", ":bf16", "qkv:bf16," };
  for (guint i = 0; i < G_N_ELEMENTS (same); i++) {
    LsFormats formats;
    if (!LS_CHECK (ls_formats_parse (same[i], &formats)))
      continue;
    g_autofree char *text = ls_formats_text (&formats);
    LS_CHECK_STR (text, same[i]);
    LS_CHECK (ls_formats_any (&formats) == (same[i][0] != '\0'));
  }
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    LsFormats formats = { { 7 } };
    LS_CHECK (!ls_formats_parse (wrong[i], &formats));
    LS_CHECK_INT (formats.of[0], ==, 7);
  }
}

/* A layer with experts of a latent and shared ones, in nvfp4. */
static LsModel
with_experts (void)
{
  LsModel m = llama3_70b ();
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 4096;
  m.moe.latent = 1024;
  m.moe.shared_ffn = 2048;
  return m;
}

static LsShard
in_nvfp4 (const LsModel *m, const char *formats)
{
  LsShard s = shard (m, 1, false, 1);
  s.dtype = LS_DTYPE_NVFP4;
  LS_CHECK (ls_formats_parse (formats, &s.fp8.formats));
  return s;
}

/* Of its first product. */
static LsDtype
dtype_of (const GArray *ops, const char *name)
{
  const LsOperator *op = find_operator (ops, name);
  for (uint32_t k = 0; op && k < op->n_fwd; k++)
    if (op->fwd[k].kind == LS_KERNEL_GEMM)
      return op->fwd[k].dtype;
  return LS_DTYPE_BYTE;
}

static const char *const products[]
    = { "qkv", "proj", "shared-fc1", "shared-fc2", "expert-fc1", "expert-fc2", "latent-down", "latent-up" };

static void
each_module_has_its_own (void)
{
  LsModel m = with_experts ();
  for (guint i = 0; i < G_N_ELEMENTS (products); i++) {
    g_autofree char *text = g_strconcat (products[i], ":mxfp8", NULL);
    LsShard s = in_nvfp4 (&m, text);
    g_autoptr (GArray) ops = layer_operators (&m, &s);
    for (guint k = 0; k < G_N_ELEMENTS (products); k++)
      LS_CHECK_INT (dtype_of (ops, products[k]), ==, k == i ? LS_DTYPE_FP8 : LS_DTYPE_NVFP4);
    LS_CHECK_INT (dtype_of (ops, "router"), ==, LS_DTYPE_BF16);
  }
}

/* T tokens from h columns: in nvfp4 a maximum (2 T h), which a kernel of 8 bytes zeroes first, and a cast to two
 * layouts of 9 / 16 of a byte, which is kept; with current scales another makes the scale; in bf16 none, and
 * 2 T h are kept; in mxfp8 one cast to two layouts of 33 / 32. */
static void
casts_and_kept_inputs_follow (void)
{
  static const struct {
    const char *formats;
    uint32_t n_casts, n_tiny;
    double cast, kept;
  } cases[] = {
    { "", 2, 1, 2 + 2 + 2 * 9 / 16.0, 9 / 16.0 },           { "proj:bf16", 0, 0, 0, 2 },
    { "proj:mxfp8", 1, 0, 2 + 2 * 33 / 32.0, 1 },           { "proj:current", 2, 2, 2 + 2 + 2, 1 },
    { "proj:blockwise", 1, 0, 2 + 2 * (1 + 4 / 128.0), 1 },
  };
  LsModel m = llama3_70b ();
  double elements = (double) m.seq * m.hidden;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsShard s = in_nvfp4 (&m, cases[i].formats);
    g_autoptr (GArray) ops = layer_operators (&m, &s);
    const LsOperator *proj = find_operator (ops, "proj");
    double bytes = 0;
    if (!LS_CHECK (proj != NULL))
      return;
    for (uint32_t k = 0; k + 1u < proj->n_fwd; k++)
      bytes += proj->fwd[k].bytes;
    LS_CHECK_INT (proj->n_fwd, ==, cases[i].n_tiny + cases[i].n_casts + 1);
    LS_CHECK_DOUBLE (bytes, ==, cases[i].cast * elements + 8 * cases[i].n_tiny);
    LS_CHECK_DOUBLE ((double) proj->kept.saved_bytes, ==, cases[i].kept * elements);
  }
}

/* Where a layout for the weights' gradient cannot be had by itself, the input's is transposed: 2 T h. */
static void
inputs_are_transposed (void)
{
  LsModel m = llama3_70b ();
  LsShard s = in_nvfp4 (&m, "");
  s.dtype = LS_DTYPE_FP8, s.fp8.recipe = LS_FP8_CURRENT;
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  const LsOperator *qkv = find_operator (ops, "qkv");
  LS_CHECK_STR (qkv->wgrad[0].name, "fp8-transpose");
  LS_CHECK_DOUBLE (qkv->wgrad[0].bytes, ==, 2.0 * m.seq * m.hidden);
}

/* Layers that are in bf16 stay so: a module's recipe does not reach them. */
static void
layers_in_bf16_stay (void)
{
  LsModel m = with_experts ();
  LsShard s = in_nvfp4 (&m, "qkv:mxfp8,expert-fc2:nvfp4");
  s.fp8.bf16_first = 1;
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  for (guint k = 0; k < G_N_ELEMENTS (products); k++)
    LS_CHECK_INT (dtype_of (ops, products[k]), ==, LS_DTYPE_BF16);
}

/* Blocks of multi-token prediction: in fp8 their projection and layers are, also behind layers in bf16; in
 * nvfp4 nothing of them is. */
static void
blocks_have_one_autocast (void)
{
  static const struct {
    LsDtype dtype;
    const char *formats;
    LsDtype proj, qkv;
  } cases[] = {
    { LS_DTYPE_BF16, "", LS_DTYPE_BF16, LS_DTYPE_BF16 },
    { LS_DTYPE_FP8, "", LS_DTYPE_FP8, LS_DTYPE_FP8 },
    { LS_DTYPE_FP8, "qkv:bf16", LS_DTYPE_FP8, LS_DTYPE_BF16 },
    { LS_DTYPE_FP8, "qkv:mxfp8,mtp:bf16", LS_DTYPE_BF16, LS_DTYPE_BF16 },
    { LS_DTYPE_NVFP4, "", LS_DTYPE_BF16, LS_DTYPE_BF16 },
    { LS_DTYPE_NVFP4, "qkv:mxfp8,mtp:mxfp8", LS_DTYPE_BF16, LS_DTYPE_BF16 },
  };
  LsModel m = llama3_70b ();
  m.predict.layers = 1;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsShard s = shard (&m, 1, false, 1);
    s.dtype = cases[i].dtype;
    s.fp8.recipe = LS_FP8_MXFP8;
    s.fp8.bf16_last = 2;
    LS_CHECK (ls_formats_parse (cases[i].formats, &s.fp8.formats));
    g_autoptr (GArray) ops = operators_new ();
    ls_operators_head (&m, &s, true, ops);
    LS_CHECK_INT (dtype_of (ops, "predict-proj"), ==, cases[i].proj);
    LS_CHECK_INT (dtype_of (ops, "qkv"), ==, cases[i].qkv);
    LS_CHECK_INT (dtype_of (ops, "logits"), ==, LS_DTYPE_BF16);
  }
}

LS_TEST_SUITE (LS_TEST (texts_are_read_and_written), LS_TEST (each_module_has_its_own),
               LS_TEST (casts_and_kept_inputs_follow), LS_TEST (inputs_are_transposed),
               LS_TEST (layers_in_bf16_stay), LS_TEST (blocks_have_one_autocast))
