/* capture/standin_answers.h — small answers that lines of answered.txt share, and structs of CUDA as their
 * callers lay them out (public headers of CUDA 12 and 13, NCCL 2). */
#ifndef LS_CAPTURE_STANDIN_ANSWERS_H
#define LS_CAPTURE_STANDIN_ANSWERS_H

#include "capture/standin.h"

typedef struct {
  LsDim3 grid, block;
  size_t shared;
  void *stream, *attributes;
  unsigned n_attributes;
} LsLaunchConfig; /* cudaLaunchConfig_t */

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned n_attributes;
} LsDriverConfig; /* CUlaunchConfig */

typedef struct {
  int compute, transposes_a, type, batch;
  uint64_t rows, columns;
} LsLt; /* what cuBLASLt describes: a product, or a matrix */

void *ls_blas_new (void);
void ls_blas_set_stream (void *handle, void *stream);
int *ls_blas_mode (void *handle, int which); /* 0: of arithmetic, 1: of pointers */
void *ls_lt_new (void);
void ls_lt_set (void *description, int attribute, const void *value, size_t size);
void ls_lt_layout (void *layout, int type, uint64_t rows, uint64_t columns);
void ls_lt_layout_set (void *layout, int attribute, const void *value, size_t size);
void ls_lt_product (void *description, void *a, void *to, void *stream);

/* "undocumented tables of the driver for libcufft.so.12", by who calls; it stays. */
const char *ls_asker (const void *caller);
const char *ls_error_name (int error);
const char *ls_error_string (int error);
void *ls_function_named (const char *name); /* NULL: no table has it */
void ls_pointer_attributes (const void *memory, void *ret);
int ls_pointer_attribute (void *ret, int attribute, uint64_t memory);
/* Graphs: what a stream and those that wait for it are given from begin to end, once more at each launch. */
void *ls_graph_new (void);
void *ls_graph_of (void *stream);               /* NULL: none is made of it */
int ls_graph_begin (void *stream, void *graph); /* graph: NULL: a new one */
int ls_graph_end (void *stream, void **ret_graph);
int ls_graph_launch (void *graph, void *stream);
size_t ls_graph_size (const void *graph);
/* What a graph of cuDNN computes: products, of which the first is batch times m x n x k. */
typedef struct {
  int n_products;
  int64_t batch, m, n, k;
  bool is_known, is_masked; /* the upper half of the first product is */
  double bytes;             /* of its tensors in memory */
} LsDnnWork;

void *ls_dnn_new (int type);
const LsDnnWork *ls_dnn_work (const void *descriptor); /* of a graph, or of what was made of one */
void ls_dnn_run (const void *plan, void *stream);
void ls_dnn_free (void *descriptor);
void ls_dnn_set (void *descriptor, int key, int type, int64_t n, const void *values);
int ls_dnn_get (void *descriptor, int key, int type, int64_t n, int64_t *ret_n, void *values);
double ls_dnn_bytes (int type, int n, const int *sizes); /* of a tensor */
int ls_heuristics (int n_wanted, void *results, int *ret_n);

#endif
