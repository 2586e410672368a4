/* data/traces/chakra_read.h — reading Chakra traces: what its parts share (private to chakra_*.c). */
#ifndef LS_DATA_TRACES_CHAKRA_READ_H
#define LS_DATA_TRACES_CHAKRA_READ_H

#include "data/text/json_out.h"
#include "data/traces/chakra.h"
#include "data/traces/chakra_node.h"
#include "data/traces/trace_file.h"

/* Texts by their place, each once. */
typedef struct {
  GPtrArray *list;
  GHashTable *index; /* -> place + 1 */
  size_t n_bytes;
} ChakraTexts;

typedef struct {
  uint32_t index;
  char *name, *members; /* "1"; "[0,1]" */
  char *axis;           /* NULL: not said */
  bool spans_stages;
} ChakraGroup;

enum { HEAD_NAME, HEAD_SOURCE, HEAD_MODEL, HEAD_STRATEGY, N_HEAD_TEXTS };

/* What the files say together, as objects of lockstep.trace/1. */
typedef struct {
  const char *name;
  LsDiagList *diags;
  uint32_t n_ranks;
  ChakraTexts kernels, segments;
  ChakraTexts programs; /* of ranks that do not say their role */
  GPtrArray *roles;     /* char *, by role; NULL: none yet     */
  GPtrArray *ranks;     /* char *             */
  GPtrArray *groups;    /* ChakraGroup        */
  size_t n_bytes;       /* of roles and ranks */
  bool has_rings;       /* messages of others: by who is sent to, not by the order of ranks */
  bool wants_rings;     /* which that order does not fit */
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
  uint64_t role, gpu, peer[2]; /* LS_TRACE_ABSENT: not known */
  const ChakraGroup *slots[LS_SLOT_PREV];
  uint32_t n_lead;
  GString *program, *instances; /* as JSON so far */

  GHashTable *nodes;           /* id -> ChakraSeen */
  uint64_t last[LS_N_STREAMS]; /* id + 1 of what was issued last there; 0: nothing */
  uint32_t instance;           /* that is open; 0: none */
  uint64_t place[3];           /* micro-batch, chunk, stage */
  char *segment;
  GString *ops;
  uint32_t n_ops;
  GArray *stamps; /* [n_ops] uint32_t: the op that waits for it, counted from 1, as far as was seen */
  uint32_t n_through;
  LsJsonOut op;    /* that is open: its messages follow */
  uint64_t n_left; /* nodes of it that are still to come */
  bool is_permute; /* of them one that says nothing new  */
  uint32_t op_stream;
} RankReading;

/* chakra_nodes.c */
bool chakra_complain (RankReading *x, const ChakraNode *node, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Whether the texts so far, with n more bytes, are short enough. */
bool chakra_check_size (RankReading *x, size_t n);

void chakra_texts_init (ChakraTexts *t);
void chakra_texts_clear (ChakraTexts *t);
uint32_t chakra_text_index (ChakraTexts *t, const char *text);

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
bool chakra_is_on (const ChakraNode *node, const char *name);
/* false: it is not there, or, with a complaint, no whole number up to max; *ret_value then stays. */
bool chakra_uint_of (RankReading *x, const ChakraNode *node, const char *name, uint64_t max,
                     uint64_t *ret_value);
bool chakra_need_uint (RankReading *x, const ChakraNode *node, const char *name, uint64_t *ret_value);
bool chakra_end_instance (RankReading *x);
void chakra_read_node (RankReading *x, const ChakraNode *node);
/* Opens an op of that kind, slot and stream (above 0; else by default); NULL and a complaint: it cannot
 * be. */
ChakraSeen *chakra_begin_op (RankReading *x, const ChakraNode *node, const char *what, const TraceOp *kind);
void chakra_end_op (RankReading *x);
void chakra_write_buffers (RankReading *x, const ChakraNode *node);

/* chakra_read_groups.c */
bool chakra_is_send (const ChakraNode *node);
bool chakra_is_message (const ChakraNode *node); /* a send or a receive */
void chakra_read_collective (RankReading *x, const ChakraNode *node);
void chakra_read_message (RankReading *x, const ChakraNode *node);

#endif
