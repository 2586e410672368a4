/* data/launch/emit_target.h — what an emit_X.c is made of (private to jobs/). */
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

/* A program: what its fragment says is in the table that reads it too. */
typedef struct {
  const char *name;    /* "megatron"    */
  const char *program; /* "Megatron-LM" */
  const OptionTable *table;
  OptionSyntax syntax;
  const char *array;       /* of a shell, that has the arguments; NULL: of another syntax */
  void (*check) (Emit *e); /* refuses what the program does not have, and notes what is said elsewhere */
  const char *map;         /* which has the table and the check; NULL: both are in C */
  bool is_megatron;        /* of which others refuse what is written for it only */
} EmitTarget;

/* knob: "--schedule zb-2p", as one would type it; why: of the target. */
void emit_refuse (Emit *e, const char *knob, const char *format, ...) G_GNUC_PRINTF (3, 4);
void emit_note (Emit *e, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Refuses what is written for Megatron-LM only, and notes its padding of words. */
void emit_refuse_megatrons (Emit *e);

/* Notes that what attention runs is up to a library, where it is not what the program runs by itself. */
void emit_note_attention (Emit *e, const char *library);

/* Whether there is a pipeline. Without one it refuses chunks and schedules. */
bool emit_has_pipeline (Emit *e, const char *program);

#endif
