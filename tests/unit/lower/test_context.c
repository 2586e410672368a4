/* What PyTorch's context parallelism exchanges: counts and bytes by hand. */
#include "fixtures.h"

typedef struct {
  guint n;
  uint64_t bytes;
} Calls;

static Calls
calls_of (const LsPlan *plan, const char *name)
{
  Calls c = { 0 };
  for (uint32_t i = 0; i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      if (strcmp (seg->ops[o].name, name) == 0) {
        c.n++;
        c.bytes = seg->ops[o].bytes;
      }
  }
  return c;
}

/* 4 layers, 1 micro-batch of 2 sequences of 128 tokens, 64 of each on a rank; heads are 256 wide together, keys half
 * of that: those of all heads move. Each layer gathers twice, or sends keys and values twice; gradients in fp32
 * go on behind both steps. */
static void
pytorch_moves_keys_of_all_heads (void)
{
  const uint64_t kv = 2 * 2 * 64 * 256 * 2;
  for (int is_gathered = 0; is_gathered < 2; is_gathered++) {
    LsModel m = model;
    m.n_kv_heads = 2;
    m.attention = LS_ATTENTION_FLASH;
    m.dropout = false;
    LsStrategy s = job (1, 1);
    s.cp = s.gpus = 2;
    s.global_batch = 2;
    s.dp_kind = LS_DP_FSDP2;
    s.mp.cp_kind = is_gathered ? LS_CP_ALL_GATHER : LS_CP_RING;
    s.mp.cp_steps = LS_CP_STEPS_PYTORCH;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    ls_strategy_clear (&s);
    if (!LS_CHECK (plan != NULL))
      return;
    Calls gathers = calls_of (plan, "kv all-gather"), sends = calls_of (plan, "kv permute"),
          grads = calls_of (plan, "kv grad permute");
    LS_CHECK_INT (gathers.n, ==, is_gathered ? 4 * 2 : 0);
    LS_CHECK_INT (sends.n, ==, is_gathered ? 0 : 4 * 2);
    LS_CHECK_INT (is_gathered ? gathers.bytes : 2 * sends.bytes, ==, 2 * kv);
    LS_CHECK_INT (grads.n, ==, 4 * 2);
    LS_CHECK_INT (grads.bytes, ==, 2 * kv);
    LS_CHECK_INT (calls_of (plan, "attention-merge").n, ==, 4 * 2);
    LS_CHECK_INT (calls_of (plan, "kv-grad-cast").n, ==, 4);
    Sums sums = sums_of (plan, 0);
    LS_CHECK_INT (sums.allocated, ==, sums.freed);
  }
}

LS_TEST_SUITE (LS_TEST (pytorch_moves_keys_of_all_heads))
