/* data/launch/emit_target.h — a job that is written for a program (private to data/launch). */
#ifndef LS_DATA_LAUNCH_EMIT_TARGET_H
#define LS_DATA_LAUNCH_EMIT_TARGET_H

#include "data/jobs/emit.h"
#include "data/launch/option_table.h"

typedef struct Emit {
  const LsModel *m;
  const LsStrategy *s;
  const char *title;
  LsDiagList *refusals;
  GString *notes;
} Emit;

/* knob: "--schedule zb-2p", as one would type it; why: of the target. */
void emit_refuse (Emit *e, const char *knob, const char *format, ...) G_GNUC_PRINTF (3, 4);
void emit_note (Emit *e, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Notes that what attention runs is up to a library, where it is not what the program runs by itself. */
void emit_note_attention (Emit *e, const char *library);

#endif
