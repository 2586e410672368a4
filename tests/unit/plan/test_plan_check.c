/* Pins that the checker accepts a legal plan and names each fault: one broken copy of
 * tiny_plan.h for each error that ls_plan_check() can report. */
#include "ls_test.h"
#include "tiny_plan.h"

#include <lockstep/error.h>

typedef struct {
  void (*damage) (TinyPlan *t);
  const char *message; /* "@": `number` */
  uint32_t number;
} Fault;

static void
check_fault (const Fault *fault)
{
  TinyPlan t;
  tiny_plan_init (&t);
  fault->damage (&t);

  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_plan_check (&t.plan, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));

  g_auto (GStrv) parts = g_strsplit (fault->message, "@", 2);
  g_autofree char *number = g_strdup_printf ("%u", fault->number);
  g_autofree char *expected = g_strjoinv (number, parts);
  LS_CHECK_STR (error ? error->message : NULL, expected);
}

#define CHECK_FAULTS(faults)                                                                                 \
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++)                                                          \
    check_fault (&(faults)[i]);

/* A fault reads DAMAGE (what to do to t), and what the checker says. */
#define DAMAGE(name, ...)                                                                                    \
  static void name (TinyPlan *t)                                                                             \
  {                                                                                                          \
    __VA_ARGS__;                                                                                             \
  }

static void
check_legal (const TinyPlan *t)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plan_check (&t->plan, &error));
  LS_CHECK_NO_ERROR (error);
}

/* ---- bindings ---- */

DAMAGE (no_members, t->comms[1].n_ranks = 0)
DAMAGE (no_axis, t->comms[0].axis = LS_N_AXES)
DAMAGE (stranger, t->members[0][1] = 4)
DAMAGE (member_twice, t->members[0][1] = 0)
DAMAGE (no_role, t->bindings[3].role = 2)
DAMAGE (no_comm, t->bindings[1].comm[LS_SLOT_DP] = 2)
DAMAGE (wrong_comm, t->bindings[1].comm[LS_SLOT_DP] = 1)
DAMAGE (wrong_member, t->bindings[1].member[LS_SLOT_DP] = 2)
DAMAGE (peer_of_itself, t->bindings[2].peer[0] = 2)
DAMAGE (peer_out_of_range, t->bindings[0].peer[1] = 4)
DAMAGE (shared_gpu, t->gpus[3] = 1)
DAMAGE (idle_role, for (int i = 0; i < 4; i++) t->bindings[i].role = 0)

static void
faults_of_bindings_are_named (void)
{
  static const Fault faults[] = {
    { no_members, "communicator 1: has no members" },
    { no_axis, "communicator 0: axis @ does not exist", LS_N_AXES },
    { stranger, "communicator 0: member 1 is rank 4, but there are 4 ranks" },
    { member_twice, "communicator 0: rank 0 is a member twice" },
    { no_role, "rank 3: role 2 does not exist" },
    { no_comm, "rank 1: slot dp is bound to communicator 2, but there are 2" },
    { wrong_comm, "rank 1: slot dp says that it is member 1 of communicator 1, which it is not" },
    { wrong_member, "rank 1: slot dp says that it is member 2 of communicator 0, which it is not" },
    { peer_of_itself, "rank 2: the peer at slot prev is rank 2, which is not another rank" },
    { peer_out_of_range, "rank 0: the peer at slot next is rank 4, which is not another rank" },
    { shared_gpu, "rank 3: gpu 1 has a rank already" },
    { idle_role, "role 1: no rank runs it" },
  };
  CHECK_FAULTS (faults)
}

/* ---- indices ---- */

