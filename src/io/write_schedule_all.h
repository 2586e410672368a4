/* io/write_schedule_all.h — pipeline schedules beside each other, for people and for
 * programs. */
#ifndef LS_IO_WRITE_SCHEDULE_ALL_H
#define LS_IO_WRITE_SCHEDULE_ALL_H

#include "io/write_schedule.h"

typedef struct {
  const char *schedule;
  const char *refusal;   /* NULL, or the rule that the job breaks: then no figures */
  uint32_t vpp;          /* chunks of a rank, of one replica */
  LsTime makespan, span, ideal;
  double to_w, by_halves; /* the most of a rank, as of ls_schedule_peak()    */
  bool is_searched;
  double copies;         /* of a rank's share of the parameters that it keeps */
  double communication;  /* boundaries between ranks that are crossed, over those of 1f1b; NaN: none */
} LsScheduleRow;

typedef struct {
  char *title;
  bool has_unit; /* as of LsScheduleView */
  double memory_limit; /* micro-batches of a rank's full activations, by halves; 0: none */
  GArray *rows;  /* LsScheduleRow */
} LsScheduleTable;

/* A searched order keeps the limit; a fixed one may not. */
bool ls_schedule_row_fits (const LsScheduleTable *t, const LsScheduleRow *row);

/* Newly allocated, ending in a newline. Whether a row fits is told where there is a limit. */
char *ls_schedule_all_to_text (const LsScheduleTable *t);
char *ls_schedule_all_to_json (const LsScheduleTable *t);
char *ls_schedule_all_to_csv (const LsScheduleTable *t);

#endif
