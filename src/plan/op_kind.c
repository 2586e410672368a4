#include "plan/plan.h"

static char *
kernel_fault (const LsPlan *plan, const LsOp *op)
{
  if (op->kernel < plan->n_kernels || (op->kernel == UINT32_MAX && op->recorded != LS_TIME_NEVER))
    return NULL;
  return g_strdup_printf ("kernel %u does not exist", op->kernel);
}

static char *
collective_fault (const LsPlan *plan, const LsOp *op)
{
  (void) plan;
  return ls_slot_is_peer (op->slot)
      ? g_strdup_printf ("a collective cannot use slot %s", ls_slot_names[op->slot].name)
      : NULL;
}

static char *
copy_fault (const LsPlan *plan, const LsOp *op)
{
  (void) plan;
  if (op->direction < LS_N_COPY_DIRECTIONS)
    return NULL;
  return g_strdup_printf ("direction %u: a copy has one of %d", op->direction, LS_N_COPY_DIRECTIONS);
}

static char *
delay_fault (const LsPlan *plan, const LsOp *op)
{
  (void) plan;
  return op->recorded == LS_TIME_NEVER ? g_strdup ("a host delay needs a recorded duration") : NULL;
}

const LsEnumName ls_op_kind_names[LS_N_OP_KINDS + 1] = {
  [LS_OP_KERNEL] = { "kernel", LS_OP_KERNEL },
  [LS_OP_COLLECTIVE] = { "collective", LS_OP_COLLECTIVE },
  [LS_OP_P2P] = { "p2p", LS_OP_P2P },
  [LS_OP_COPY] = { "copy", LS_OP_COPY },
  [LS_OP_RECORD] = { "record", LS_OP_RECORD },
  [LS_OP_WAIT] = { "wait", LS_OP_WAIT },
  [LS_OP_HOST_SYNC] = { "host-sync", LS_OP_HOST_SYNC },
  [LS_OP_HOST_DELAY] = { "host-delay", LS_OP_HOST_DELAY },
};

/* clang-format off */
const LsOpKindRow ls_op_kinds[LS_N_OP_KINDS] = {
  [LS_OP_KERNEL] = { LS_TAKES_GPU,
    .has = LS_HAS_KERNEL | LS_HAS_RECORDED | LS_HAS_BESIDE | LS_HAS_REPEAT | LS_HAS_GRAPH,
    .needs = LS_HAS_KERNEL | LS_HAS_RECORDED,
    .lacking = "a kernel needs a shape (\"kernel\") or a time (\"recorded\")",
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_F, .host = LS_HOST_LAUNCH, .fault = kernel_fault },
  [LS_OP_COLLECTIVE] = { LS_TAKES_NETWORK, .has = LS_HAS_CALL | LS_HAS_BYTES,
    .needs = LS_HAS_CALL, .lacking = "a collective needs \"slot\" and \"coll\"",
    .stream = LS_STREAM_GLOBAL, .tag = LS_TAG_SYNC, .host = LS_HOST_COMM, .fault = collective_fault },
  [LS_OP_P2P] = { LS_TAKES_NETWORK, .has = LS_HAS_TRANSFERS, .needs = LS_HAS_TRANSFERS,
    .lacking = "a p2p needs \"transfers\"",
    .stream = LS_STREAM_PP_FWD, .tag = LS_TAG_SYNC, .host = LS_HOST_COMM },
  [LS_OP_COPY] = { LS_TAKES_ENGINE, .has = LS_HAS_RECORDED | LS_HAS_BYTES | LS_HAS_DIRECTION,
    .stream = LS_STREAM_COPY, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE, .fault = copy_fault },
  [LS_OP_RECORD] = { LS_TAKES_NOTHING, .records = true, .has = LS_HAS_EVENT,
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE },
  [LS_OP_WAIT] = { LS_TAKES_NOTHING, .has = LS_HAS_EVENT, .needs = LS_HAS_EVENT,
    .lacking = "a wait needs an \"event\"",
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE },
  [LS_OP_HOST_SYNC] = { LS_TAKES_HOST, .host_waits = true,
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_SYNC },
  [LS_OP_HOST_DELAY] = { LS_TAKES_HOST, .has = LS_HAS_RECORDED | LS_HAS_REPEAT,
    .needs = LS_HAS_RECORDED, .lacking = "a host-delay needs \"recorded\"",
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE, .fault = delay_fault },
};
/* clang-format on */

const LsEnumName ls_copy_names[LS_N_COPY_DIRECTIONS + 1] = {
  [LS_COPY_TO_DEVICE] = { "to-device", LS_COPY_TO_DEVICE },
  [LS_COPY_TO_HOST] = { "to-host", LS_COPY_TO_HOST },
  [LS_COPY_FROM_NVME] = { "from-nvme", LS_COPY_FROM_NVME },
  [LS_COPY_TO_NVME] = { "to-nvme", LS_COPY_TO_NVME },
  [LS_COPY_IN_HOST] = { "in-host", LS_COPY_IN_HOST },
};

const LsCopyRow ls_copies[LS_N_COPY_DIRECTIONS] = {
  [LS_COPY_TO_DEVICE] = { "copies to the device of rank", LS_COPY_BY_HOST },
  [LS_COPY_TO_HOST] = { "copies to the host of rank", LS_COPY_BY_HOST, .is_out = true },
  [LS_COPY_FROM_NVME] = { "reads from NVMe of rank", LS_COPY_BY_NVME },
  [LS_COPY_TO_NVME] = { "writes to NVMe of rank", LS_COPY_BY_NVME, .is_out = true },
  [LS_COPY_IN_HOST]
  = { "work in the host's memory of rank", LS_COPY_BY_HOST, .is_out = true, .is_in_host = true },
};