DAMAGE (no_segment, t->instances[1][2].segment = N_SEGMENTS)
DAMAGE (no_micro_batch, t->instances[0][1].mb = 2)
DAMAGE (no_chunk, t->instances[0][1].chunk = 1)
DAMAGE (no_kind, t->ops[F0][0].kind = LS_N_OP_KINDS)
DAMAGE (no_stream, t->ops[F0][0].stream = LS_N_STREAMS)
DAMAGE (no_tag, t->ops[F0][0].tag = LS_N_TAGS)
DAMAGE (no_host_cost, t->ops[F0][0].host = LS_N_HOST_COSTS)
DAMAGE (no_slot, t->ops[STEP][1].slot = LS_N_SLOTS)
DAMAGE (no_dtype, t->ops[STEP][1].dtype = LS_N_DTYPES)
DAMAGE (no_kernel, t->ops[B1][0].kernel = 1)
DAMAGE (no_shape_and_no_duration, t->ops[B1][0].kernel = UINT32_MAX)
DAMAGE (negative_duration, t->ops[B1][0].recorded = -1)
DAMAGE (endless_delay, t->ops[STEP][2].kind = LS_OP_HOST_DELAY)
DAMAGE (collective_with_peer, t->ops[STEP][1].slot = LS_SLOT_NEXT)
DAMAGE (empty_group, t->ops[F1][0].n_transfers = 0)
DAMAGE (kernel_that_sends, t->ops[F0][1].kind = LS_OP_KERNEL; t->ops[F0][1].kernel = 0)
DAMAGE (transfer_in_group, t->from_prev[0].slot = LS_SLOT_TP)
DAMAGE (no_category, t->alloc[0].category = LS_N_MEM)
DAMAGE (no_instant, t->alloc[0].when = LS_AT_END + 1)

static void
faults_of_indices_are_named (void)
{
  static const Fault faults[] = {
    { no_segment, "rank 2 (role 1), instance 2: segment @ does not exist", N_SEGMENTS },
    { no_micro_batch, "rank 0 (role 0), instance 1: micro-batch 2 does not exist" },
    { no_chunk, "rank 0 (role 0), instance 1: chunk 1 does not exist" },
    { no_kind,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "kind @ does not exist",
      LS_N_OP_KINDS },
    { no_stream,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "stream @ does not exist",
      LS_N_STREAMS },
    { no_tag,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "tag @ does not exist",
      LS_N_TAGS },
    { no_host_cost,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "host cost @ does not exist",
      LS_N_HOST_COSTS },
    { no_slot,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "slot @ does not exist",
      LS_N_SLOTS },
    { no_dtype,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "dtype @ does not exist",
      LS_N_DTYPES },
    { no_kernel,
      "rank 2 (role 1), instance 1 (backward 1, micro-batch 0, chunk 0), op 0 (layer gradient): "
      "kernel 1 does not exist" },
    { no_shape_and_no_duration,
      "rank 2 (role 1), instance 1 (backward 1, micro-batch 0, chunk 0), op 0 (layer gradient): "
      "kernel 4294967295 does not exist" },
    { negative_duration,
      "rank 2 (role 1), instance 1 (backward 1, micro-batch 0, chunk 0), op 0 (layer gradient): "
      "its recorded duration is negative" },
    { endless_delay,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 2 (adam): "
      "a host delay needs a recorded duration" },
    { collective_with_peer,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "a collective cannot use slot next" },
    { empty_group,
      "rank 2 (role 1), instance 0 (forward 1, micro-batch 0, chunk 0), op 0 (receive activation): "
      "0 transfers; a p2p group has some and no other op has any" },
    { kernel_that_sends,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 1 (send activation): "
      "1 transfers; a p2p group has some and no other op has any" },
    { transfer_in_group,
      "rank 2 (role 1), instance 0 (forward 1, micro-batch 0, chunk 0), op 0 (receive activation): "
      "transfer 0: slot 0 is neither prev nor next" },
    { no_category,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "buffer 7: category @ does not exist",
      LS_N_MEM },
    { no_instant,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "buffer 7: instant @ does not exist",
      LS_AT_END + 1 },
  };
  CHECK_FAULTS (faults)
}

/* ---- dependencies, events, slots ---- */

