/* data/traces/chakra_node.h — nodes of a Chakra trace and their attributes (private to chakra_*.c). */
#ifndef LS_DATA_TRACES_CHAKRA_NODE_H
#define LS_DATA_TRACES_CHAKRA_NODE_H

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "data/et_def.pb-c.h"
#include "network/coll.h"
#include "data/traces/trace_file.h"

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
/* A whole number of any of the integer types, not below 0; false: it is none. */
bool chakra_uint (const ChakraAttr *attr, uint64_t *ret_value);
/* Text; NULL: it is none. */
const char *chakra_text (const ChakraAttr *attr);

/* --- what writing and reading agree on -------------------------------------------------------------- */

/* The process groups of a folder. */
#define CHAKRA_GROUPS "comm_groups.json"
/* What the ranks of a folder with a file for each role are. */
#define CHAKRA_MANIFEST        "manifest.json"
#define CHAKRA_MANIFEST_SCHEMA "lockstep.chakra-roles/1"

/* comm_size is what one member brings: the array of a gathering is so many times as large. */
static inline uint32_t
chakra_shares (LsCollKind kind, uint32_t n_ranks)
{
  return kind == LS_COLL_ALL_GATHER || kind == LS_COLL_GATHER ? n_ranks : 1;
}

/* Whether a key of an op is an attribute by its name: a node has no field for it. */
bool chakra_is_attribute (const char *key);
/* What an attribute of that name says of an op; NULL: nothing, or it is no attribute. */
const LsField *chakra_attribute (const char *name);

#endif
