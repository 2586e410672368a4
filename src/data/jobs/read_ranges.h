/* data/jobs/read_ranges.h — the axes of a sweep, and files that narrow them: a list of values for each
 * axis that is a key of the file, others keep their range.
 *
 * Every knob of a strategy is an axis but dp, which follows. Those of the enumeration have a range by
 * themselves; all others have the one value of the job unless they are listed.
 *
 *     { "schema": "lockstep.ranges/1", "tp": [1, 2, 4], "pp": [2, 4], "schedule": ["1f1b", "zb-h1"] }
 *
 * A value is that of the key of the same name of a strategy, and is read by its field. */
#ifndef LS_DATA_JOBS_READ_RANGES_H
#define LS_DATA_JOBS_READ_RANGES_H

#include <glib.h>

#include "data/text/field.h"
#include "strategy/strategy.h"

typedef enum {
  LS_SPACE_GPUS,
  LS_SPACE_GLOBAL_BATCH,
  LS_SPACE_TP,
  LS_SPACE_PP,
  LS_SPACE_CP,
  LS_SPACE_EP,
  LS_SPACE_MICRO_BATCH,
  LS_SPACE_VPP,
  LS_SPACE_SCHEDULE,
  LS_SPACE_SP,
  LS_SPACE_ZERO,
  LS_SPACE_DP_KIND,
  LS_SPACE_RECOMPUTE,
  LS_SPACE_TP_OVERLAP,
  LS_N_SPACE_AXES, /* behind it: the other knobs, in the order of ls_strategy_fields */
  LS_MAX_SPACE_AXES = 160,
  LS_NO_SPACE_AXIS = LS_MAX_SPACE_AXES
} LsSpaceAxis;

/* A value of ZeRO holds its group, too: the stage is in the last bits, so that a group has so many ranks at
 * most. */
#define LS_SPACE_STAGE_BITS    2
#define LS_SPACE_MOST_IN_GROUP (UINT32_MAX >> LS_SPACE_STAGE_BITS)

guint ls_space_n_axes (void);

/* The axis of a knob ("micro-batch" or "micro_batch"), or LS_NO_SPACE_AXIS. */
LsSpaceAxis ls_space_axis (const char *knob);
const char *ls_space_axis_name (LsSpaceAxis axis); /* static: "micro_batch" */
/* The same of ls_strategy_fields. */
const LsField *ls_space_axis_field (LsSpaceAxis axis);

typedef struct {
  /* LsStrategy, of which only the axis is set; NULL: the file does not say. Clear each. */
  GArray *values[LS_MAX_SPACE_AXES];
} LsRanges;

/* The keys of such a file; made once, then static. */
const LsField *ls_ranges_fields (void);

/* LS_ERROR_INPUT. On success the caller clears *ret_ranges; on failure it is untouched. */
bool ls_ranges_load (const char *path, LsRanges *ret_ranges, LsDiagList *diags);
bool ls_ranges_read (const LsJsonDoc *doc, LsRanges *ret_ranges, LsDiagList *diags);
/* Of an object with such keys, what the types of values do not say: no list is empty, schedules exist.
 * NULL is an object without keys. */
bool ls_ranges_check_lists (const LsJsonDoc *doc, const cJSON *object, LsDiagList *diags);
void ls_ranges_clear (LsRanges *ranges);

#endif
