/* Pins that programs of one shape are judged as each by itself (plan/plan_check.c), whatever is broken in
 * one of them. */
#include "ls_test.h"
#include "tiny_plan.h"

enum { MANY_ROLES = 4, MANY_SEGMENTS = 3, MANY_OPS = 4, MANY_INSTANCES = 6 };

/* Of each role the same instances, of segments of its own: buffers 0 and 1 come in the first segment and go in
 * the last, where event 0 is waited for that the second records. */
typedef struct {
  LsPlan plan;
  LsSegment segments[MANY_ROLES][MANY_SEGMENTS];
  LsOp ops[MANY_ROLES][MANY_SEGMENTS][MANY_OPS];
  LsBufferEvent buffers[MANY_ROLES][MANY_SEGMENTS][MANY_OPS];
  LsInstance instances[MANY_ROLES][MANY_INSTANCES];
  LsProgram programs[MANY_ROLES];
  LsKernel kernels[1];
  LsBinding bindings[MANY_ROLES];
  uint32_t gpus[MANY_ROLES];
} ManyPlan;

static void
many_segment (ManyPlan *t, uint32_t role, uint32_t s)
{
  for (uint32_t o = 0; o < MANY_OPS; o++) {
    t->buffers[role][s][o]
        = (LsBufferEvent) { .bytes = 100 * (role + 1) + o % 2, .id = (uint16_t) (o % 2), .is_free = s == 2 };
    bool has_buffer = s != 1 && o < 2;
    LsOp op = tiny_kernel ("kernel", has_buffer ? &t->buffers[role][s][o] : NULL);
    if (o == 3 && s > 0)
      op = tiny_op ("event", s == 1 ? LS_OP_RECORD : LS_OP_WAIT, LS_STREAM_COMPUTE);
    t->ops[role][s][o] = op;
  }
  t->segments[role][s] = (LsSegment) { "segment", MANY_OPS, t->ops[role][s] };
}

static void
many_plan_init (ManyPlan *t)
{
  memset (t, 0, sizeof *t);
  for (uint32_t role = 0; role < MANY_ROLES; role++) {
    for (uint32_t s = 0; s < MANY_SEGMENTS; s++)
      many_segment (t, role, s);
    for (uint32_t i = 0; i < MANY_INSTANCES; i++)
      t->instances[role][i] = (LsInstance) { .segment = role * MANY_SEGMENTS + i / 2, .mb = i % 2 };
    t->programs[role]
        = (LsProgram) { .n_instances = MANY_INSTANCES, .instances = t->instances[role], .n_events = 1 };
    t->bindings[role].role = role;
    memset (t->bindings[role].comm, 0xff, sizeof t->bindings[role].comm);
    memset (t->bindings[role].peer, 0xff, sizeof t->bindings[role].peer);
    t->gpus[role] = role;
  }
  t->plan = (LsPlan) { .n_ranks = MANY_ROLES,
                       .n_micro_batches = 2,
                       .n_chunks = 1,
                       .n_segments = MANY_ROLES * MANY_SEGMENTS,
                       .segments = t->segments[0],
                       .n_roles = MANY_ROLES,
                       .programs = t->programs,
                       .n_kernels = 1,
                       .kernels = t->kernels,
                       .bindings = t->bindings,
                       .gpu_of_rank = t->gpus };
}

/* Something in one role is not as in the others, and wrong or not. */
static void
many_damage (ManyPlan *t, GRand *rand, uint32_t role)
{
  uint32_t s = g_rand_boolean (rand) ? 0 : 2, o = (uint32_t) g_rand_int_range (rand, 0, 2);
  LsBufferEvent *buffer = &t->buffers[role][s][o];
  switch (g_rand_int_range (rand, 0, 7)) {
  case 0:
    buffer->bytes++;
    break;
  case 1:
    buffer->id = 5;
    break;
  case 2:
    buffer->category = LS_MEM_GRADIENTS;
    break;
  case 3:
    t->ops[role][s][o].n_buffers = 0;
    break;
  case 4:
    t->instances[role][g_rand_int_range (rand, 0, MANY_INSTANCES)].mb ^= 1;
    break;
  case 5:
    t->ops[role][1][3].event = LS_EVENT_NONE;
    break;
  default: /* right, with bytes that its names do not tell */
    t->buffers[role][0][0].id = t->buffers[role][2][0].id = 1;
    t->buffers[role][0][1].id = t->buffers[role][2][1].id = 0;
  }
}

/* The first role of which the check complains by itself; MANY_ROLES: none. */
static uint32_t
first_wrong_alone (const ManyPlan *t)
{
  for (uint32_t role = 0; role < MANY_ROLES; role++) {
    g_autoptr (GError) error = NULL;
    LsPlan alone = t->plan;
    LsBinding binding = t->bindings[role];
    binding.role = 0;
    alone.n_ranks = alone.n_roles = 1;
    alone.programs += role;
    alone.bindings = &binding;
    if (!ls_plan_check (&alone, &error))
      return role;
  }
  return MANY_ROLES;
}

/* What is said of many programs that are alike, or nearly so, is what is said of each. */
static void
programs_alike_are_judged_as_each_alone (void)
{
  uint32_t n_right = 0, n_wrong = 0;
  for (uint32_t seed = 1; seed <= 200; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    g_autoptr (GError) error = NULL;
    ManyPlan t;
    many_plan_init (&t);
    if (seed > 1)
      many_damage (&t, rand, (uint32_t) g_rand_int_range (rand, 0, MANY_ROLES));
    uint32_t wrong = first_wrong_alone (&t);
    bool is_right = ls_plan_check (&t.plan, &error);
    g_autofree char *role = g_strdup_printf ("(role %u)", wrong);
    LS_CHECK_INT (is_right, ==, wrong == MANY_ROLES);
    LS_CHECK (is_right || strstr (error->message, role) != NULL);
    n_right += is_right;
    n_wrong += !is_right;
  }
  LS_CHECK (n_right > 10 && n_wrong > 100);
}

LS_TEST_SUITE (LS_TEST (programs_alike_are_judged_as_each_alone))
