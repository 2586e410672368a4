/* data/jobs/schedule_cells.h — what data/jobs/read_schedule.c and data/jobs/schedule_comm.c share: the cells
 * of a schedule file. Private to them. */
#ifndef LS_DATA_JOBS_SCHEDULE_CELLS_H
#define LS_DATA_JOBS_SCHEDULE_CELLS_H

#include "schedules/sched_eval.h"

typedef enum {
  LS_CELL_COMPUTE,
  LS_CELL_SEND_F,
  LS_CELL_RECV_F,
  LS_CELL_SEND_B,
  LS_CELL_RECV_B,
  LS_CELL_UNSHARD,
  LS_CELL_RESHARD,
  LS_CELL_REDUCE_GRAD,
} LsCellKind;

typedef struct {
  LsCellKind kind;
  LsActionType type; /* of COMPUTE */
  bool is_paired;    /* of COMPUTE: with the next one */
  uint32_t pipe, stage, mb;
  int column;
} LsCell;

typedef struct {
  char *text;    /* the line */
  int number;    /* from 1 */
  GArray *cells; /* LsCell */
} LsCellLine;

typedef struct {
  const char *file;
  LsDiagList *diags;
  GPtrArray *lines; /* LsCellLine, one a rank */
} LsCellFile;

void ls_cell_complain (const LsCellFile *f, guint line, int column, const char *hint, const char *format, ...)
    G_GNUC_PRINTF (5, 6);

/* data/jobs/schedule_comm.c: sends, receives, parameters and gradients, of orders that can run. */
void ls_cells_check_comm (const LsCellFile *f, const LsLayout *l);

#endif
