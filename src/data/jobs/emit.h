/* data/jobs/emit.h — a job as another program is told to run it.
 *
 * Each program is a map in strategies/programs, and a row in launch/launch_emit.c. What it cannot express
 * is refused, naming the knob; what it expresses elsewhere than in this fragment is a note. */
#ifndef LS_DATA_JOBS_EMIT_H
#define LS_DATA_JOBS_EMIT_H

#include <glib.h>

#include "model/model.h"
#include "strategy/strategy.h"

typedef struct {
  const LsModel *model;
  const LsStrategy *strategy; /* resolved */
  const char *order;          /* file with an order of the pipeline of its own; NULL: none */
  const char *title;          /* "llama3.1-8b on 8 GPUs of dgx-h100" */
} LsEmitJob;

/* "megatron", "torchtitan", "deepspeed", NULL at the end; static. */
const char *const *ls_emit_targets (void);

/* LS_ERROR_USAGE: there is no such target. */
gboolean ls_emit_check_target (const char *target, GError **error);

/* Whether ls_emit() would do it, with its errors. */
gboolean ls_emit_check (const LsEmitJob *job, const char *target, GError **error);

/* The fragment, newly allocated, ends in a newline. *ret_notes: a line each, "" if there are
 * none. LS_ERROR_UNSUPPORTED: with every knob that the target cannot express; LS_ERROR_USAGE. */
char *ls_emit (const LsEmitJob *job, const char *target, char **ret_notes, GError **error);

#endif
