/* data/measured/kineto_reader.h — a trace of torch.profiler on the way (private to read_kineto.c and
 * kineto_finish.c). */
#ifndef LS_DATA_MEASURED_KINETO_READER_H
#define LS_DATA_MEASURED_KINETO_READER_H

#include "data/measured/kineto_event.h"
#include "data/measured/read_kineto.h"

#define STEP_NAME   "ProfilerStep#"
#define COMMS_NAME  "record_param_comms"
#define MAX_NS      ((int64_t) 1 << 61)
#define MAX_SPAN_NS ((int64_t) 1000000 * 1000000000) /* of a trace: 11 days */
#define MAX_DIAGS   20
#define OVERLAP_NS  1000 /* clocks of CUPTI agree to less */

/* A launch by the host. */
typedef struct {
  int64_t start;
  bool is_graph;
} Launch;

/* What a collective moves, as its call on the host says. */
typedef struct {
  uint64_t bytes;
  uint8_t class;
} Message;

typedef struct {
  LsJsonPull *p;
  LsKineto *k;
  LsDiagList *diags;
  LsKinetoEvent event;
  GHashTable *launches; /* correlation -> Launch  */
  GHashTable *messages; /* external id -> Message */
  GArray *externals;    /* int64_t of each op; -1: none */
  int64_t device;       /* of the kernels, -1: none yet */
  bool has_devices, has_kernels;
  int64_t first;
} KinetoReader;

/* Of a kernel, without arguments: names of templates go on for lines. Newly allocated. */
char *kineto_short_name (const char *name);

/* What can be told once all events are there: launches and messages of ops, times from the first one on,
 * order. */
void kineto_finish (KinetoReader *r);

#endif
