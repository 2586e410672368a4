#include "compute/measured.h"

#include <glib.h>
#include <math.h>
#include <string.h>

bool
ls_calibration_has_attention (const LsCalibration *c, LsAttentionKernel kernel)
{
  return kernel == LS_ATTENTION_KERNEL_AUTO
      || c->kind[ls_entry_attention (kernel, false)].compute_efficiency > 0;
}

LsAttentionKernel
ls_cudnn_attention (LsDtype dtype, bool by_blocks)
{
  if (dtype != LS_DTYPE_FP8)
    return LS_ATTENTION_KERNEL_CUDNN;
  return by_blocks ? LS_ATTENTION_KERNEL_CUDNN_MXFP8 : LS_ATTENTION_KERNEL_CUDNN_FP8;
}

LsAttentionKernel
ls_calibration_implementation (const LsCalibration *c, const LsKernel *kernel)
{
  LsAttentionKernel asked = kernel->attention != LS_ATTENTION_KERNEL_AUTO
      ? kernel->attention
      : (LsAttentionKernel) c->attention_kernel;
  if (asked == LS_ATTENTION_KERNEL_CUDNN)
    asked = ls_cudnn_attention (kernel->dtype, kernel->by_blocks);
  return ls_calibration_has_attention (c, asked) ? asked : LS_ATTENTION_KERNEL_AUTO;
}

static const LsKindFit *
attention_fit (const LsCalibration *c, const LsKernel *kernel)
{
  bool is_backward = kernel->kind == LS_KERNEL_ATTENTION_BWD, is_fp8 = kernel->dtype == LS_DTYPE_FP8;
  LsAttentionKernel whose = ls_calibration_implementation (c, kernel);
  if (is_fp8 && !is_backward && whose <= LS_ATTENTION_KERNEL_CUDNN
      && c->kind[LS_ENTRY_ATTENTION_FP8].is_fitted)
    return &c->kind[LS_ENTRY_ATTENTION_FP8];
  return &c->kind[whose != LS_ATTENTION_KERNEL_AUTO ? ls_entry_attention (whose, is_backward) : kernel->kind];
}

const LsKindFit *
ls_calibration_fit (const LsCalibration *c, const LsKernel *kernel)
{
  if (ls_kernel_is_attention (kernel->kind))
    return attention_fit (c, kernel);
  bool is_gemm = ls_kernel_is_gemm (kernel->kind);
  guint slot = kernel->kind;
  if (is_gemm && kernel->dtype == LS_DTYPE_NVFP4 && c->kind[LS_ENTRY_GEMM_NVFP4].is_fitted)
    slot = LS_ENTRY_GEMM_NVFP4;
  else if (kernel->by_blocks && c->kind[LS_ENTRY_GEMM_FP8_BLOCKS].is_fitted)
    slot = LS_ENTRY_GEMM_FP8_BLOCKS;
  else if (is_gemm && ls_dtype_is_scaled (kernel->dtype) && c->kind[LS_ENTRY_GEMM_FP8].is_fitted)
    slot = LS_ENTRY_GEMM_FP8;
  return &c->kind[slot];
}

/* --- kernels that were timed on a GPU, put before its fit ---------------------------------------- */

#define SAME_TRAFFIC 1e-3 /* relative: bytes are whole numbers, some rounded */

void
ls_measured_free (GArray *table)
{
  if (!table)
    return;
  for (guint i = 0; i < table->len; i++)
    g_free (g_array_index (table, LsMeasuredKernel, i).name);
  g_array_unref (table);
}

/* The sizes in which a kernel may differ from its neighbours. */
enum { N_SIZES = 4 };

typedef struct {
  double at[N_SIZES];
} Sizes;

static Sizes
sizes_of (uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
  return (Sizes) { { (double) m, (double) n, (double) k, (double) MAX (batch, 1) } };
}

static double
volume (const Sizes *s)
{
  return s->at[0] * s->at[1] * fmax (1, s->at[2]) * s->at[3];
}

