/* Pins the formulas of the papers that a run's memory is laid beside: model states of
 * ZeRO, activations of Korthikanti et al. and how many layers' worth a rank holds. */
#include "analysis/memory_formulas.h"

#include <math.h>

#include "ls_test.h"
#include "model_shapes.h"

#define GIB 1073741824.0
#define GB  1e9

static LsStrategy
strategy (uint32_t tp, uint32_t pp, uint32_t vpp, uint32_t micro_batch, uint32_t n_micro_batches)
{
  const char *schedule = vpp > 1 ? "interleaved-1f1b" : pp > 1 ? "1f1b" : "none";
  return (LsStrategy) {
    .tp = tp,
    .pp = pp,
    .vpp = vpp,
    .cp = 1,
    .ep = 1,
    .dp = 1,
    .micro_batch = micro_batch,
    .global_batch = micro_batch * n_micro_batches,
    .schedule = (char *) schedule,
    .dtype = LS_DTYPE_FP16,
    .grad_dtype = LS_DTYPE_FP16,
    .attention = LS_ATTENTION_UNFUSED,
  };
}

/* Rajbhandari et al. 2020, figure 1: 7.5e9 parameters, 64 ranks, K = 12. */
static void
model_states_are_those_of_zero (void)
{
  static const double gb[] = { 120, 31.4, 16.6, 1.9 };
  LsModel m = gpt (36, 4096, 32);
  for (uint32_t stage = 0; stage < 4; stage++) {
    LsStrategy s = strategy (1, 1, 1, 1, 1);
    s.dp = 64;
    s.zero_stage = stage;
    LsMemoryFormula f = ls_memory_formula (&m, &s, 0, UINT64_C (7500000000));
    LS_CHECK_NEAR ((f.parameters + f.gradients + f.optimizer) / GB, gb[stage], 0.02);
  }
}

/* actG-* (tests/README.md): first stage, no recomputation, and selective with SP. */
static void
activations_of_the_first_stage_are_the_published (void)
{
  static const struct {
    uint32_t layers, hidden, heads, pp, vpp, micro_batch;
    double none_gib, both_gib;
  } rows[] = {
    { 48, 6144, 64, 1, 1, 4, 59.25, 9.5625 },
    { 96, 12288, 96, 8, 3, 1, 66.84375, 12.3515625 },
    { 105, 20480, 128, 35, 3, 1, 114.0234375, 23.076171875 },
    { 128, 25600, 160, 64, 1, 1, 131.25, 26.5625 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsModel m = gpt (rows[i].layers, rows[i].hidden, rows[i].heads);
    LsStrategy s = strategy (8, rows[i].pp, rows[i].vpp, rows[i].micro_batch, rows[i].pp == 1 ? 1 : 512);
    LS_CHECK_NEAR (ls_memory_formula (&m, &s, 0, 0).activations / GIB, rows[i].none_gib, 1e-6);
    s.sp = true;
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    LS_CHECK_NEAR (ls_memory_formula (&m, &s, 0, 0).activations / GIB, rows[i].both_gib, 1e-6);
  }
}

/* Flash attention keeps what selective recomputation does; full recomputation 2 s b h. */
static void
recipes_keep_what_table_2_says (void)
{
  LsModel m = gpt (48, 6144, 64);
  LsStrategy s = strategy (8, 1, 1, 4, 1);
  double sbh = 2048.0 * 4 * 6144;
  s.attention = LS_ATTENTION_FLASH;
  LS_CHECK_NEAR (ls_layer_activation_bytes (&m, &s), sbh * 13, 1e-12);
  s.sp = true;
  LS_CHECK_NEAR (ls_layer_activation_bytes (&m, &s), sbh * 34 / 8, 1e-12);
  s.recompute = LS_RECOMPUTE_FULL;
  LS_CHECK_NEAR (ls_layer_activation_bytes (&m, &s), sbh * 2, 1e-12);
}

static void
stages_hold_fewer_micro_batches_down_the_pipeline (void)
{
  LsModel m = gpt (96, 12288, 96);
  LsStrategy s = strategy (8, 8, 1, 1, 64);
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 0), ==, 8 * 12);
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 7), ==, 12);
  s.global_batch = 3; /* fewer than stages */
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 0), ==, 3 * 12);
  s = strategy (8, 8, 3, 1, 64);
  LS_CHECK_NEAR (ls_layers_held (&m, &s, 0), 96 * (1 + 7.0 / 24), 1e-12);
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 7), ==, 4 * 17);
  s.schedule = (char *) "gpipe";
  s.vpp = 1;
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 0), ==, 64 * 12);
  s.schedule = (char *) "zb-h1";
  LS_CHECK (isnan (ls_layers_held (&m, &s, 0)));
}

static void
other_models_have_no_formula (void)
{
  LsModel m = gpt (48, 6144, 64);
  LsStrategy s = strategy (8, 1, 1, 1, 1);
  m.mlp = LS_MLP_SWIGLU;
  LS_CHECK (isnan (ls_layer_activation_bytes (&m, &s)));
  LS_CHECK (!isnan (ls_memory_formula (&m, &s, 0, 1000).optimizer));
  s.lora_rank = 8;
  LS_CHECK (isnan (ls_memory_formula (&m, &s, 0, 1000).parameters)); /* most of which do not learn */
  m.mlp = LS_MLP_GELU;
  LS_CHECK (isnan (ls_layer_activation_bytes (&m, &s)));
}

LS_TEST_SUITE (LS_TEST (model_states_are_those_of_zero),
               LS_TEST (activations_of_the_first_stage_are_the_published),
               LS_TEST (recipes_keep_what_table_2_says),
               LS_TEST (stages_hold_fewer_micro_batches_down_the_pipeline),
               LS_TEST (other_models_have_no_formula))
