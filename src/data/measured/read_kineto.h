/* data/measured/read_kineto.h — what PyTorch's profiler (Kineto) wrote of one rank:
 * torch.profiler's export_chrome_trace(), plain or gzip.
 *
 *     { "schemaVersion": 1, "deviceProperties": [{ "id": 0, "name": "NVIDIA H100", ... }],
 *       "distributedInfo": { "backend": "nccl", "rank": 0, "world_size": 8, ... },
 *       "traceEvents": [
 *         { "ph": "X", "cat": "kernel", "name": "...", "pid": 0, "tid": 7, "ts": 88511.785, "dur": 20.000,
 *           "args": { "External id": 12, "device": 0, "stream": 7, "correlation": 345, ... } }, ... ] }
 *
 * (pytorch/kineto, libkineto/src/output_json.cpp.) Times are microseconds with three decimals:
 * whole nanoseconds, read exactly. Kept are
 *
 *     kernel, gpu_memcpy, gpu_memset          what the GPU ran
 *     cuda_runtime, cuda_driver               when the host launched it, by "correlation"
 *     user_annotation ProfilerStep#N          the steps, on the host
 *     cpu_op record_param_comms               what a collective moves and among whom, by "External
 *                                             id", where the kernel does not say it itself (before 2.3)
 *     the same, of names that synchronise     when the host waited for the GPU
 *     cudaEventRecord, cudaStreamWaitEvent    where streams wait for each other; of which streams,
 *     cuda_sync                               where synchronisation was profiled too
 *     distributedInfo                         process groups
 *
 * Everything else is passed over without being kept: memory goes with the kernels, and a
 * trace of a gigabyte is no matter.
 *
 * Damage is told with its place: cut off or broken gzip and JSON, a time that is no number or
 * negative, a kernel without a time, no kernels, kernels of several devices. Kernels that
 * overlap on one stream are told as a note: a merge of several traces has them, but so have kernels
 * that start early on purpose (programmatic dependent launch). */
#ifndef LS_DATA_MEASURED_READ_KINETO_H
#define LS_DATA_MEASURED_READ_KINETO_H

#include <stdbool.h>

#include "data/text/json_pull.h"

#define LS_KINETO_NONE G_MAXINT64

/* Times in nanoseconds from the first event that is kept. */
typedef struct {
  int64_t start, end, launch; /* launch: of the host's call; LS_KINETO_NONE: not in the trace */
  const char *name;           /* in the trace's names                                       */
  uint64_t bytes;             /* a collective: the whole array; 0: not known                 */
  uint64_t correlation;
  uint32_t record;  /* number in traceEvents, from 0                              */
  int32_t stream;   /* -1: not said                                               */
  uint8_t class;    /* LsOpClass (analysis/op_class.h)                            */
  uint8_t dtype;    /* LsDtype of what a collective moves, by its width; of others fp32 */
  bool in_graph;    /* launched by cudaGraphLaunch, or HIP's                      */
  uint32_t group;   /* of a collective: 1 + place in groups; 0: not known         */
  int64_t called;   /* end of the launching call; LS_KINETO_NONE as launch        */
  int64_t thread;   /* that launched it; -1: not said                             */
  int64_t external; /* "External id", by which its call says what it moves; -1: none */
} LsKinetoOp;

/* A process group, by what is said of the ranks in it: start, start + stride, ... */
typedef struct {
  const char *name, *what; /* in the trace's names; "" if not said      */
  int64_t size;            /* ranks; 0: not said                        */
  int64_t start, stride;   /* stride 0: not said, or at no equal steps  */
} LsKinetoGroup;

typedef enum {
  LS_CALL_SYNC,   /* the host waits for the GPU                */
  LS_CALL_RECORD, /* an event is recorded on a stream          */
  LS_CALL_WAIT,   /* a stream waits for an event               */
} LsKinetoCallKind;

/* A call of the host that launches nothing. */
typedef struct {
  int64_t start, end;
  uint64_t correlation;
  int32_t stream;  /* of a wait: the one that waits; -1: not said                            */
  int32_t awaited; /* of a wait: where its event was recorded; of a sync: waited for; -1: not said */
  uint64_t record; /* of a wait: correlation of the call that recorded its event; 0: not said */
  uint8_t kind;    /* LsKinetoCallKind */
} LsKinetoCall;

typedef struct {
  int64_t start, end; /* on the host */
  uint64_t number;    /* of ProfilerStep#N */
  int64_t thread;     /* -1: not said */
} LsKinetoStep;

typedef struct {
  char *path;
  char *gpu;                /* NULL: not said */
  int64_t rank, world_size; /* -1: not said */
  GArray *ops;              /* LsKinetoOp, by start     */
  GArray *steps;            /* LsKinetoStep, by start   */
  GArray *calls;            /* LsKinetoCall, by start   */
  GArray *groups;           /* LsKinetoGroup            */
  GStringChunk *names;
  GPtrArray *notes; /* char * */
  uint64_t n_records;
} LsKineto;

/* Also of an export of Nsight Systems (read_nsys.c), which is told by how it begins. NULL, with
 * diagnostics (LS_ERROR_INPUT). */
LsKineto *ls_kineto_load (const char *path, LsDiagList *diags);
/* The same of n bytes, which may be gzip. */
LsKineto *ls_kineto_parse (const char *name, const void *bytes, size_t n, LsDiagList *diags);
void ls_kineto_free (LsKineto *k); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsKineto, ls_kineto_free)

#endif
