/* show/run/trace_events.h — events of a Chrome trace (private to show/run/trace_*.c). */
#ifndef LS_SHOW_RUN_TRACE_EVENTS_H
#define LS_SHOW_RUN_TRACE_EVENTS_H

#include <stdio.h>

#include "analysis/critical_link.h"
#include "show/run/trace_chrome.h"

typedef struct {
  FILE *out;
  const LsChromeTrace *asked;
  const LsTimeline *t;
  LsCallLimits *calls;
  LsTime *until; /* per rank: ops that begin before it are there, from the start of the window; 0: none */
  bool *has_passes;
  bool has_events;
} Trace;

void trace_begin_event (Trace *w, char phase, const char *name, uint32_t rank);
/* Picoseconds as exact microseconds. */
void trace_put_us (Trace *w, const char *key, LsTime ps);
void trace_put_string (Trace *w, const char *text);
void trace_put_number (Trace *w, const char *key, double value);

/* What of a span lies in the window, as offsets from its start; false: nothing. */
bool trace_cut (const LsTimeline *t, const LsSpan *s, LsTime *ret_from, LsTime *ret_to);
/* Bytes that a member of a collective sends to others, or that a transfer sends. */
double trace_sent_bytes (const LsTimeline *t, uint32_t rank, const LsOp *op);

/* show/run/trace_counters.c */
void trace_put_counters (Trace *w, uint32_t rank);

#endif
