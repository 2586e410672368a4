/* bound/bound_kernels.c — times of kernels alone, each found once: candidates share most shapes. */
#include "base/digest.h"
#include "bound/bound_parts.h"
#include "compute/cost.h"

/* What a time follows from, besides the GPUs. */
typedef struct {
  const char *name; /* by place: one more of the same text is found anew */
  uint64_t m, n, k, batch;
  double flops, bytes;
  uint32_t kind, dtype, access, flags;
  uint64_t n_serial;
} Shape;

struct BoundKernels {
  const LsCalibration *calibration;
  GHashTable *times; /* Known, its own key */
};

typedef struct {
  Shape shape;
  LsTime time;
} Known;

static Shape
shape_of (const LsKernel *k, bool is_in_graph)
{
  uint32_t flags = (uint32_t) is_in_graph | (uint32_t) k->by_blocks << 1 | (uint32_t) k->unaligned << 2
      | (uint32_t) k->masked << 3 | (uint32_t) k->attention << 4;
  return (Shape) { k->name,
                   k->m,
                   k->n,
                   k->k,
                   k->batch,
                   k->flops,
                   k->bytes,
                   (uint32_t) k->kind,
                   (uint32_t) k->dtype,
                   (uint32_t) k->access,
                   flags,
                   k->n_serial };
}

LS_DEFINE_BYTES_KEY (shape, Shape)

BoundKernels *
bound_kernels_new (const LsCalibration *calibration)
{
  BoundKernels *kernels = g_new (BoundKernels, 1);
  kernels->calibration = calibration;
  kernels->times = g_hash_table_new_full (shape_hash, shape_equal, g_free, NULL);
  return kernels;
}

void
bound_kernels_free (BoundKernels *kernels)
{
  g_hash_table_unref (kernels->times);
  g_free (kernels);
}

void
bound_kernels_forget (BoundKernels *kernels)
{
  g_hash_table_remove_all (kernels->times);
}

static LsTime
least_time (const LsCalibration *calibration, const LsClusterSpec *spec, bool is_in_graph, const LsKernel *k)
{
  LsTime least = LS_TIME_NEVER;
  for (uint32_t kind = 0; kind < ls_cluster_spec_n_kinds (spec); kind++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (spec, kind)->gpu;
    LsCalibration room;
    const LsCalibration *c = ls_calibration_of_kind (calibration, kind, gpu, &room);
    const LsKernelCost cost = ls_kernel_cost (c, gpu, k);
    LsTime saved = is_in_graph ? ls_around_graph_saves (&c->around, ls_time_from_s (cost.launch_s)) : 0;
    least = MIN (least, cost.alone - MAX (0, saved));
  }
  return least;
}

LsTime
bound_kernel_time (BoundKernels *kernels, const LsClusterSpec *spec, bool is_in_graph, const LsKernel *k)
{
  const Shape shape = shape_of (k, is_in_graph);
  const Known *known = g_hash_table_lookup (kernels->times, &shape);
  if (!known) {
    const Known found = { shape, least_time (kernels->calibration, spec, is_in_graph, k) };
    Known *kept = g_memdup2 (&found, sizeof found);
    g_hash_table_add (kernels->times, kept);
    known = kept;
  }
  return known->time;
}
