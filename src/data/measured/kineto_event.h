/* data/measured/kineto_event.h — one event of a Kineto trace, before it is known what it is (private). */
#ifndef LS_DATA_MEASURED_KINETO_EVENT_H
#define LS_DATA_MEASURED_KINETO_EVENT_H

#include <stdbool.h>

#include "data/text/json_pull.h"

/* A value that may be missing or of a wrong type, with its place. */
typedef struct {
  bool is_there, is_good;
  int64_t value;
  LsJsonWhere where;
  char *got; /* what it is instead; NULL if good */
} LsKinetoNumber;

typedef struct {
  LsJsonWhere where;
  GString *category, *name, *phase;
  bool is_xla;            /* an argument says of which operation of XLA it is */
  LsKinetoNumber ts, dur; /* ns */
  LsKinetoNumber correlation, external, stream, device, bytes;
  LsKinetoNumber n_in, n_out; /* elements of a message */
  LsKinetoNumber thread;      /* "tid" */
  LsKinetoNumber group_size, rank_start, rank_stride;
  LsKinetoNumber wait_stream,
      wait_record; /* of a wait for an event: where and by which call it was recorded */
  GString *collective, *dtype;
  GString *group, *group_what, *ranks; /* of a process group: its name, description, "[0, 1]" */
} LsKinetoEvent;

void ls_kineto_event_init (LsKinetoEvent *e);
void ls_kineto_event_clear (LsKinetoEvent *e);
/* Behind the brace that opens it; false: bad JSON. */
bool ls_kineto_event_read (LsKinetoEvent *e, LsJsonPull *p);

/* "[0, 1]", a list or the text of one; false: bad JSON. */
bool ls_kineto_read_ranks (LsJsonPull *p, GString *to);

/* Decimal text times 10^`digits`, to the nearest whole number; false: not a number, or too
 * large. */
bool ls_kineto_decimal (const char *text, int digits, int64_t *ret);

/* Bytes of an element of a number format of c10; 0: unknown. */
uint32_t ls_kineto_dtype_bytes (const char *name);

#endif