DAMAGE (no_dep_kind, t->after_first[0].kind = LS_DEP_STREAM + 1)
DAMAGE (no_dep_stream, t->after_compute[0].index = LS_N_STREAMS)
DAMAGE (after_itself, t->after_first[0].index = 1)
DAMAGE (issue_after_later, t->after_first[0] = ((LsDep) { LS_DEP_ISSUE, 2 }))
DAMAGE (no_event, t->ops[B0][2].event = 1)
DAMAGE (unrecorded, t->ops[B0][2].kind = LS_OP_HOST_SYNC)
DAMAGE (other_micro_batch, t->instances[1][3].mb = 0; t->instances[1][1].mb = 0)
DAMAGE (unbound_dp, t->bindings[3].comm[LS_SLOT_DP] = UINT32_MAX)
DAMAGE (root_of_nobody, t->ops[STEP][1].root = 2)
DAMAGE (unbound_next, t->bindings[1].peer[1] = UINT32_MAX)

static void
faults_of_dependencies_and_slots_are_named (void)
{
  static const Fault faults[] = {
    { no_dep_kind,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 1 (send activation): "
      "dependency 0: kind @ does not exist",
      LS_DEP_STREAM + 1 },
    { no_dep_stream,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "dependency 0: stream @ does not exist",
      LS_N_STREAMS },
    { after_itself,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 1 (send activation): "
      "dependency 0: op 1 does not come before it" },
    { issue_after_later,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 1 (send activation): "
      "dependency 0: op 2 does not come before it" },
    { no_event,
      "rank 0 (role 0), instance 2 (backward 0, micro-batch 0, chunk 0), op 2 (gradient ready): "
      "event 1 does not exist: the program has 1" },
    { unrecorded,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 0 (await gradient): "
      "waits for event 0, which nothing before it records for this micro-batch and chunk" },
    { unbound_dp,
      "rank 3 (role 1), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "slot dp is not bound" },
    { root_of_nobody,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "root 2 does not exist: communicator 0 has 2 members" },
    { unbound_next,
      "rank 1 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 1 (send activation): "
      "slot next is not bound" },
  };
  CHECK_FAULTS (faults)
}

/* ---- buffers ---- */

DAMAGE (freed_twice, t->ops[STEP][2].buffers = t->release; t->ops[STEP][2].n_buffers = 1)
DAMAGE (allocated_twice, t->instances[0][1].mb = 0)
DAMAGE (never_freed, t->ops[B1][0].n_buffers = 0)
DAMAGE (other_size, t->release[0].bytes = 99)
DAMAGE (other_category, t->release[0].category = LS_MEM_WORKSPACE)

static void
faults_of_buffers_are_named (void)
{
  static const Fault faults[] = {
    { freed_twice,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 2 (adam): "
      "frees buffer 7, which is not alive" },
    { other_micro_batch,
      "rank 2 (role 1), instance 3 (backward 1, micro-batch 0, chunk 0), op 0 (layer gradient): "
      "frees buffer 7, which is not alive" },
    { allocated_twice,
      "rank 0 (role 0), instance 1 (forward 0, micro-batch 0, chunk 0), op 0 (layer): "
      "allocates buffer 7, which is alive since instance 0, op 0" },
    { never_freed,
      "rank 2 (role 1), instance 0 (forward 1, micro-batch 0, chunk 0), op 1 (layer): "
      "buffer 7 (100 bytes of activations) is never freed" },
    { other_size,
      "rank 0 (role 0), instance 2 (backward 0, micro-batch 0, chunk 0), op 1 (layer gradient): "
      "frees buffer 7 as 99 bytes of activations; allocated as 100 of activations" },
    { other_category,
      "rank 0 (role 0), instance 2 (backward 0, micro-batch 0, chunk 0), op 1 (layer gradient): "
      "frees buffer 7 as 100 bytes of workspace; allocated as 100 of activations" },
  };
  CHECK_FAULTS (faults)
}

/* ---- what ranks owe each other ---- */

/* Data groups {0, 2} {1, 3}, so that members have different roles. */
static void
regroup (TinyPlan *t)
{
  for (uint32_t rank = 0; rank < 4; rank++) {
    t->bindings[rank].comm[LS_SLOT_DP] = rank % 2;
    t->bindings[rank].member[LS_SLOT_DP] = rank / 2;
    t->members[rank % 2][rank / 2] = rank;
  }
}

/* In role 1 each forward makes a call of its own. */
static void
give_role_1_a_call (TinyPlan *t, LsOp call)
{
  regroup (t);
  t->ops[F1][2] = call;
  t->segments[F1].n_ops = 3;
}

DAMAGE (one_call_more, give_role_1_a_call (t, t->ops[STEP][1]))
DAMAGE (one_call_less, regroup (t); t->programs[1].n_instances = 4)
DAMAGE (call_of_other_bytes, give_role_1_a_call (t, t->ops[STEP][1]); t->ops[F1][2].bytes = 1)
DAMAGE (call_of_other_kind, give_role_1_a_call (t, t->ops[STEP][1]); t->ops[F1][2].coll = 1)
DAMAGE (call_of_other_dtype, give_role_1_a_call (t, t->ops[STEP][1]); t->ops[F1][2].dtype = LS_DTYPE_BF16)
DAMAGE (call_of_other_root, give_role_1_a_call (t, t->ops[STEP][1]); t->ops[F1][2].root = 1)
DAMAGE (send_of_other_bytes, t->to_next[0].bytes = 999)
DAMAGE (send_without_receive, t->ops[F1][0].kind = LS_OP_HOST_SYNC; t->ops[F1][0].n_transfers = 0)
DAMAGE (receive_without_send, t->ops[B1][1].kind = LS_OP_HOST_SYNC; t->ops[B1][1].n_transfers = 0)

static void
calls_that_differ_are_named (void)
{
#define CALL_AT                                                                                              \
  "rank 2 (role 1), instance 0 (forward 1, micro-batch 0, chunk 0), op 2 (all-reduce): "                     \
  "call 0 on communicator 0 is "
#define EXPECTED "; rank 0 makes it (instance 4, op 1, all-reduce) kind 0 of 4096 bytes of fp32, root 0"
  static const Fault faults[] = {
    { one_call_more,
      "rank 2 (role 1), instance 2 (forward 1, micro-batch 1, chunk 0), op 2 (all-reduce): "
      "call 1 on communicator 0, which rank 0 never makes" },
    { one_call_less,
      "rank 0 (role 0), instance 4 (step, micro-batch 1, chunk 0), op 1 (all-reduce): "
      "call 0 on communicator 0, which rank 2 never makes" },
    { call_of_other_bytes, CALL_AT "kind 0 of 1 bytes of fp32, root 0" EXPECTED },
    { call_of_other_kind, CALL_AT "kind 1 of 4096 bytes of fp32, root 0" EXPECTED },
    { call_of_other_dtype, CALL_AT "kind 0 of 4096 bytes of bf16, root 0" EXPECTED },
    { call_of_other_root, CALL_AT "kind 0 of 4096 bytes of fp32, root 1" EXPECTED },
  };
  CHECK_FAULTS (faults)
}

static void
sends_that_miss_their_receives_are_named (void)
{
  static const Fault faults[] = {
    { send_of_other_bytes,
      "rank 2 (role 1), instance 0 (forward 1, micro-batch 0, chunk 0), op 0 (receive activation): "
      "receive 0 from rank 0 is 1000 bytes; that rank sends (instance 0, op 1, send activation) 999" },
    { send_without_receive,
      "rank 0 (role 0), instance 0 (forward 0, micro-batch 0, chunk 0), op 1 (send activation): "
      "send 0 to rank 2, of 1000 bytes, which that rank never receives" },
    { receive_without_send,
      "rank 0 (role 0), instance 2 (backward 0, micro-batch 0, chunk 0), op 0 (receive gradient): "
      "receive 0 from rank 2, of 1000 bytes, which that rank never sends" },
  };
  CHECK_FAULTS (faults)
}

/* ---- legal plans ---- */

static void
a_legal_plan_passes (void)
{
  TinyPlan t;
  tiny_plan_init (&t);
  check_legal (&t);
  regroup (&t); /* members of different roles that make the same calls */
  check_legal (&t);
}

/* A recorded kernel may lack a shape (a trace that does not tell it). */
static void
a_kernel_with_a_duration_needs_no_shape (void)
{
  TinyPlan t;
  tiny_plan_init (&t);
  t.ops[B1][0].kernel = UINT32_MAX;
  t.ops[B1][0].recorded = LS_US;
  check_legal (&t);
}

/* pp 2 with several chunks: the rank before and the rank behind are one, but what
 * goes forward and what goes back are two sequences. */
static void
both_neighbours_may_be_one_rank (void)
{
  TinyPlan t;
  tiny_plan_init (&t);
  for (uint32_t rank = 0; rank < 4; rank++)
    t.bindings[rank].peer[0] = t.bindings[rank].peer[1] = (rank + 2) % 4;
  check_legal (&t);
  t.to_prev[0].slot = LS_SLOT_NEXT;
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_plan_check (&t.plan, &error));
  LS_CHECK (error
            && strstr (error->message, "send 0 to rank 0, of 1000 bytes, which that rank never receives")
                != NULL);
}

