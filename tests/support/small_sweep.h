/* small_sweep.h — sweeps over small jobs of tests/golden/data. */
#ifndef LS_TESTS_SMALL_SWEEP_H
#define LS_TESTS_SMALL_SWEEP_H

#include "ls_test.h"
#include "sweep/sweep_state.h"

/* knobs: key, value, ..., NULL; of a key that comes twice the latter holds. */
static inline void
spec_init (LsSweepSpec *spec, const char *const *knobs)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_sweep_spec_init (spec);
  LS_CHECK (ls_sweep_spec_set (spec, "cluster", "pair", diags));
  for (; *knobs; knobs += 2)
    LS_CHECK (ls_sweep_spec_set (spec, knobs[0], knobs[1], diags));
}
#define SPEC_INIT(spec, ...) spec_init ((spec), (const char *const[]) { __VA_ARGS__, NULL })

#define SMALL                                                                                                \
  "model", "tiny", "gpus", "4", "global-batch", "16", "micro-batch", "1,2", "pp", "1,2", "recompute",        \
      "none", "vpp", "1,2", "schedule", "1f1b,interleaved-1f1b", "zero", "0,1", "dp-kind", "megatron"

static inline LsSweepRun *
run (LsSweepSpec *spec)
{
  g_autoptr (GError) error = NULL;
  LsSweepRun *x = ls_sweep_spec_run (spec, &error);
  LS_CHECK_NO_ERROR (error);
  return x;
}

#endif
