/* train/train_steps.h — the steps that train/train.c takes (private). */
#ifndef LS_TRAIN_TRAIN_STEPS_H
#define LS_TRAIN_TRAIN_STEPS_H

#include "train/train.h"

/* --- train_phases.c ---------------------------------------------------------------------------------- */

/* Before anything is loaded: LS_ERROR_USAGE, a run or a phase without a size, a ramp that does not come
 * out. */
gboolean ls_train_check (const LsTrainSpec *spec, GError **error);

/* A step of each phase, simulated; r->goal is known. Fills phases, job, GPUs and nodes. Errors: the same,
 * those of a job, LS_ERROR_CONFLICT for phases on different GPUs. */
gboolean ls_train_simulate (LsTrainReport *r, const LsTrainSpec *spec, GError **error);

/* Of so many steps of a phase: the tokens that small batches would need for as much. */
double ls_train_small_batch_tokens (const LsTrainReport *r, const LsTrainPhase *p, double steps);

/* The phases as a history runs them, newly allocated. */
LsRunPhase *ls_train_run_phases (const LsTrainReport *r);

/* --- train_checkpoints.c ------------------------------------------------------------------------------ */

/* What of a job on so many GPUs may fail; of nodes as many as there would be of those that were counted. */
LsJobUnits ls_train_units (const LsReliability *reliability, const LsClusterSpec *cluster, uint32_t n_gpus);

/* What a checkpoint of a job holds: of what learns. What a trace does not know of its model, each rank writes
 * of its own. */
double ls_train_checkpoint_bytes_of (const LsJobResult *job);

/* Fills r->checkpoint but for the interval: bytes, times, the best intervals. plan: reliability and units.
 * LS_ERROR_CONFLICT: no drives, or no other node, to save to. */
gboolean ls_train_checkpoint (LsTrainReport *r, const LsTrainSpec *spec, const LsRunPlan *plan,
                              GError **error);

/* How many steps of each phase there are from a checkpoint to the next. */
void ls_train_set_every (LsTrainReport *r, const LsEvery *every, LsRunPhase *phases);
/* The same as one types it for all phases, "19660.412s", or so many of the last: "500". Newly allocated. */
char *ls_train_every_text (const LsTrainReport *r, const LsEvery *every);

/* The interval of the run, and what is expected of it in closed form. */
void ls_train_expect (LsTrainReport *r, const LsRunPlan *plan);

/* --- train_spec.c ------------------------------------------------------------------------------------- */

extern const LsField ls_train_fields[]; /* knobs of a run that are not its job's, of an LsTrainSpec */

#endif
