/* show/write_schedule_all.h — pipeline schedules beside each other, for people and for
 * programs. */
#ifndef LS_SHOW_WRITE_SCHEDULE_ALL_H
#define LS_SHOW_WRITE_SCHEDULE_ALL_H

#include "ask/schedule.h"
#include "show/write_schedule.h"

/* Newly allocated, ending in a newline. Whether a row fits is told where there is a limit. */
char *ls_schedule_all_to_text (const LsScheduleTable *t);
char *ls_schedule_all_to_json (const LsScheduleTable *t);
char *ls_schedule_all_to_csv (const LsScheduleTable *t);

#endif
