/* data/machines/read_access.c — topologies/calib/, kernels by how they touch memory, read. */
#include "data/machines/machines.h"

#include <string.h>

#include "data/datadir.h"

static const LsField fit_fields[] = {
  { "fitted", LS_FIELD_BOOL, offsetof (LsAccessFit, is_fitted), .required = true,
    .meaning = "false: the figures are a stated guess" },
  { "share", LS_FIELD_DOUBLE, offsetof (LsAccessFit, share), .above = true, .max = 1, .default_text = "1",
    .meaning = "share of the HBM bandwidth" },
  { "elements_per_sm", LS_FIELD_DOUBLE, offsetof (LsAccessFit, elements_per_sm), .max = 1e15,
    .default_text = "0",
    .meaning = "elements that an SM does in a second, whatever their bytes; 0: no limit" },
  { "launch", LS_FIELD_TIME, offsetof (LsAccessFit, launch), .max = (double) LS_S, .default_text = "0us",
    .meaning = "gap between two kernels of a queue, and what a small kernel takes at least" },
  { "step", LS_FIELD_TIME, offsetof (LsAccessFit, step), .max = (double) LS_S, .default_text = "0us",
    .meaning = "triton-dot: what a tile takes that waits for another" },
  { "source", LS_FIELD_IGNORED, .required = true, .meaning = "who measured it, or why this guess" },
  { NULL },
};

#define FIT(key_, access_, default_, meaning_)                                                               \
  {                                                                                                          \
    key_, LS_FIELD_OBJECT, offsetof (LsAccessFile, fit[access_]),                                            \
        .fields = fit_fields, .default_text = (default_), .meaning = (meaning_)                              \
  }
#define ACCESS(key_, access_, meaning_) FIT (key_, access_, "the bandwidth", meaning_)
/* Of ls_access_is_of_library(). */
#define LIBRARY(key_, access_, meaning_) FIT (key_, access_, "as other kernels of its kind", meaning_)

/* Keys are those of ls_access_name(); a test compares them. */
static const LsField kind_fields[] = {
  ACCESS ("vec", LS_ACCESS_VEC, "contiguous tensors of one shape, loaded in vectors"),
  ACCESS ("castdn", LS_ACCESS_CASTDN, "fp32 to 16 bits"),
  ACCESS ("castup", LS_ACCESS_CASTUP, "16 bits to fp32"),
  ACCESS ("bcast16", LS_ACCESS_BCAST16, "elementwise with an operand that is broadcast, 16 bits"),
  ACCESS ("bcast32", LS_ACCESS_BCAST32, "the same in fp32"),
  ACCESS ("strided16", LS_ACCESS_STRIDED16,
          "elementwise or a copy with an operand that is transposed or a slice, 16 bits"),
  ACCESS ("strided32", LS_ACCESS_STRIDED32, "the same in fp32"),
  ACCESS ("cat", LS_ACCESS_CAT, "tensors side by side copied into one"),
  ACCESS ("gather", LS_ACCESS_GATHER, "rows by an index"),
  ACCESS ("scatter", LS_ACCESS_SCATTER, "rows added by an index"),
  ACCESS ("rowred", LS_ACCESS_ROWRED, "a reduction over the last dimension"),
  ACCESS ("colred", LS_ACCESS_COLRED, "over the first"),
  ACCESS ("fill", LS_ACCESS_FILL, "writes a constant"),
  ACCESS ("memcpy", LS_ACCESS_MEMCPY, "a copy by the driver"),
  ACCESS ("multi-tensor", LS_ACCESS_MULTI, "many tensors in one launch: foreach, apex; fp32"),
  ACCESS ("multi-tensor16", LS_ACCESS_MULTI16, "the same in 16 bits"),
  ACCESS ("adam", LS_ACCESS_ADAM, "a fused step of Adam, many tensors in one launch; fp32"),
  ACCESS ("adam16", LS_ACCESS_ADAM16, "the same in 16 bits"),
  ACCESS ("softmax", LS_ACCESS_SOFTMAX, "a softmax that is not fused with what is around it"),
  ACCESS ("triton", LS_ACCESS_TRITON, "made by a compiler: elementwise, fused"),
  ACCESS ("triton-red", LS_ACCESS_TRITON_RED, "the same with a reduction over rows"),
  ACCESS ("xla", LS_ACCESS_XLA, "made by XLA for a GPU: elementwise, fused"),
  ACCESS ("xla-red", LS_ACCESS_XLA_RED, "the same with a reduction over rows"),
  ACCESS ("xla-colred", LS_ACCESS_XLA_COLRED, "elementwise, with sums over the first dimension next to it"),
  ACCESS ("xla-transpose", LS_ACCESS_XLA_TRANSPOSE, "transposes, with sums next to it"),
  ACCESS ("tiny", LS_ACCESS_TINY, "a few kB: all launch"),
  ACCESS ("triton-dot", LS_ACCESS_TRITON_DOT,
          "made by a compiler: products of tiles of a chunk; an element is a multiply-add"),
  LIBRARY ("mx-cast", LS_ACCESS_MX_CAST,
           "16 bits to fp8 with a scale for each 32 values, along one dimension"),
  LIBRARY ("mx-cast-both", LS_ACCESS_MX_CAST_BOTH, "the same along both dimensions in one kernel"),
  LIBRARY ("block-cast", LS_ACCESS_BLOCK_CAST,
           "16 bits to fp8 with a scale for each 128 values, along both dimensions in one kernel"),
  LIBRARY ("te-norm", LS_ACCESS_TE_NORM, "RMSNorm of Transformer Engine, of widths that it is tuned for"),
  LIBRARY ("te-norm-grad", LS_ACCESS_TE_NORM_GRAD, "its backward"),
  LIBRARY ("te-layer-norm", LS_ACCESS_TE_LAYER_NORM, "LayerNorm of Transformer Engine, forward or backward"),
  LIBRARY ("te-norm-any", LS_ACCESS_TE_NORM_ANY, "its RMSNorm of any other width"),
  LIBRARY ("te-norm-any-grad", LS_ACCESS_TE_NORM_ANY_GRAD, "the backward of that"),
  LIBRARY ("te-norm-any-sum", LS_ACCESS_TE_NORM_ANY_SUM,
           "the kernel after that, which sums the weight's gradients of all its blocks"),
  LIBRARY ("te-norm-sum", LS_ACCESS_TE_NORM_SUM,
           "the same for rows of a head, of which more blocks fit on an SM"),
  LIBRARY ("te-rope", LS_ACCESS_TE_ROPE, "Transformer Engine's rotations of Q or K"),
  { NULL },
};
G_STATIC_ASSERT (G_N_ELEMENTS (kind_fields) == LS_N_ACCESSES);

