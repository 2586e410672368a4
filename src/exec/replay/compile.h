/* exec/replay/compile.h — what is known before the clock starts: segments as the replay wants them
 * (private). */
#ifndef LS_EXEC_REPLAY_COMPILE_H
#define LS_EXEC_REPLAY_COMPILE_H

#include "compute/cost.h"
#include "core/flow.h"
#include "network/coll.h"
#include "plan/plan.h"

typedef struct Run Run;

#define NO_OP UINT16_MAX
#define NO_ID UINT32_MAX

/* An op as the replay wants it; the LsOp beside it has the rest. */
typedef struct {
  LsTime alone;     /* kernel: its time with the GPU to itself                  */
  LsTime host;      /* what issuing it costs                                    */
  LsTime host_rest; /* what issuing those that it repeats costs, behind it     */
  const LsDep *deps;
  uint32_t cost; /* kernels: index into Run.costs                            */
  uint16_t n_deps;
  uint16_t next; /* following op of the same stream, or NO_OP                */
  uint16_t call; /* ordinal among the calls on its slot within the segment   */
  uint8_t kind, stream, slot;
  uint8_t takes;   /* LsOpTakes of its kind */
  bool host_waits; /* of its kind           */
} XOp;

typedef struct XSegment {
  uint32_t n_ops;
  const LsOp *ops;
  XOp *x;
  uint32_t n_ahead; /* the first ops, up to one of the host's own: they wait for nothing to be issued */
  LsTime *issued;   /* [n_ahead + 1] since the first is begun: when each is; last, when the host goes on */
  uint16_t first[LS_N_STREAMS];
  uint16_t n_calls[LS_N_SLOTS];
  uint32_t n_spans;
} XSegment;

/* What kernels of one kind of node take (LsClusterSpec.others). */
typedef struct {
  const LsGpu *gpu; /* NULL: no rank is on such a node           */
  const LsAround *around;
  LsGemms gemms;       /* how GEMMs of its jobs lie on the SMs             */
  LsKernelCost *costs; /* [n_kernels]                              */
  XSegment *segments;  /* [n_segments], the same but for their times */
} XKind;

gboolean run_compile (Run *x, GError **error);
/* The calls of all communicators, channels and copy engines, each once. Errors as of call_plan(). */
gboolean run_plan_calls (Run *x, GError **error);

#endif
