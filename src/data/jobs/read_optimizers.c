/* data/jobs/read_optimizers.c — strategies/optimizers/ read. */
#include "data/jobs/job_files.h"

#include "data/datadir.h"

static const LsEnumName takes[]
    = { { "all", LS_TAKES_ALL }, { "2d", LS_TAKES_2D }, { "matrices", LS_TAKES_MATRICES }, { NULL } };
static const LsEnumName sides[] = { { "short", LS_SIDE_SHORT },
                                    { "long", LS_SIDE_LONG },
                                    { "rows", LS_SIDE_ROWS },
                                    { "columns", LS_SIDE_COLUMNS },
                                    { NULL } };
static const LsEnumName preconditioned[]
    = { { "none", LS_SIDES_NONE }, { "rows", LS_SIDES_ROWS }, { "columns", LS_SIDES_COLUMNS }, { NULL } };
static const LsEnumName dtypes[]
    = { { "bf16", LS_DTYPE_BF16 }, { "tf32", LS_DTYPE_TF32 }, { "fp32", LS_DTYPE_FP32 }, { NULL } };

#define KERNEL(key_, kind_, member_) key_, kind_, offsetof (LsOptimizerKernel, member_)
#define PART(key_, kind_, member_)   key_, kind_, offsetof (LsOptimizerPart, member_)

static const LsField kernel_fields[] = {
  { KERNEL ("name", LS_FIELD_STRING, name), .required = true },
  { KERNEL ("bytes", LS_FIELD_DOUBLE, bytes), .max = 1e3 },
  { KERNEL ("access", LS_FIELD_ENUM, access), .names = ls_access_names },
  { KERNEL ("whole", LS_FIELD_BOOL, whole) },
  { KERNEL ("m", LS_FIELD_ENUM, m), .names = sides },
  { KERNEL ("n", LS_FIELD_ENUM, n), .names = sides },
  { KERNEL ("k", LS_FIELD_ENUM, k), .names = sides },
  { KERNEL ("depth", LS_FIELD_DOUBLE, depth), .above = true, .max = 100 },
  { KERNEL ("dtype", LS_FIELD_ENUM, dtype), .names = dtypes },
  { KERNEL ("adds", LS_FIELD_BOOL, adds) },
  { KERNEL ("sums", LS_FIELD_BOOL, sums) },
  { KERNEL ("of", LS_FIELD_ENUM, of), .names = preconditioned },
  { KERNEL ("times", LS_FIELD_UINT, times), .min = 1, .max = 100 },
  { KERNEL ("every", LS_FIELD_UINT, every), .min = 1, .max = 1e6 },
  { .table = "optimizer.kernels" },
};

static const LsOptimizerKernel kernel_blank
    = { .depth = 1, .dtype = LS_DTYPE_BF16, .times = 1, .every = 1, .access = LS_ACCESS_NONE };

static const LsField part_fields[] = {
  { PART ("takes", LS_FIELD_ENUM, takes), .names = takes },
  { PART ("min_elements", LS_FIELD_UINT64, min_elements) },
  { PART ("state_bytes", LS_FIELD_DOUBLE, state_bytes), .max = 100 },
  { PART ("block", LS_FIELD_UINT64, block) },
  { PART ("block_bytes", LS_FIELD_DOUBLE, block_bytes), .max = 100 },
  { PART ("row_bytes", LS_FIELD_DOUBLE, row_bytes), .max = 100 },
  { PART ("column_bytes", LS_FIELD_DOUBLE, column_bytes), .max = 100 },
  { PART ("side_bytes", LS_FIELD_DOUBLE, side_bytes), .max = 100 },
  { PART ("max_side", LS_FIELD_UINT64, max_side) },
  { PART ("tile", LS_FIELD_UINT64, tile) },
  { PART ("by_tensor", LS_FIELD_BOOL, by_tensor) },
  { PART ("kernels", LS_FIELD_ARRAY, kernels), .required = true, .fields = kernel_fields,
    .blank = &kernel_blank, .element_size = sizeof (LsOptimizerKernel) },
  { .table = "optimizer.parts" },
};

