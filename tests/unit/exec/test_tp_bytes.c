/* Pins what tensor parallelism sends, counted on the links of an NVSwitch node: per layer, in
 * units of b s h (t - 1) / t elements, 8 without sequence parallelism and 10 with it, because the
 * backward gathers its input again; 8 if it keeps what it gathered; 4 more with full
 * recomputation; and as much in pieces that GEMMs run beside. To the byte. */
#include "ls_test.h"

#include "random_job.h"

#define SEQ    2048
#define HIDDEN 1024

typedef struct {
  uint32_t tp;
  bool sp, saves, overlaps;
  int kind, recompute;
  uint32_t units;
} Case;

static LsModel
model_of (uint32_t n_layers)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  LsModel m = small_model (rand);
  m.n_layers = n_layers;
  m.seq = SEQ;
  m.hidden = HIDDEN;
  m.attention = LS_ATTENTION_FLASH;
  return m;
}

static uint32_t
way_up (const LsCluster *c)
{
  for (uint32_t i = 0; i < ls_cluster_n_resources (c); i++) {
    g_autofree char *name = ls_cluster_resource_name (c, i);
    if (g_strcmp0 (name, "node0/gpu0>nvswitch") == 0)
      return i;
  }
  g_assert_not_reached ();
}

/* What one call puts on the way of member 0 to the NVSwitches. */
static double
bytes_of_call (const LsCluster *c, LsCollKind kind, uint32_t n, uint64_t bytes, uint32_t resource)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  const LsCollPlan *plan = ls_coll_plan (c, &nccl, &request, LS_NETWORK_FLOW, arena);
  double sum = 0;
  for (uint32_t p = 0; p < plan->n_phases; p++)
    for (uint32_t i = 0; i < plan->phases[p].n_loads; i++)
      if (plan->phases[p].loads[i].resource == resource)
        sum += plan->phases[p].demand_bytes * ((double) plan->phases[p].loads[i].coef / (double) (1u << 20));
  return sum;
}

/* On the way of GPU 0 to the NVSwitches in one step, without the gradients of replicated
 * parameters, which are summed at its end. */
static double
bytes_of_step (const Case *k, uint32_t n_layers)
{
  LsModel m = model_of (n_layers);
  LsClusterSpec spec = tiny_dgx (1);
  g_autoptr (LsCluster) c = ls_cluster_build (&spec, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsCalibration calibration;
  LsRunOptions options;
  LsStrategy s;
  ls_calibration_init_roofline (&calibration);
  ls_run_options_init (&options);
  options.n_steps = 1;
  ls_strategy_init (&s);
  s.gpus = s.tp = k->tp;
  s.sp = k->sp;
  s.sp_save_gathered = k->saves;
  s.tp_overlap = k->overlaps;
  s.tp_overlap_kind = k->kind;
  s.recompute = k->recompute;
  double bytes = -1;
  LS_CHECK (ls_strategy_resolve (&s, &m, k->tp, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
  g_autoptr (LsTimeline) t = plan ? ls_run (plan, c, &calibration, &nccl, &options, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  uint32_t up = way_up (c);
  if (t)
    bytes = t->resource_bytes[up];
  for (uint32_t i = 0; t && i < plan->n_segments; i++)
    for (uint32_t o = 0; o < plan->segments[i].n_ops; o++) {
      const LsOp *op = &plan->segments[i].ops[o];
      if (op->kind == LS_OP_COLLECTIVE && op->tag == LS_TAG_SYNC)
        bytes -= bytes_of_call (c, (LsCollKind) op->coll, k->tp, op->bytes, up);
    }
  ls_strategy_clear (&s);
  ls_calibration_clear (&calibration);
  return bytes;
}

static void
bytes_per_layer (void)
{
  static const Case cases[] = {
    { .tp = 2, .units = 8 },
    { .tp = 4, .units = 8 },
    { .tp = 8, .units = 8 },
    { .tp = 4, .sp = true, .units = 10 },
    { .tp = 8, .sp = true, .units = 10 },
    { .tp = 8, .sp = true, .saves = true, .units = 8 },
    { .tp = 8, .recompute = LS_RECOMPUTE_FULL, .units = 12 },
    { .tp = 8, .sp = true, .recompute = LS_RECOMPUTE_FULL, .units = 14 },
    { .tp = 8, .sp = true, .saves = true, .recompute = LS_RECOMPUTE_FULL, .units = 12 },
    { .tp = 8, .sp = true, .recompute = LS_RECOMPUTE_SELECTIVE, .units = 10 },
    { .tp = 8, .sp = true, .overlaps = true, .kind = LS_TP_OVERLAP_BULK, .units = 10 },
    { .tp = 8, .sp = true, .overlaps = true, .kind = LS_TP_OVERLAP_RING, .units = 10 },
    { .tp = 4, .sp = true, .overlaps = true, .kind = LS_TP_OVERLAP_RING, .saves = true, .units = 8 },
    { .tp = 8,
      .sp = true,
      .overlaps = true,
      .kind = LS_TP_OVERLAP_RING,
      .recompute = LS_RECOMPUTE_FULL,
      .units = 14 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint32_t t = cases[i].tp;
    double layer = bytes_of_step (&cases[i], 3) - bytes_of_step (&cases[i], 2);
    double expected = (double) cases[i].units * SEQ * HIDDEN * 2 * (t - 1) / t;
    ls_check_impl (layer == expected, __FILE__, __LINE__, "case %zu: %.17g bytes, expected %.17g", i, layer,
                   expected);
  }
}

LS_TEST_MAIN ("tp_bytes", LS_TEST (bytes_per_layer))
