/* data/traces/captured_trace.h — a step of a program that was captured, as files, and as a trace that run
 * replays.
 *
 * Problem. What a program of others launches, sends and waits for is decided by it. `lockstep capture -o
 * FOLDER` has seen one step of each role of its ranks (capture/standin_record.c, lockstep_trace.py); how
 * long that takes on a cluster is asked of the same replay that modelled jobs have.
 *
 * Files. capture.json: the ranks in all, which of them stand for which, the files; rank-N.json.gz:
 * operators with their shapes, kernels, copies, collectives, streams, events, waits, in order, documented
 * in src/manual/formats/captured.md. They have no times.
 *
 * Method. A rank's program is what it launches and sends, in the order in which its host did. What is
 * launched on a stream follows what that stream was given before, and, where the stream waited for an
 * event, what had been given to the event's stream until then; the host waits where it waited. A kernel's
 * work is that of its class (captured_kernels.c). Groups of ranks become communicators; each rank of the
 * world has those of the rank that stands for it, the kth that the program made with it being the kth. The
 * result is a trace as one of ours is.
 *
 * Worked example. A kernel, a record on its stream, a wait of NCCL's stream, an all-reduce there: the
 * all-reduce stands after the kernel, and nothing else does (tests/golden/captured.txt).
 *
 * Deviations. The host is busy with each launch and each operator that launches nothing for a time that is
 * the same for all (exec/replay/host.c), not with the program's own Python. Memory is not replayed: `capture
 * --memory` says it. */
#ifndef LS_DATA_TRACES_CAPTURED_TRACE_H
#define LS_DATA_TRACES_CAPTURED_TRACE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/traces/trace_json.h"

#define LS_CAPTURED_MANIFEST "capture.json"

typedef struct {
  uint32_t rank;
  GBytes *recorded; /* borrowed: gzip of its file */
} LsCapturedFile;

/* files: LsCapturedFile. roles: JSON, as capture.json has it; NULL: the one rank stands for all. LS_ERROR_IO:
 * there is such a folder, or it cannot be written; nothing is left. */
gboolean ls_captured_trace_write (const char *folder, uint32_t world, const char *gpu, const char *roles,
                                  const GArray *files, GError **error);

/* Whether the folder is one. */
bool ls_captured_trace_is (const char *folder);

/* The folder as a trace; dp as of ls_trace_load(). NULL and diagnostics, LS_ERROR_INPUT: what is wrong, or
 * what a trace cannot say, such as ranks that send to some that are no neighbours. */
LsTrace *ls_captured_trace_load (const char *folder, uint32_t dp, LsDiagList *diags);
/* The same of files in memory: `load` gives each; NULL and diagnostics. name stands for the folder. */
typedef LsJsonDoc *LsCapturedLoad (const char *file, gconstpointer data, LsDiagList *diags);
LsTrace *ls_captured_trace_parse (const char *name, const LsJsonDoc *manifest, LsCapturedLoad *load,
                                  gconstpointer data, uint32_t dp, LsDiagList *diags);

#endif