/* Bytes of an element of the result, of a GEMM without what the operands take. */
static double
traffic (int kind, int dtype, const Sizes *s, double bytes)
{
  double m = s->at[0], n = s->at[1], k = s->at[2], batch = s->at[3];
  double operands = ls_kernel_is_gemm (kind) ? ls_dtype_size ((LsDtype) dtype) * batch * (m * k + k * n) : 0;
  return (bytes - operands) / fmax (1, m * n * batch);
}

static bool
is_near (double a, double b)
{
  return fabs (a - b) <= SAME_TRAFFIC * fmax (fabs (a), fabs (b));
}

static bool
is_same_work (const LsMeasuredKernel *row, int implementation, const LsKernel *kernel)
{
  if (ls_kernel_is_attention (row->kind)
      && (kernel->by_blocks || row->implementation != MIN (implementation, LS_ATTENTION_KERNEL_CUDNN)))
    return false;
  if (row->kind != (int) kernel->kind || row->dtype != (int) kernel->dtype
      || (row->name && strcmp (row->name, kernel->name) != 0))
    return false;
  Sizes a = sizes_of (row->m, row->n, row->k, row->batch),
        b = sizes_of (kernel->m, kernel->n, kernel->k, kernel->batch);
  return is_near (traffic (row->kind, row->dtype, &a, row->bytes),
                  traffic (row->kind, row->dtype, &b, kernel->bytes))
      && is_near (row->flops / volume (&a), kernel->flops / volume (&b));
}

LsKernel
ls_measured_shape (const LsMeasuredKernel *row)
{
  return (LsKernel) { .name = row->name ? row->name : "",
                      .kind = (LsKernelKind) row->kind,
                      .dtype = (LsDtype) row->dtype,
                      .m = row->m,
                      .n = row->n,
                      .k = row->k,
                      .batch = row->batch,
                      .flops = row->flops,
                      .bytes = row->bytes };
}

/* The nearest rows below and above in one size; of equals their geometric mean. */
typedef struct {
  double size, log_sum;
  guint n;
} Side;

static void
take (Side *side, double size, bool is_nearer, double factor)
{
  if (side->n > 0 && size != side->size && !is_nearer)
    return;
  if (side->n == 0 || size != side->size)
    *side = (Side) { .size = size };
  side->log_sum += log (factor);
  side->n++;
}

/* In how many sizes they differ, and the last of these. */
static guint
differences (const Sizes *a, const Sizes *b, guint *ret_axis)
{
  guint n = 0;
  for (guint i = 0; i < N_SIZES; i++)
    if (a->at[i] != b->at[i]) {
      n++;
      *ret_axis = i;
    }
  return n;
}

typedef struct {
  Side exact, below[N_SIZES], above[N_SIZES];
} Neighbours;

static void
find_neighbours (const GArray *table, int implementation, const LsKindFit *fit, const LsGpu *gpu,
                 const LsKernel *kernel, Neighbours *x)
{
  Sizes want = sizes_of (kernel->m, kernel->n, kernel->k, kernel->batch);
  for (guint i = 0; i < table->len; i++) {
    const LsMeasuredKernel *row = &g_array_index (table, LsMeasuredKernel, i);
    Sizes have = sizes_of (row->m, row->n, row->k, row->batch);
    guint axis = 0, n = differences (&have, &want, &axis);
    if (n > 1 || !is_same_work (row, implementation, kernel))
      continue;
    const LsKernel shape = ls_measured_shape (row);
    double size = have.at[axis], fitted = (double) MAX (1, ls_kernel_cost_by (fit, 1, gpu, &shape).alone),
           factor = (double) row->time / fitted;
    if (n == 0)
      take (&x->exact, size, false, factor);
    else if (size < want.at[axis])
      take (&x->below[axis], size, size > x->below[axis].size, factor);
    else
      take (&x->above[axis], size, size < x->above[axis].size, factor);
  }
}

