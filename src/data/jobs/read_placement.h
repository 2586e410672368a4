/* data/jobs/read_placement.h — which GPU each rank has, as a knob or a file says it. */
#ifndef LS_DATA_JOBS_READ_PLACEMENT_H
#define LS_DATA_JOBS_READ_PLACEMENT_H

#include "cluster/allocation.h"
#include "data/text/field.h"

/* Node after node, which is no allocation at all. */
#define LS_PLACEMENT_BLOCK "block"

/* A file of our own (lockstep.placement/1). */
typedef struct {
  char *name, *source;
  uint32_t cluster_nodes; /* 0: not said */
  char *nodes;            /* a list, as ls_allocation_parse() reads it; NULL: ranks */
  GArray *ranks;          /* LsPlacedRank; NULL: nodes                              */
} LsPlacementFile;

typedef struct {
  uint32_t rank, node, gpu;
} LsPlacedRank;

extern const LsField ls_placement_fields[];

/* A word, a list of nodes, or a file: JSON of ours, or names of nodes with blanks, line breaks or commas
 * between them, "#" before a comment; behind a colon all nodes of the cluster. NULL and diagnostics with
 * their places (LS_ERROR_INPUT), LS_ERROR_USAGE without a file. */
LsAllocation *ls_placement_load (const char *text, LsDiagList *diags);
LsAllocation *ls_placement_read (const LsJsonDoc *doc, LsDiagList *diags);

/* A file of ours that says which GPU each of n_ranks has, newly allocated; name: its file's without
 * ".json". */
char *ls_placement_to_json (const char *name, const char *source, const LsCluster *cluster,
                            const uint32_t *gpus, uint32_t n_ranks);
/* The same as a value of --placement that needs no file: the block, or the JSON itself. Newly allocated. */
char *ls_placement_text (const LsCluster *cluster, const uint32_t *gpus, uint32_t n_ranks);

#endif
