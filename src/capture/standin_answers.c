/* capture/standin_answers.c — small answers, of the runtime and the driver, and of cuBLAS: how long a product
 * takes. */
#define _GNU_SOURCE
#include "capture/standin_answers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  int error;
  const char *name, *text;
} errors[] = {
  { CUDA_OK, "cudaSuccess", "no error" },
  { CUDA_INVALID, "cudaErrorInvalidValue", "invalid argument" },
  { CUDA_NO_MEMORY, "cudaErrorMemoryAllocation", "out of memory" },
  { CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found" },
  { CUDA_NOT_READY, "cudaErrorNotReady", "device not ready" },
};

const char *
ls_error_name (int error)
{
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error)
      return errors[i].name;
  return "cudaErrorUnknown";
}

const char *
ls_error_string (int error)
{
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error)
      return errors[i].text;
  return "unknown error";
}

void *
ls_function_named (const char *name)
{
  static void *own;
  Dl_info info;
  if (!own && dladdr ((void *) ls_function_named, &info))
    own = dlopen (info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!own)
    own = dlopen (NULL, RTLD_NOW); /* of a program that they are linked into */
  char versioned[128];
  void *function = NULL;
  for (int version = 3; version >= 2 && !function; version--) {
    snprintf (versioned, sizeof versioned, "%s_v%d", name, version);
    function = own ? dlsym (own, versioned) : NULL;
  }
  return function ? function : own ? dlsym (own, name) : NULL;
}

const char *
ls_asker (const void *caller)
{
  static char texts[8][160];
  Dl_info info;
  const char *path = dladdr (caller, &info) ? info.dli_fname : "a program";
  const char *name = strrchr (path, '/') ? strrchr (path, '/') + 1 : path;
  char text[sizeof *texts];
  snprintf (text, sizeof text, "undocumented tables of the driver for %s", name);
  size_t i = 0;
  while (i < 7 && texts[i][0] && strcmp (texts[i], text) != 0)
    i++;
  return memcpy (texts[i], text, sizeof text);
}

/* struct cudaPointerAttributes: type (0 not known, 1 host, 2 device), device, its pointers there. */
void
ls_pointer_attributes (const void *memory, void *ret)
{
  struct {
    int type, device;
    void *on_device, *on_host;
  } a = { 0, -2, NULL, NULL };
  if (ls_is_device (memory, NULL, NULL)) {
    a.type = 2;
    a.device = ls_device_of (memory);
    a.on_device = (void *) memory;
  } else if (ls_is_pinned (memory)) {
    a.type = 1;
    a.device = 0;
    a.on_device = a.on_host = (void *) memory;
  } else {
    a.on_host = (void *) memory;
  }
  memcpy (ret, &a, sizeof a);
}

/* CU_POINTER_ATTRIBUTE_: 1 context, 2 memory type (1 host, 2 device), 3 device pointer, 4 host pointer, 6
 * synchronous, 7 id, 8 managed, 9 ordinal, 11 start, 12 size, 17 the pool. */
int
ls_pointer_attribute (void *ret, int attribute, uint64_t memory)
{
  uint64_t base = memory, bytes = 0;
  bool is_device = ls_is_device ((void *) (uintptr_t) memory, &base, &bytes);
  if (!is_device && !ls_is_pinned ((void *) (uintptr_t) memory))
    return CUDA_INVALID;
  switch (attribute) {
  case 2:
    *(unsigned *) ret = is_device ? 2 : 1;
    break;
  case 1:
  case 17:
    *(void **) ret = NULL;
    break;
  case 3:
  case 4:
  case 11:
    *(uint64_t *) ret = attribute == 11 ? base : memory;
    break;
  case 7:
    *(uint64_t *) ret = base >> 12;
    break;
  case 12:
    *(size_t *) ret = bytes;
    break;
  case 6:
  case 8:
    *(unsigned *) ret = 0;
    break;
  case 9:
    *(int *) ret = ls_device_of ((void *) (uintptr_t) memory);
    break;
  default:
    return CUDA_INVALID;
  }
  return CUDA_OK;
}

/* cublasLtMatmulHeuristicResult_t: an algorithm of 64 bytes, size_t workspace, status, waves, reserved. */
int
ls_heuristics (int n_wanted, void *results, int *ret_n)
{
  struct {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
  } *r = results;
  for (int i = 0; i < n_wanted && i < 1; i++) {
    memset (&r[i], 0, sizeof r[i]);
    r[i].waves = 1;
  }
  *ret_n = n_wanted > 0 ? 1 : 0;
  return 0;
}

/* ---- cuBLAS: its handles, and its products ---- */

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
  uint64_t key = ls_trace (
      "product", (const int64_t[]) { (int64_t) m, (int64_t) n, (int64_t) k, (int64_t) batch, kind }, 5);
  ls_stream_work (stream, key, seconds > 2e-6 ? seconds : 2e-6);
  ls_count ("products", 1);
  ls_record ('p', stream, " %.0f %.0f %.0f %.0f %d", m, n, k, batch, kind);
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
