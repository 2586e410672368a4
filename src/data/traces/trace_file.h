/* data/traces/trace_file.h — lockstep.trace/1 as it stands in the file, before its indices are
 * known to mean something: the structs that the field tables fill in and write. Used
 * by trace_read.c and trace_file.c only. Numbers that a file may leave out and that
 * have no neutral value are LS_TRACE_ABSENT (enums -1) then. */
#ifndef LS_DATA_TRACES_TRACE_FILE_H
#define LS_DATA_TRACES_TRACE_FILE_H

#include "data/traces/traces.h"

#define LS_TRACE_ABSENT UINT32_MAX

/* Of one op or kernel: far from where sums in 64 bits would end. */
#define LS_TRACE_MAX_BYTES  1e18
#define LS_TRACE_MAX_FLOPS  1e24
#define LS_TRACE_MAX_REPEAT 1000000000

typedef struct {
  int send, receive; /* LS_SLOT_PREV or LS_SLOT_NEXT; -1 for the one that it is not */
  uint64_t bytes;
  uint32_t max_ctas;
} TraceTransfer;

typedef struct {
  uint32_t alloc, free; /* id; absent for the one that it is not */
  int category, when;
  uint64_t bytes;
} TraceBuffer;

typedef struct {
  char *name, *algorithm;
  int kind, stream, tag, host, slot, coll, dtype, direction;
  bool has_margin, is_light, is_in_graph;
  uint8_t site; /* LsSite; not in the file */
  uint32_t kernel, root, layer, unit, event;
  LsTime recorded, beside;
  uint32_t repeat, max_ctas;
  uint64_t bytes;
  GArray *after;     /* LsDep         */
  GArray *transfers; /* TraceTransfer */
  GArray *buffers;   /* TraceBuffer   */
} TraceOp;

typedef struct {
  char *name;
  GArray *ops; /* TraceOp */
} TraceSegment;

/* A row of "instances". */
enum { ROW_SEGMENT, ROW_MB, ROW_CHUNK, ROW_STAGE, N_ROW };

typedef struct {
  uint32_t stage;
  uint64_t n_params;
  uint64_t static_bytes[LS_N_MEM];
  uint32_t n_lead;
  GArray *instances; /* uint32_t[N_ROW] */
} TraceRole;

typedef struct {
  int axis;
  bool spans_stages;
  uint32_t *ranks;
  uint32_t n_ranks;
} TraceCommunicator;

typedef struct {
  uint32_t role, gpu;
  uint32_t comm[LS_SLOT_PREV]; /* by slot */
  uint32_t peer[2];
} TraceRank;

typedef struct {
  char *name, *source, *measured_on, *assumes;
  double compute_scale;
  LsMesh mesh;
  GArray *slots;         /* int, LsSlot       */
  GArray *communicators; /* TraceCommunicator */
  GArray *ranks;         /* TraceRank         */
  GArray *kernels;       /* LsKernel: what it may leave out is -1 where it has no neutral value */
  GArray *segments;      /* TraceSegment     */
  GArray *roles;         /* TraceRole         */
} TraceFile;

extern const LsField ls_trace_fields[];
extern const LsField ls_trace_kernel_fields[], ls_trace_op_fields[], ls_trace_buffer_fields[],
    ls_trace_segment_fields[], ls_trace_role_fields[];
extern const TraceFile ls_trace_file_blank;
extern const LsKernel ls_trace_kernel_blank;
extern const TraceOp ls_trace_op_blank;
extern const TraceTransfer ls_trace_transfer_blank;
extern const TraceBuffer ls_trace_buffer_blank;
extern const TraceRank ls_trace_rank_blank;

/* Without anything in its lists; called as the last part of a path. */
TraceFile ls_trace_file_new (const char *path);

/* The place of an element in its list, where each stands once, by what its fields say, which `known` has as
 * texts. Takes it. n_bytes: counts the texts; NULL allowed. */
uint32_t ls_trace_place (GHashTable *known, const LsField *fields, GArray *list, void *element,
                         size_t *n_bytes);

/* What a reader of other files has put together, which has ranks and no mesh: as of ls_trace_read(), but what
 * is wrong has no place. Takes what is in the file, also on failure. work: "model" and "strategy"; NULL: not
 * known. name: of the file. */
LsTrace *ls_trace_of_file (TraceFile *file, const char *name, const LsJsonDoc *work, uint32_t dp,
                           LsDiagList *diags);

/* As a file says it; ls_fields_clear() frees what is in it. */
GArray *ls_trace_kernels_of (const LsPlan *plan); /* LsKernel */
TraceOp ls_trace_op_of (const LsOp *op, const GArray *kernels);
/* Whether a file can say the plan exactly. LS_ERROR_UNSUPPORTED. */
gboolean ls_trace_can_say (const LsPlan *plan, GError **error);

/* What an op is if the file does not say, besides what its kind says: by its slot and kernel. `kernels` is
 * that of the file; op->kernel need not be in range. */
LsStream ls_trace_default_stream (const TraceOp *op);
LsDtype ls_trace_default_dtype (const TraceOp *op, const GArray *kernels);
const char *ls_trace_default_name (const TraceOp *op, const GArray *kernels); /* borrowed */

/* --- the ops of a rank as nodes of a graph --------------------------------------------------------- */

/* In the order in which its host issues them, and what must be over before each.
 *
 * Whoever writes such a graph gives nodes their ids, in a row for each op. What must be over: the op before
 * in the stream, the last that held the host up, the ops and streams that the op waits for, and the record of
 * its event. That an op was issued is told apart. */

/* The nodes whose end is that of an op; n 0: none. */
typedef struct {
  uint64_t first;
  uint32_t n;
} LsOpNodes;

typedef struct {
  const LsPlan *plan;
  uint32_t rank;
  LsBinding binding;
  const LsProgram *program;
  GArray *ends, *issues; /* uint64_t, each once: nodes that the op at hand waits for */
  LsOpNodes last[LS_N_STREAMS], host;
  GArray *ops;        /* LsOpNodes of the ops of the instance at hand */
  GHashTable *events; /* event -> first node of the op that recorded it, + 1 */
} LsOpWalk;

/* Writes the nodes of an op, after all of walk->ends; false: with an error. */
typedef gboolean LsOpPut (void *data, const LsOp *op, LsOpNodes *ret_nodes, GError **error);

/* At the first op of a rank. */
void ls_op_walk_begin (LsOpWalk *w, const LsPlan *plan, uint32_t rank);
void ls_op_walk_end (LsOpWalk *w);
/* The ops of the next instance of its program. */
gboolean ls_op_walk_instance (LsOpWalk *w, const LsInstance *instance, LsOpPut *put, void *data,
                              GError **error);

/* An id into a list of uint64_t, unless it is there. */
void ls_op_walk_add (GArray *ids, uint64_t id);

#endif
