/* schedules/sched_check.h — what is wrong with an order that cannot run. */
#ifndef LS_SCHEDULES_SCHED_CHECK_H
#define LS_SCHEDULES_SCHED_CHECK_H

#include "base/diag.h"
#include "schedules/sched_layout.h"

/* Where orders that were read from a file stand. */
typedef struct {
  const char *file;
  const int *lines;          /* [rank] */
  char *const *texts;        /* [rank] the line */
  const int *const *columns; /* [rank][action], then the end of the line */
} LsOrderPlaces;

/* Adds a diagnostic for each action that is out of range, on the wrong rank, there twice
 * or wrongly paired, for each that is missing, and if there is none of these, one for a
 * cycle of ranks that wait for each other. The pointer is "/RANK/ACTION", counted from 0,
 * with the rank's number of actions for what is missing. They are LS_ERROR_INPUT and located
 * if places are given, else LS_ERROR_CONFLICT. TRUE if the order can run. */
gboolean ls_orders_check (const LsOrders *orders, const LsOrderPlaces *places, LsDiagList *diags);

#endif