const LsField ls_access_fields[] = {
  LS_FIELDS_HEADER (LsAccessFile),
  { "gap", LS_FIELD_TIME, offsetof (LsAccessFile, gap), .max = (double) LS_S, .default_text = "not known",
    .meaning = "what of each launch is the gap between two kernels of a full queue: one that was measured "
               "replaces it" },
  { "access", LS_FIELD_OBJECT, 0, .required = true, .fields = kind_fields,
    .meaning = "by how kernels touch memory" },
  { NULL },
};

void
ls_access_file_clear (LsAccessFile *file)
{
  g_free (file->name);
  g_free (file->source);
  memset (file, 0, sizeof *file);
}

bool
ls_access_read (const LsJsonDoc *doc, LsAccessFile *ret_file, LsDiagList *diags)
{
  LsAccessFile file = { 0 };
  ls_access_init_roofline (file.fit);
  bool ok = ls_fields_read_file (ls_access_fields, "access", doc, &file, diags);
  if (ok)
    *ret_file = file;
  else
    ls_access_file_clear (&file);
  return ok;
}

static void
put_copy (LsCalibration *c)
{
  LsAccessFit *copy = &c->access[LS_ACCESS_MEMCPY];
  if (c->around.memcpy_share <= 0)
    return;
  copy->share = c->around.memcpy_share;
  copy->is_fitted = true;
}

static void
put_gap (LsCalibration *c, LsTime gap)
{
  for (int i = 0; i < LS_N_ACCESSES; i++)
    c->access[i].launch = ls_around_launch (&c->around, c->access[i].launch, gap);
}

static bool
load_file (const char *name, LsAccessFile *file, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc && ls_access_read (doc, file, diags);
}

bool
ls_access_gap (const char *name, LsTime *ret_gap, LsDiagList *diags)
{
  LsAccessFile file;
  *ret_gap = 0;
  if (!name)
    return true;
  if (!load_file (name, &file, diags))
    return false;
  *ret_gap = file.gap;
  ls_access_file_clear (&file);
  return true;
}

bool
ls_access_load (const char *name, LsCalibration *c, LsDiagList *diags)
{
  if (!name) {
    ls_access_init_roofline (c->access);
    put_gap (c, 0);
    put_copy (c);
    return true;
  }
  LsAccessFile file;
  if (!load_file (name, &file, diags))
    return false;
  memcpy (c->access, file.fit, sizeof file.fit);
  if (file.gap > 0)
    put_gap (c, file.gap);
  put_copy (c);
  ls_access_file_clear (&file);
  return true;
}
