/* data/traces/chakra_ops.h — what writing and reading Chakra traces agree on (private to chakra_*.c). */
#ifndef LS_DATA_TRACES_CHAKRA_OPS_H
#define LS_DATA_TRACES_CHAKRA_OPS_H

#include <string.h>

#include "network/coll.h"
#include "plan/plan.h"

/* The process groups of a folder. */
#define CHAKRA_GROUPS "comm_groups.json"
/* What the ranks of a folder with a file for each role are. */
#define CHAKRA_MANIFEST        "manifest.json"
#define CHAKRA_MANIFEST_SCHEMA "lockstep.chakra-roles/1"

/* Holds up the host, and with it all that is issued later; stands in no stream. */
static inline bool
chakra_is_of_host (int op_kind)
{
  return op_kind == LS_OP_HOST_SYNC || op_kind == LS_OP_HOST_DELAY;
}

/* comm_size is what one member brings: the array of a gathering is so many times as large. */
static inline uint32_t
chakra_shares (LsCollKind kind, uint32_t n_ranks)
{
  return kind == LS_COLL_ALL_GATHER || kind == LS_COLL_GATHER ? n_ranks : 1;
}

/* Keys of an op that are attributes by their name: a node has no field for them. */
static inline bool
chakra_is_attribute (const char *key)
{
  static const char *const others[]
      = { "op", "name", "kernel", "coll", "bytes", "after", "stream", "transfers", "buffers", NULL };
  return !g_strv_contains (others, key);
}

#endif