const LsField ls_optimizer_fields[] = {
  LS_FIELDS_HEADER (LsOptimizerKind),
  { "note", LS_FIELD_STRING, offsetof (LsOptimizerKind, note) },
  { "parts", LS_FIELD_ARRAY, offsetof (LsOptimizerKind, parts), .required = true, .fields = part_fields,
    .element_size = sizeof (LsOptimizerPart) },
  { .table = "optimizer" },
};

bool
ls_optimizer_is_adam (const char *name)
{
  return g_str_equal (name, "adam") || g_str_equal (name, "adamw");
}

/* --- what the types of values do not say ------------------------------------------------ */

static bool
has_any (const cJSON *object, const char *const *keys)
{
  for (guint i = 0; keys[i]; i++)
    if (cJSON_GetObjectItemCaseSensitive (object, keys[i]))
      return true;
  return false;
}

static bool
is_product (const cJSON *kernel)
{
  return ls_json_at (kernel, "m") != NULL;
}

static void
check_kernel (LsJsonCheck *check, const cJSON *node, const LsOptimizerPart *part, const LsOptimizerKernel *k)
{
  static const char *const product[] = { "m", "n", "k", "depth", "dtype", "adds", "sums", NULL },
                           *const stream[] = { "access", "whole", NULL };
  bool is_matrix = k->bytes == 0 || k->whole || k->times > 1 || k->every > 1 || k->of != LS_SIDES_NONE;
  if (k->bytes > 0 && has_any (node, product))
    ls_json_complain (check, node,
                      "expected \"bytes\" of a kernel that streams, or m, n and k of a product; got both");
  else if (k->bytes == 0 && (!is_product (node) || has_any (node, stream)))
    ls_json_complain (check, node, "expected \"bytes\" of a kernel that streams, or m, n and k of a product");
  else if (is_matrix && !part->by_tensor)
    ls_json_complain (check, node, "products, and what runs over whole matrices, need \"by_tensor\": true");
}

static void
check_part (LsJsonCheck *check, const cJSON *node, const LsOptimizerPart *part, bool is_last)
{
  const cJSON *list = ls_json_at (node, "kernels");
  for (guint i = 0; i < part->kernels->len; i++) {
    const LsOptimizerKernel *k = &g_array_index (part->kernels, LsOptimizerKernel, i);
    const cJSON *kernel = cJSON_GetArrayItem (list, (int) i);
    check_kernel (check, kernel, part, k);
    if (is_product (kernel) && part->takes != LS_TAKES_MATRICES && k->of == LS_SIDES_NONE)
      ls_json_complain (check, kernel,
                        "expected \"takes\": \"matrices\" of a part with products of whole matrices");
  }
  if ((part->block == 0) != (part->block_bytes == 0))
    ls_json_complain (check, node, "expected \"block\" and \"block_bytes\" together");
  if (part->row_bytes + part->column_bytes > 0 && part->takes == LS_TAKES_ALL)
    ls_json_complain (check, node, "vectors have no rows and columns: expected \"takes\" 2d or matrices");
  if (part->tile > 0 && !part->by_tensor)
    ls_json_complain (check, node, "tiles are stepped on one by one: expected \"by_tensor\": true");
  if (is_last && (part->takes != LS_TAKES_ALL || part->min_elements > 0))
    ls_json_complain (check, node, "expected a last part that takes all tensors");
}

LsOptimizerKind *
ls_optimizer_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsOptimizerKind) kind = ls_optimizer_kind_new ();
  LsJsonCheck check = { .doc = doc, .diags = diags };
  if (!ls_fields_read_file (ls_optimizer_fields, "optimizer", doc, kind, diags))
    return NULL;
  const cJSON *list = ls_json_doc_at (doc, "parts");
  if (kind->parts->len == 0)
    ls_json_complain (&check, list, "expected a part that takes all tensors");
  for (guint i = 0; i < kind->parts->len; i++)
    check_part (&check, cJSON_GetArrayItem (list, (int) i), &g_array_index (kind->parts, LsOptimizerPart, i),
                i + 1 == kind->parts->len);
  return check.n_wrong > 0 ? NULL : g_steal_pointer (&kind);
}

LsOptimizerKind *
ls_optimizer_load (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_OPTIMIZERS, name, diags);
  return doc ? ls_optimizer_read (doc, diags) : NULL;
}