static bool
interpolate (const Neighbours *x, const LsKernel *kernel, double *ret_factor)
{
  Sizes want = sizes_of (kernel->m, kernel->n, kernel->k, kernel->batch);
  double nearest = LS_MEASURED_MAX_GAP;
  bool found = false;
  for (guint i = 0; i < N_SIZES; i++) {
    const Side *below = &x->below[i], *above = &x->above[i];
    if (below->n == 0 || above->n == 0 || above->size / below->size > nearest
        || (found && above->size / below->size == nearest))
      continue;
    nearest = above->size / below->size;
    double share = log (want.at[i] / below->size) / log (nearest);
    *ret_factor = exp ((1 - share) * below->log_sum / below->n + share * above->log_sum / above->n);
    found = true;
  }
  return found;
}

bool
ls_measured_find (const GArray *table, int implementation, const LsKindFit *fit, const LsGpu *gpu,
                  const LsKernel *kernel, double *ret_factor, LsCostSource *ret_source)
{
  bool has_shape = kernel->m > 0 && kernel->n > 0;
  if (!table || !has_shape)
    return false;
  Neighbours x = { 0 };
  find_neighbours (table, implementation, fit, gpu, kernel, &x);
  if (x.exact.n > 0) {
    *ret_factor = exp (x.exact.log_sum / x.exact.n);
    *ret_source = LS_COST_MEASURED;
    return true;
  }
  *ret_source = LS_COST_INTERPOLATED;
  return interpolate (&x, kernel, ret_factor);
}

void
ls_measured_refine (const GArray *table, int implementation, const LsKindFit *fit, const LsGpu *gpu,
                    const LsKernel *kernel, LsKernelCost *cost)
{
  double factor;
  LsCostSource source;
  if (!ls_measured_find (table, implementation, fit, gpu, kernel, &factor, &source))
    return;
  cost->launch_s *= factor;
  cost->compute_s *= factor;
  cost->memory_s *= factor;
  cost->source = source;
  cost->extrapolated = false;
  cost->alone = ls_kernel_time_beside (cost, 0);
}

bool
ls_around_is_measured (const LsAround *a)
{
  return a->host_launch > 0 || a->kernel_gap > 0 || a->graph_gap > 0 || a->priority_wait > 0
      || a->memcpy_share > 0 || a->copy_duplex > 0 || a->streams_in_layer > 0 || a->gemms != LS_GEMMS_UNKNOWN
      || a->lost_tiles > 0 || a->lost_clusters > 0 || a->lost_told > 0 || a->waves > 0;
}

LsGemms
ls_around_gemms (const LsAround *a, bool is_persistent, bool is_dynamic)
{
  if (a->gemms != LS_GEMMS_UNKNOWN)
    return (LsGemms) a->gemms;
  return !is_persistent ? LS_GEMMS_TILES : is_dynamic ? LS_GEMMS_CLUSTERS : LS_GEMMS_PERSISTENT;
}

double
ls_around_lost (const LsAround *a, LsGemms gemms)
{
  double lost = gemms == LS_GEMMS_PERSISTENT ? a->lost_told
      : gemms == LS_GEMMS_CLUSTERS           ? a->lost_clusters
                                             : a->lost_tiles;
  return lost > 0 ? lost : 1;
}

double
ls_around_told (const LsAround *a, LsGemms gemms)
{
  return a->lost_told > 0 || gemms != LS_GEMMS_CLUSTERS ? ls_around_lost (a, LS_GEMMS_PERSISTENT)
                                                        : ls_around_lost (a, LS_GEMMS_CLUSTERS);
}

double
ls_around_waves (const LsAround *a)
{
  return a->waves > 0 ? a->waves : 2;
}

double
ls_around_duplex (const LsAround *a)
{
  return a->copy_duplex > 0 ? a->copy_duplex : 1;
}

double
ls_around_streams (const LsAround *a)
{
  return a->streams_in_layer > 0 ? a->streams_in_layer : 1;
}

LsTime
ls_around_launch (const LsAround *a, LsTime launch, LsTime gap)
{
  return a->kernel_gap > 0 ? MAX (0, launch - gap) + a->kernel_gap : launch;
}

LsTime
ls_around_graph_saves (const LsAround *a, LsTime launch)
{
  return a->kernel_gap > 0 && a->graph_gap > 0 ? MIN (launch, a->kernel_gap - a->graph_gap) : 0;
}
