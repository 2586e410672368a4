/* Pins: norms and rotations as Transformer Engine launches them take what they were timed at on an H200
 * (tools/kernelbench/profiles/h200-te-2026-11.json), each within 30 % and all within 12 % on the mean. The rates
 * of the list's kernels by how they touch memory come from this profile: it shows that a few rates are enough for
 * all widths. Rows of 1,536 are left out: their weight's gradient is summed over more blocks than that of wider
 * ones, which has no rate of its own; so are times below 20 us, which are launches as much as memory. */
#include "ls_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "job/hardware.h"
#include "model/operators.h"

static const LsModel blank = { .n_layers = 1,
                               .n_heads = 32,
                               .n_kv_heads = 32,
                               .head_dim = 128,
                               .ffn = 1024,
                               .vocab = 1000,
                               .seq = 8192,
                               .mlp = LS_MLP_SWIGLU,
                               .position = LS_POSITION_ROPE };

static double
time_of (const LsHardware *h, const LsKernel *kernels, uint32_t n)
{
  double us = 0;
  for (uint32_t i = 0; i < n; i++)
    us += ls_time_to_s (ls_kernel_cost (&h->calibration, &h->spec.gpu, &kernels[i]).alone) * 1e6;
  return us;
}

/* Of `rows` that are `width` wide: a norm of a layer, or of heads of 128; forwards or backwards. */
static double
norm_us (const LsHardware *h, const LsRecipes *recipes, LsNorm norm, uint64_t rows, uint64_t width,
         bool is_backward)
{
  LsModel m = blank;
  bool is_of_head = width == 128;
  LsShard s = { .tp = 1, .micro_batch = 1, .cp = 1, .dtype = LS_DTYPE_BF16, .recipes = recipes };
  m.norm = norm;
  m.hidden = is_of_head ? 4096 : width;
  m.attn.qk_norm = is_of_head;
  s.seq = is_of_head ? rows / m.n_heads : rows;
  s.attention = LS_ATTENTION_FLASH;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &s, 0, operators);
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    if (strcmp (o->name, is_of_head ? "q-norm" : "mlp-norm") != 0)
      continue;
    uint32_t n_sums = is_of_head ? 0 : 1; /* behind it, the sum with the residual's gradient */
    return is_backward ? time_of (h, o->igrad, o->n_igrad - n_sums) : time_of (h, o->fwd, o->n_fwd);
  }
  return 0;
}

static double
rope_us (const LsHardware *h, uint64_t rows, uint64_t width)
{
  LsKernel k = ls_kernel_stream ("rope", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, rows, width, 4, 0);
  k.access = LS_ACCESS_TE_ROPE;
  return time_of (h, &k, 1);
}

static double
predicted_us (const LsHardware *h, const LsRecipes *recipes, const char *name, const char *shape)
{
  unsigned rows, width;
  bool is_backward = g_str_has_suffix (name, "-bwd"), is_layer = g_str_has_prefix (name, "layernorm-");
  if (sscanf (shape, "%ux%u", &rows, &width) != 2 || width == 1536)
    return 0;
  if (g_str_has_prefix (name, "rope-"))
    return rope_us (h, rows, width);
  if (is_layer || g_str_has_prefix (name, "rmsnorm-"))
    return norm_us (h, recipes, is_layer ? LS_NORM_LAYERNORM : LS_NORM_RMSNORM, rows, width, is_backward);
  return 0;
}

static void
kernels_take_what_they_were_timed_at (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-h200", diags);
  g_autoptr (LsRecipes) recipes = ls_recipes_load ("transformer-engine", diags);
  g_autofree char *path
      = g_build_filename (g_getenv ("LS_DATA_DIR"), "tools/kernelbench/profiles/h200-te-2026-11.json", NULL);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
  if (!LS_CHECK (h && recipes && doc))
    return;
  double sum = 0;
  guint n = 0;
  const cJSON *row;
  cJSON_ArrayForEach (row, cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "rows")) {
    const char *name = cJSON_GetObjectItemCaseSensitive (row, "name")->valuestring,
               *shape = cJSON_GetObjectItemCaseSensitive (row, "shape")->valuestring;
    double us = predicted_us (h, recipes, name, shape),
           timed = cJSON_GetObjectItemCaseSensitive (row, "time_us")->valuedouble,
           error = fabs (us / timed - 1);
    if (us <= 0 || timed < 20)
      continue;
    if (!LS_CHECK_DOUBLE (error, <=, 0.30))
      g_printerr ("%s %s: %.1f us, timed %.1f\n", name, shape, us, timed);
    sum += error;
    n++;
  }
  LS_CHECK_INT (n, >=, 26);
  LS_CHECK_DOUBLE (sum / n, <=, 0.12);
}

LS_TEST_SUITE (LS_TEST (kernels_take_what_they_were_timed_at))
