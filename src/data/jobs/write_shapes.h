/* data/jobs/write_shapes.h — the kernels of a plan as a list to be timed (lockstep.shapes/1), which
 * tools/kernelbench --shapes reads. */
#ifndef LS_DATA_JOBS_WRITE_SHAPES_H
#define LS_DATA_JOBS_WRITE_SHAPES_H

#include "plan/plan.h"

/* Each kernel once, in the order of the plan, as a trace has it (src/manual/formats/trace.md), with the tag
 * of the first op that runs it: of a product it says which operands are transposed. Kernels that
 * no op runs are left out. source: what the plan is of. Newly allocated JSON text. */
char *ls_shapes_to_json (const LsPlan *plan, const char *source);

#endif
