/* data/traces/chakra_read.h — nodes of a Chakra trace and their attributes, and what reading them has on its
 * way (private to chakra_*.c). */
#ifndef LS_DATA_TRACES_CHAKRA_READ_H
#define LS_DATA_TRACES_CHAKRA_READ_H

#include "data/et_def.pb-c.h"
#include "data/traces/trace_file.h"
#include "network/coll.h"

typedef ChakraProtoMsg__Node ChakraNode;
typedef ChakraProtoMsg__AttributeProto ChakraAttr;

/* The value of our attribute `lockstep` of GlobalMetadata, and the version of the schema. */
#define CHAKRA_FORM    "lockstep.chakra/1"
#define CHAKRA_VERSION "0.0.4"

/* Names of attributes that say what a node of ours is; those of an op's keys are as in lockstep.trace/1. */
#define CHAKRA_OP     "op"
#define CHAKRA_NODES  "nodes"
#define CHAKRA_AFTER  "after_streams"
#define CHAKRA_KERNEL "kernel."
#define CHAKRA_STATIC "static."

/* NULL: there is none of that name. */
const ChakraAttr *chakra_find (ChakraAttr *const *attrs, size_t n, const char *name);
/* Text; NULL: it is none. */
const char *chakra_text (const ChakraAttr *attr);

/* --- what writing and reading agree on -------------------------------------------------------------- */

/* The process groups of a folder. */
#define CHAKRA_GROUPS "comm_groups.json"
/* What the ranks of a folder with a file for each role are. */
#define CHAKRA_MANIFEST        "manifest.json"
#define CHAKRA_MANIFEST_SCHEMA "lockstep.chakra-roles/1"

/* What each type of Chakra's collectives is here; written is the first of several that are alike. */
#define CHAKRA_N_COLLS (CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BARRIER + 1)
extern const LsCollKind chakra_coll_kinds[CHAKRA_N_COLLS];

/* comm_size is what one member brings: the array of a gathering is so many times as large. */
static inline uint32_t
chakra_shares (LsCollKind kind, uint32_t n_ranks)
{
  return kind == LS_COLL_ALL_GATHER || kind == LS_COLL_GATHER ? n_ranks : 1;
}

/* Whether a key of an op is an attribute by its name: a node has no field for it. */
bool chakra_is_attribute (const char *key);

typedef struct {
  uint32_t index;
  char *name;           /* "1" */
  TraceCommunicator is; /* axis -1: not said */
} ChakraGroup;

enum { HEAD_NAME, HEAD_SOURCE, HEAD_GPU, HEAD_ASSUMES, HEAD_SCALE, HEAD_MODEL, HEAD_STRATEGY, N_HEAD_TEXTS };

/* What the files say together. */
typedef struct {
  const char *name;
  LsDiagList *diags;
  uint32_t n_ranks;
  TraceFile file;                 /* but for its communicators */
  GHashTable *kernels, *segments; /* char *: what those in the file are -> place + 1 */
  GHashTable *programs;           /* the same, of ranks that do not say their role */
  GPtrArray *roles;               /* char *: the same by role; NULL: none yet  */
  GPtrArray *groups;              /* ChakraGroup */
  size_t n_bytes;                 /* of all these texts */
  bool has_rings;                 /* messages of others: by who is sent to, not by the order of ranks */
  bool wants_rings;               /* which that order does not fit */
  char *head[N_HEAD_TEXTS];
} ChakraReading;

/* The bytes of a rank's file: NULL and diagnostics. */
typedef GByteArray *(*ChakraLoad) (uint32_t rank, gconstpointer data, LsDiagList *diags);

/* A node that was read. */
typedef struct {
  uint32_t instance, op; /* op UINT32_MAX: it is none, and `through` are the ops that it waited for */
  uint8_t stream;
  bool is_of_host;
  int64_t event;   /* of a record; -1: none    */
  GArray *through; /* uint64_t: ids that waiting for it means waiting for; NULL: none */
  bool is_send;    /* of others, whose receiver it does not wait for */
} ChakraSeen;

/* One file on its way. */
typedef struct {
  ChakraReading *all;
  uint32_t rank;
  bool ok, is_ours;
  TraceRank is; /* role LS_TRACE_ABSENT: not known; slots by place of their group */
  TraceRole program;

  GHashTable *nodes;    /* id -> ChakraSeen */
  uint32_t instance;    /* that is open; 0: none */
  uint32_t row[N_ROW];  /* of it */
  TraceSegment segment; /* of it; ops NULL: none is open. The last op may be: its messages follow */
  GArray *stamps; /* uint32_t of each op: the op that waits for it, counted from 1, as far as was seen */
  uint32_t n_through;
  uint64_t n_left; /* nodes of the open op that are still to come */
} RankReading;

/* --- chakra_read.c ------------------------------------------------------------------------------------ */

/* NULL: there is none. */
ChakraGroup *chakra_group (ChakraReading *all, const char *name);
/* No members are all ranks, as PyTorch has it. NULL: it is there, with other members. */
ChakraGroup *chakra_add_group (ChakraReading *all, const char *name, const cJSON *ranks);
/* Whether that is a list of ranks. */
bool chakra_is_member_list (const cJSON *ranks);

/* --- chakra_nodes.c ----------------------------------------------------------------------------------- */

bool chakra_complain (RankReading *x, const ChakraNode *node, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Whether what was read so far, with n more bytes, is little enough. */
bool chakra_check_size (RankReading *x, size_t n);

void chakra_nodes_init (RankReading *x);
void chakra_nodes_clear (RankReading *x);
/* Of an attribute, which may be NULL; false: it is not there, or, with a complaint, no whole number up to
 * max; *ret_value then stays. */
bool chakra_uint_in (RankReading *x, const ChakraNode *node, const ChakraAttr *attr, uint64_t max,
                     uint64_t *ret_value);
bool chakra_end_instance (RankReading *x);
void chakra_read_node (RankReading *x, const ChakraNode *node);

#endif
