/* data/traces/chakra_write.h — writing Chakra traces: what its parts share (private to chakra_*.c). */
#ifndef LS_DATA_TRACES_CHAKRA_WRITE_H
#define LS_DATA_TRACES_CHAKRA_WRITE_H

#include <stdio.h>

#include "data/traces/chakra.h"
#include "data/traces/chakra_node.h"
#include "data/traces/trace_file.h"

/* The nodes of an op, which have ids in a row; n 0: none. */
typedef struct {
  uint64_t first;
  uint32_t n;
} ChakraNodes;

/* One rank on its way into its file. */
typedef struct {
  const LsPlan *plan;
  const LsTraceHead *head;
  const LsTime *kernel_times; /* NULL: not known   */
  const GArray *kernels;      /* LsKernel          */
  uint32_t rank;
  LsBinding binding;
  FILE *out;
  GByteArray *bytes; /* of a message      */
  ChakraAttrs attrs; /* of the next node  */
  GArray *ends;      /* uint64_t: its data_deps */
  GArray *issues;    /* uint64_t: its ctrl_deps */
  uint64_t next_id;
  ChakraNodes last[LS_N_STREAMS], host;
  GArray *ops;                   /* ChakraNodes of the ops of the instance at hand */
  GHashTable *events;            /* event -> id of the node that recorded it, + 1 */
  uint32_t sent[2], received[2]; /* messages by neighbour */
  uint32_t *calls;               /* [n_comms] permutations */
} ChakraWriter;

void chakra_node_init (ChakraNode *node, ChakraProtoMsg__NodeType type, const char *name);
/* The attributes and dependencies that were gathered become those of a node. */
void chakra_put_node (ChakraWriter *w, ChakraNode *node);

/* chakra_manifest.c: its text, newly allocated; the rank whose file is that of a role. */
char *chakra_manifest_text (const LsPlan *plan);
uint32_t chakra_first_of_role (const LsPlan *plan, uint32_t role);

/* chakra_write_ops.c */
void chakra_put_op (ChakraWriter *w, const LsInstance *instance, const LsOp *op);

#endif
