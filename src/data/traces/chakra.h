/* data/traces/chakra.h — a plan as Chakra execution traces (MLCommons): a folder with trace.R.et for each
 * rank R, documented in src/manual/formats/chakra.md. The messages are those of et_def.proto; what the
 * schema has no field for stands in attributes that others pass over. What is written is read back as the
 * same plan.
 *
 * Of one op: a kernel is a COMP_NODE, a collective a COMM_COLL_NODE, each message of a p2p a COMM_SEND_NODE
 * or COMM_RECV_NODE, a copy a MEM_LOAD_NODE or MEM_STORE_NODE, all else (events, waits of the host, where a
 * segment begins, process groups) a METADATA_NODE. data_deps are all nodes that must have ended: the one
 * before in its stream, the last that held the host up, and those that the op waits for.
 *
 * Traces of others are read too: nodes in the order of their file, each after those that it depends on.
 * Compute takes its duration_micros. */
#ifndef LS_DATA_TRACES_CHAKRA_H
#define LS_DATA_TRACES_CHAKRA_H

#include "data/traces/trace_json.h"

/* Ranks and nodes that an export writes at most, and bytes of a message and a file that are read. What is
 * read is at most as long as a file lockstep.trace/1 may be. */
#define LS_CHAKRA_MAX_RANKS 65536
#define LS_CHAKRA_MAX_NODES 1e9
/* nodes of a rank, written or read */
#define LS_CHAKRA_MAX_NODES_OF_RANK (1u << 24)
#define LS_CHAKRA_MAX_MESSAGE       ((size_t) 4 << 20)
#define LS_CHAKRA_MAX_FILE          ((size_t) 1 << 30)

/* Into a folder that must not exist yet: a file for each rank and comm_groups.json, the process groups as
 * ASTRA-sim reads them. by_role: only of the first rank of each role, and manifest.json, which says what all
 * ranks are. kernel_times: [n_kernels] for duration_micros, NULL: not said. LS_ERROR_UNSUPPORTED
 * if the plan has what the files cannot say exactly, LS_ERROR_LIMIT, LS_ERROR_IO. */
gboolean ls_chakra_write (const LsPlan *plan, const LsTraceHead *head, const LsTime *kernel_times,
                          bool by_role, const char *folder, GError **error);

/* The folder as a trace; dp as of ls_trace_load(). NULL and diagnostics: LS_ERROR_INPUT, LS_ERROR_UNSUPPORTED
 * for nodes that have no counterpart here. */
LsTrace *ls_chakra_load (const char *folder, uint32_t dp, LsDiagList *diags);

/* The same from the bytes of the files of ranks 0 to n - 1. `groups`: that of comm_groups.json, or NULL;
 * `name` stands for the folder. */
LsTrace *ls_chakra_parse (const char *name, const GPtrArray *files, const char *groups, LsDiagList *diags);
/* The same of the files of roles, and manifest.json. */
LsTrace *ls_chakra_parse_roles (const char *name, const GPtrArray *files, const char *manifest,
                                LsDiagList *diags);

#endif
