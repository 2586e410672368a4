/* data/measured/kineto_reader.h — a trace of torch.profiler on the way (private to read_kineto.c and
 * read_nsys.c). */
#ifndef LS_DATA_MEASURED_KINETO_READER_H
#define LS_DATA_MEASURED_KINETO_READER_H

#include <stdbool.h>

#include "analysis/op_class.h"
#include "data/measured/read_kineto.h"
#include "data/text/json_pull.h"
#include "data/text/text_place.h"

/* --- one event of a Kineto trace, before it is known what it is ---------------------------------- */

/* A value that may be missing or of a wrong type, with its place. */
typedef struct {
  bool is_there, is_good;
  int64_t value;
  LsJsonWhere where;
  char *got; /* what it is instead; NULL if good */
} LsKinetoNumber;

typedef struct {
  LsJsonWhere where;
  GString *category, *name, *phase;
  bool is_xla;            /* an argument says of which operation of XLA it is */
  LsKinetoNumber ts, dur; /* ns */
  LsKinetoNumber correlation, external, stream, device, bytes;
  LsKinetoNumber n_in, n_out; /* elements of a message */
  LsKinetoNumber thread;      /* "tid" */
  LsKinetoNumber group_size, rank_start, rank_stride;
  LsKinetoNumber wait_stream,
      wait_record; /* of a wait for an event: where and by which call it was recorded */
  GString *collective, *dtype;
  GString *group, *group_what, *ranks; /* of a process group: its name, description, "[0, 1]" */
} LsKinetoEvent;

/* Decimal text times 10^`digits`, to the nearest whole number; false: not a number, or too
 * large. */
bool ls_kineto_decimal (const char *text, int digits, int64_t *ret);

/* --- a trace of torch.profiler on the way -------------------------------------------------------- */

#define STEP_NAME   "ProfilerStep#"
#define COMMS_NAME  "record_param_comms"
#define MAX_NS      ((int64_t) 1 << 61)
#define MAX_SPAN_NS ((int64_t) 1000000 * 1000000000) /* of a trace: 11 days */
#define MAX_DIAGS   20
#define MAX_SHOWN   5    /* categories */
#define OVERLAP_NS  1000 /* clocks of CUPTI agree to less */

/* A launch by the host. */
typedef struct {
  int64_t start, end, thread;
  bool is_graph; /* by its name */
} Launch;

/* What a collective moves, as its call on the host says. */
typedef struct {
  uint64_t bytes;
  uint32_t group;
  uint8_t class, dtype;
} Message;

/* Which streams a synchronising call was about, as an event of its own says. */
typedef struct {
  uint64_t record;
  int32_t stream, awaited;
} SyncDetail;

typedef struct {
  LsJsonPull *p;
  LsKineto *k;
  LsDiagList *diags;
  LsKinetoEvent event;
  GHashTable *launches; /* correlation -> Launch  */
  GHashTable *messages; /* external id -> Message */
  GHashTable *details;  /* correlation -> SyncDetail */
  int64_t device;       /* of the kernels, -1: none yet */
  bool has_devices, has_kernels, has_events, is_xla;
  GPtrArray *categories; /* char *: the first few that occur */
  int64_t first;
} KinetoReader;

/* Without anything in it. */
LsKineto *kineto_new (const char *path);
void kineto_reader_init (KinetoReader *r, LsKineto *k, LsDiagList *diags);
void kineto_reader_clear (KinetoReader *r);

/* What the GPU ran, as far as every profile says it; the rest is the caller's to set. Until the next. */
LsKinetoOp *kineto_add_op (KinetoReader *r, int64_t start, int64_t end, const char *name, LsOpClass class,
                           int64_t correlation);
/* A call of that name, which may be a launch, if its correlation is above 0. */
void kineto_add_call (KinetoReader *r, int64_t correlation, const char *name, Launch launch);
void kineto_add_step (KinetoReader *r, LsKinetoStep step);
/* Of a call of that correlation, above 0. */
void kineto_add_detail (KinetoReader *r, int64_t correlation, SyncDetail detail);

/* 1 + the place of a process group in k->groups, where it is added if it is new; 0: there are too many. */
uint32_t kineto_add_group (LsKineto *k, const LsKinetoGroup *g);

/* What can be told once all events are there: launches and messages of ops, times from the first one on,
 * order. */
void kineto_finish (KinetoReader *r);

/* --- read_nsys.c ------------------------------------------------------------------------------------- */

/* What Nsight Systems wrote of a run: `nsys export --type sqlite`.
 *
 *     CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName)
 *     CUPTI_ACTIVITY_KIND_MEMCPY, _MEMSET     the same without a name; copyKind
 *     CUPTI_ACTIVITY_KIND_RUNTIME (start, end, correlationId, globalTid, nameId)
 *     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (streamId, correlationId, ...)
 *     NVTX_EVENTS (start, end, text or textId, globalTid, jsonText or jsonTextId)
 *     StringIds (id, value), TARGET_INFO_GPU (id, name)
 *
 * Times are nanoseconds. Which columns there are differs by release: what is missing is done without, but
 * for start, end and stream of kernels. It becomes what a profile of torch.profiler does
 * (data/measured/read_kineto.h):
 *
 *     steps         NVTX ranges "ProfilerStep#N", "step N" or "iteration N", also with "_", "#", ":" or
 *                   nothing between
 *     collectives   of kernels of NCCL that were launched within a range of NCCL's own
 *     one device    of several that with the lowest number, of its first process; said as a note */

/* Whether the bytes begin as SQLite's do. */
bool ls_nsys_is (const void *bytes, size_t n);

/* By path; or, with bytes not NULL, n bytes in memory of that name. NULL, with diagnostics
 * (LS_ERROR_INPUT). */
LsKineto *ls_nsys_load (const char *path, const void *bytes, size_t n, LsDiagList *diags);

#endif
