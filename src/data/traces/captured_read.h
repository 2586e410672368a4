/* data/traces/captured_read.h — reading a captured step: what its parts share (private to captured_*.c). */
#ifndef LS_DATA_TRACES_CAPTURED_READ_H
#define LS_DATA_TRACES_CAPTURED_READ_H

#include "data/traces/captured_trace.h"
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
  uint64_t held[LS_N_MEM]; /* bytes, when its allocator had handed out most */
  int pipe;                /* of groups, that in which it sends to single ranks; -1: none */
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

#endif
