/* data/jobs/read_schedule.h — a pipeline schedule in PyTorch's text format: a line per rank, cells
 * of actions between commas, in the order in which the rank executes them.
 *
 *     2F5 2B5 2I5 2W5           forward, full backward, input gradient, weight gradient of
 *                               stage 2 (of the model, not of the rank), micro-batch 5
 *     d1s2F5                    of the replica ("direction") 1
 *     (2F5;7B3)OVERLAP_F_B      executed together
 *     2SEND_F5 3RECV_F5         what stage 2 makes goes to stage 3: SEND names the stage that
 *     3SEND_B5 2RECV_B5         made it, RECV the one that uses it
 *     2UNSHARD 2RESHARD         parameters gathered, and dropped
 *     2REDUCE_GRAD              gradients reduced
 *
 * Empty cells are steps without an action and mean nothing. A stage is on the rank that has
 * most of its actions; the rank's chunks are its stages in ascending order.
 *
 * Beyond what schedules/sched_eval.h looks for: a file that has any SEND or RECV must have
 * all that cross ranks, each where its data exist and before they are used, and those from
 * one rank to another in the same order on both, as they are matched by order. A file that
 * unshards must have a stage's parameters gathered whenever they are used. Gradients are
 * reduced once, after a stage's last backward. Sends and receives wait for nobody, as in
 * PyTorch, so they add no deadlock.
 *
 * Reference: torch.distributed.pipelining.schedules. */
#ifndef LS_DATA_JOBS_READ_SCHEDULE_H
#define LS_DATA_JOBS_READ_SCHEDULE_H

#include <glib.h>

#include "base/diag.h"
#include "schedules/sched.h"

/* Orders that can run, or NULL and located diagnostics (LS_ERROR_INPUT). Free with
 * ls_orders_free(). */
LsOrders *ls_read_schedule (const char *path, LsDiagList *diags);
/* The same from memory; `name` stands for the file in diagnostics. */
LsOrders *ls_parse_schedule (const char *name, const char *text, LsDiagList *diags);

#endif
