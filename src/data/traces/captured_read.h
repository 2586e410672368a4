/* data/traces/captured_read.h — reading a captured step: what its parts share (private to captured_*.c). */
#ifndef LS_DATA_TRACES_CAPTURED_READ_H
#define LS_DATA_TRACES_CAPTURED_READ_H

#include "data/traces/trace_file.h"

/* A group that a role's rank is in. */
typedef struct {
  char *name;
  GArray *ranks;      /* uint32_t */
  uint8_t slot, axis; /* LsSlot, LsAxis; LS_N_SLOTS: nothing is sent in it but to single ranks, if at all */
  bool is_used, has_peers;
  guint n_exchanges; /* all-to-alls that were read */
} CapturedGroup;

typedef struct {
  uint32_t rank;     /* that was captured */
  GPtrArray *groups; /* CapturedGroup, in the order in which the program made them */
  uint8_t *streams;  /* LsStream, of each stream of the record */
  uint32_t n_streams, n_launches, n_unknown;
  uint64_t n_calls;        /* of functions of Python */
  uint64_t held[LS_N_MEM]; /* bytes, when its allocator had handed out most */
  int pipe;                /* of groups, that in which it sends to single ranks; -1: none */
  GArray *work;            /* int32_t, of each op: as LsTrace has it */
} CapturedRole;

/* An op of an open or a whole segment, whose bytes are those of an exchange. */
typedef struct {
  GArray *ops;
  guint at, exchange;
} CapturedExchange;

typedef struct {
  const char *folder;
  LsCapturedLoad *load;
  gconstpointer data; /* of load */
  LsDiagList *diags;
  uint32_t world;
  uint64_t n_members; /* of all groups that were read */
  GArray *role_of;    /* uint32_t, of each rank */
  GPtrArray *roles;   /* CapturedRole */
  GPtrArray *every;   /* GArray of uint32_t: ranks of all groups that the program made, in order */
  TraceFile file;     /* what was read so far */
  GHashTable *kernel_index;
  GHashTable *unknown; /* of operators that launch kernels of no known class: how many */
  char *made_with;     /* "torch 2.15.0, CUDA 13.2" */
  char *gpu;           /* of which the program was told that it runs on it: kernels are this one's */
  /* All-to-alls, of which ranks may send unequal amounts: what the fullest sends; its place by the ranks of
   * the group and how many of theirs were before. */
  GArray *exchanges; /* uint64_t */
  GHashTable *exchange_of;
  GArray *exchange_ops; /* CapturedExchange */
} CapturedReading;

/* Of a rank among others: as many as there are if it is none. */
guint captured_place_in (const GArray *ranks, uint32_t rank);

bool captured_complain (CapturedReading *x, const char *file, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* captured_ops.c: what the rank does, as segments of the trace. */
bool captured_read_used (CapturedReading *x, const char *file, const cJSON *root, CapturedRole *role);
bool captured_read_ops (CapturedReading *x, const char *file, const cJSON *root, CapturedRole *role);

/* --- captured_kernels.c ------------------------------------------------------------------------------ */

/* What a captured launch computes, by the name of its kernel and the
 * tensors of the operator that launched it.
 *
 * Problem. A stand-in sees a name, a grid, and for products their sizes; PyTorch says which operator runs
 * on which tensors. What the launch does with memory follows from both.
 *
 * Equations. A product: its sizes. Attention: as ls_kernel_attention() of the operator's queries and keys,
 * with as many pairs as the capture says; else at most: all tokens by the longest sequence, or by all keys.
 * All others stream: bytes = sum over the operator's tensors on the GPU of those that are read and those
 * that are written, of each as many elements as lie apart in memory. Of what an operator launches, each
 * has the share of its threads. The access (LsAccess), which says how fast a kind of kernel streams, is
 * that of a row of names.
 *
 * Worked example. aten::add of two bf16[4,2048,2048], one launch of vectorized_elementwise_kernel: 3 x
 * 16,777,216 x 2 bytes, access vec.
 *
 * Libraries. What an extension launches is not among an operator's tensors; but what it writes is allocated
 * just before. A row says how many passes over that its kernels make: a norm reads as much as it writes,
 * its backward reads twice that. What no row knows is taken to make two, and is counted as unknown; where
 * nothing is allocated, 32 bytes a thread. Kernels of apex's kind (multi_tensor_apply) take 65,536 elements
 * a block, of each of their lists.
 *
 * Deviations. The last block of each tensor of such a list is taken to be full. */

/* By the letter of a line. */
typedef enum {
  LS_CAPTURED_KERNEL = 'k',
  LS_CAPTURED_PRODUCT = 'p',
  LS_CAPTURED_PLAN = 'd', /* of cuDNN */
  LS_CAPTURED_FILL = 'f',
  LS_CAPTURED_MOVE = 'c' /* on the device */
} LsCapturedWork;

typedef struct {
  LsCapturedWork work;
  const char *kernel;            /* its name, mangled; NULL: it has none */
  const char *op;                /* "aten::add"; NULL: outside of any */
  const cJSON *inputs, *outputs; /* of the op, as lockstep_trace.py writes them; NULL: none */
  bool is_into;                  /* the last tensor among the inputs is where it writes, as out= says */
  double blocks;                 /* of this launch's grid */
  double threads;                /* of this launch */
  double share;                  /* of the threads of all that the operator launches */
  double bytes;                  /* of a fill, of a move */
  uint64_t m, n, k, batch;       /* of a product */
  double made;                   /* bytes that were allocated for it since the launch before */
  double products, all_bytes;    /* of a plan: matrix products, m x n x k the first; of its tensors */
  bool is_masked;                /* half of the first product is */
  double pairs;     /* of queries and keys, that a head of the attention multiplies; 0: not known */
  uint32_t compute; /* 0: in 16 bits, 1: fp8, 2: tf32, 3: fp32 */
} LsCapturedLaunch;

/* Its name is static, or in the launch; false: no row knows it, and it is taken to stream. */
bool ls_captured_kernel (const LsCapturedLaunch *launch, LsKernel *ret_kernel);

#endif
