/* job/job_order.h — a job in the order of a file instead of its schedule's own. */
#ifndef LS_JOB_JOB_ORDER_H
#define LS_JOB_JOB_ORDER_H

#include "schedules/sched_layout.h"
#include "strategy/strategy.h"

/* Reads a CSV in PyTorch's text format (data/jobs/read_schedule.h). It must have the ranks,
 * chunks and micro-batches of the resolved strategy, each stage where the strategy's
 * schedule has it. NULL: LS_ERROR_INPUT (the file), LS_ERROR_CONFLICT. Free with
 * ls_orders_free(). */
LsOrders *ls_job_order_load (const char *path, const LsStrategy *s, GError **error);

#endif