/* Two slots on one communicator are one sequence of calls: one member may name each
 * call by the other slot. */
static void
slots_on_one_communicator_are_one_sequence (void)
{
  TinyPlan t;
  tiny_plan_init (&t);
  give_role_1_a_call (&t, t.ops[STEP][1]);
  t.ops[F0][2] = t.ops[F1][2];
  t.segments[F0].n_ops = 3;
  t.ops[F1][2].slot = LS_SLOT_WORLD;
  for (uint32_t rank = 0; rank < 4; rank++) {
    t.bindings[rank].comm[LS_SLOT_WORLD] = t.bindings[rank].comm[LS_SLOT_DP];
    t.bindings[rank].member[LS_SLOT_WORLD] = t.bindings[rank].member[LS_SLOT_DP];
  }
  check_legal (&t);
}

/* The first step begins with F0 of micro-batch 0, all others with what the one before left. */
static void
what_a_step_begins_with_it_leaves (void)
{
  static const LsInstance carried[]
      = { { F0, 0, 0, 0 }, { F0, 1, 0, 0 }, { B0, 0, 0, 0 }, { F0, 0, 0, 0 }, { B0, 1, 0, 0 } };
  TinyPlan t;
  tiny_plan_init (&t);
  g_autoptr (GError) error = NULL;
  memcpy (t.instances[0], carried, sizeof carried);
  t.programs[0].n_lead = 1;
  LS_CHECK (!ls_plan_check (&t.plan, &error)); /* rank 2 receives two forwards, not three */
  LS_CHECK (error && strstr (error->message, "never receives"));
  g_clear_error (&error);
  t.instances[0][3] = (LsInstance) { STEP, 0, 0, 0 };
  LS_CHECK (!ls_plan_check (&t.plan, &error));
  LS_CHECK (
      error
      && strstr (error->message, "is alive when the first step begins, but not when the next one does"));
  g_clear_error (&error);
  t.programs[0].n_lead = 5;
  LS_CHECK (!ls_plan_check (&t.plan, &error));
  LS_CHECK (error && strstr (error->message, "5 of its 5 instances are for the first step only"));
}

LS_TEST_SUITE (LS_TEST (a_legal_plan_passes), LS_TEST (what_a_step_begins_with_it_leaves),
               LS_TEST (a_kernel_with_a_duration_needs_no_shape), LS_TEST (both_neighbours_may_be_one_rank),
               LS_TEST (slots_on_one_communicator_are_one_sequence), LS_TEST (faults_of_bindings_are_named),
               LS_TEST (faults_of_indices_are_named), LS_TEST (faults_of_dependencies_and_slots_are_named),
               LS_TEST (faults_of_buffers_are_named), LS_TEST (calls_that_differ_are_named),
               LS_TEST (sends_that_miss_their_receives_are_named))
