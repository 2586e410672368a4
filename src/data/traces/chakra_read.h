/* data/traces/chakra_read.h — reading Chakra traces: what its parts share (private to chakra_*.c). */
#ifndef LS_DATA_TRACES_CHAKRA_READ_H
#define LS_DATA_TRACES_CHAKRA_READ_H

#include "data/traces/chakra.h"
#include "data/traces/chakra_node.h"
#include "data/traces/trace_file.h"

typedef struct {
  uint32_t index;
  char *name;           /* "1" */
  TraceCommunicator is; /* axis -1: not said */
} ChakraGroup;

enum { HEAD_NAME, HEAD_SOURCE, HEAD_MODEL, HEAD_STRATEGY, N_HEAD_TEXTS };

/* What the files say together. */
typedef struct {
  const char *name;
  LsDiagList *diags;
  uint32_t n_ranks;
  TraceFile file;                 /* but for its communicators */
  GHashTable *kernels, *segments; /* GBytes: what those in the file are -> place + 1 */
  GHashTable *programs;           /* the same, of ranks that do not say their role */
  GPtrArray *roles;               /* GBytes: the same by role; NULL: none yet  */
  GPtrArray *groups;              /* ChakraGroup */
  size_t n_bytes;                 /* of all these bytes */
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

/* chakra_nodes.c */
bool chakra_complain (RankReading *x, const ChakraNode *node, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Whether what was read so far, with n more bytes, is little enough. */
bool chakra_check_size (RankReading *x, size_t n);
/* The place of an element in its list, where each stands once: told apart by what they are. Takes both. */
uint32_t chakra_place (ChakraReading *all, GHashTable *known, GBytes *what, const LsField *fields,
                       GArray *list, void *element);

/* chakra_read_groups.c */
bool chakra_read_groups_file (ChakraReading *all, const char *text);
void chakra_group_free (gpointer group);
ChakraGroup *chakra_group (ChakraReading *all, const char *name); /* NULL: there is none */
void chakra_read_groups (RankReading *x, const ChakraNode *node);

/* chakra_nodes.c */
void chakra_nodes_init (RankReading *x);
void chakra_nodes_clear (RankReading *x);
/* NULL and a complaint: there is one of that id, or there are too many. */
ChakraSeen *chakra_remember (RankReading *x, const ChakraNode *node);
const ChakraAttr *chakra_attr (const ChakraNode *node, const char *name);
const char *chakra_text_of (const ChakraNode *node, const char *name);
/* That of an attribute of a list of texts; NULL: it is none. */
const ChakraProtoMsg__StringList *chakra_list_of (const ChakraNode *node, const char *name);
bool chakra_is_on (const ChakraNode *node, const char *name);
/* Of an attribute, which may be NULL; false: it is not there, or, with a complaint, no whole number up to
 * max; *ret_value then stays. */
bool chakra_uint_in (RankReading *x, const ChakraNode *node, const ChakraAttr *attr, uint64_t max,
                     uint64_t *ret_value);
bool chakra_uint_of (RankReading *x, const ChakraNode *node, const char *name, uint64_t max,
                     uint64_t *ret_value);
/* A number up to that of bytes which can be simulated, or a complaint. */
bool chakra_need_uint (RankReading *x, const ChakraNode *node, const char *name, uint64_t *ret_value);
bool chakra_end_instance (RankReading *x);
void chakra_read_node (RankReading *x, const ChakraNode *node);
/* An op of that kind, with what the node says of all kinds, until the next begins; of others than ours on the
 * stream. NULL and a complaint: it cannot be. */
TraceOp *chakra_begin_op (RankReading *x, const ChakraNode *node, LsOpKind kind, LsStream stream);

/* chakra_read_groups.c */
bool chakra_is_send (const ChakraNode *node);
bool chakra_is_message (const ChakraNode *node); /* a send or a receive */
void chakra_read_collective (RankReading *x, const ChakraNode *node);
void chakra_read_message (RankReading *x, const ChakraNode *node);

#endif
