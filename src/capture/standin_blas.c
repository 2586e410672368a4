/* capture/standin_blas.c — products: how long one takes, and what cuBLAS answers of its handles. */
#include "capture/standin_answers.h"

#include <stdlib.h>
#include <string.h>

#define LS_SHARE_OF_PEAK 0.7 /* assumed, of a large product: rates of long loops on H100 (topologies/calib) */

typedef struct {
  void *stream;
  int math_mode, pointer_mode;
} Handle;

void *
ls_blas_stream (void *handle)
{
  return handle ? ((Handle *) handle)->stream : NULL;
}

/* cudaDataType: 0 fp32, 2 fp16, 14 bf16, 28 and 29 fp8; cublasComputeType: 74, 75, 77 fp32 by faster
 * units. */
int
ls_kind_of_compute (int compute_type, int data_type)
{
  if (data_type == 28 || data_type == 29 || data_type == 33)
    return 1;
  if (data_type == 2 || data_type == 14)
    return 0;
  return compute_type == 77 || compute_type == 74 || compute_type == 75 ? 2 : 3;
}

void
ls_product (void *stream, double m, double n, double k, double batch, int kind)
{
  double bytes = batch * (m * k + k * n + m * n) * (kind == 1 ? 1 : kind == 0 ? 2 : 4);
  double seconds = 2 * m * n * k * batch / (LS_SHARE_OF_PEAK * ls_device.flops[kind]);
  double least = bytes / ls_device.hbm;
  seconds = seconds > least ? seconds : least;
  ls_stream_work (stream, seconds > 2e-6 ? seconds : 2e-6);
  ls_count ("products", 1);
  ls_record ('p', stream, " %.0f %.0f %.0f %.0f %d", m, n, k, batch, kind);
  ls_trace ("product", (const int64_t[]) { (int64_t) m, (int64_t) n, (int64_t) k, (int64_t) batch, kind }, 5);
}

void
ls_capture_product (double m, double n, double k, int kind, void *stream)
{
  ls_enter ("product");
  ls_product (stream, m, n, k, 1, kind);
  ls_leave ();
}

void *
ls_blas_new (void)
{
  return calloc (1, sizeof (Handle));
}

void
ls_blas_set_stream (void *handle, void *stream)
{
  ((Handle *) handle)->stream = stream;
}

int *
ls_blas_mode (void *handle, int which)
{
  Handle *h = handle;
  return which == 0 ? &h->math_mode : &h->pointer_mode;
}

/* --- cuBLASLt: a description of a product, or of a matrix --- */

void *
ls_lt_new (void)
{
  return calloc (1, 512); /* its callers may copy as much as NVIDIA's have */
}

/* CUBLASLT_MATMUL_DESC_TRANSA is 3; CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT 5. */
void
ls_lt_set (void *description, int attribute, const void *value, size_t size)
{
  if (attribute == 3 && size >= sizeof (int))
    memcpy (&((LsLt *) description)->transposes_a, value, sizeof (int));
}

void
ls_lt_layout (void *layout, int type, uint64_t rows, uint64_t columns)
{
  LsLt *l = layout;
  l->type = type;
  l->rows = rows;
  l->columns = columns;
  l->batch = 1;
}

void
ls_lt_layout_set (void *layout, int attribute, const void *value, size_t size)
{
  if (attribute == 5 && size >= sizeof (int))
    memcpy (&((LsLt *) layout)->batch, value, sizeof (int));
}

void
ls_lt_product (void *description, void *a, void *to, void *stream)
{
  const LsLt *d = description, *of = a, *d_of = to;
  double k = (double) (d->transposes_a ? of->rows : of->columns);
  ls_product (stream, (double) d_of->rows, (double) d_of->columns, k, d_of->batch > 0 ? d_of->batch : 1,
              ls_kind_of_compute (d->compute, of->type));
}
