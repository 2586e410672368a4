/* network/kinds.c — kinds of collectives and protocols: names, and what a kind moves. */
#include "network/coll.h"

static const char *const protocol_names[LS_N_PROTOCOLS] = {
  [LS_PROTOCOL_AUTO] = "auto",
  [LS_PROTOCOL_SIMPLE] = "Simple",
  [LS_PROTOCOL_LL] = "LL",
  [LS_PROTOCOL_LL128] = "LL128",
};

static const char *const kind_names[LS_N_COLL_KINDS] = {
  [LS_COLL_ALL_REDUCE] = "all-reduce",
  [LS_COLL_ALL_GATHER] = "all-gather",
  [LS_COLL_REDUCE_SCATTER] = "reduce-scatter",
  [LS_COLL_BROADCAST] = "broadcast",
  [LS_COLL_REDUCE] = "reduce",
  [LS_COLL_ALL_TO_ALL] = "all-to-all",
  [LS_COLL_GATHER] = "gather",
  [LS_COLL_SCATTER] = "scatter",
  [LS_COLL_BARRIER] = "barrier",
  [LS_COLL_PERMUTE] = "permute",
  [LS_COLL_COPY_PERMUTE] = "copy-permute",
  [LS_COLL_SEND_RECV] = "send-recv",
};

const char *
ls_coll_kind_name (LsCollKind kind)
{
  g_assert (kind < LS_N_COLL_KINDS);
  return kind_names[kind];
}

bool
ls_coll_kind_has_root (LsCollKind kind)
{
  return kind == LS_COLL_BROADCAST || kind == LS_COLL_REDUCE || kind == LS_COLL_GATHER
      || kind == LS_COLL_SCATTER;
}

const char *
ls_protocol_name (LsProtocol protocol)
{
  g_assert (protocol < LS_N_PROTOCOLS);
  return protocol_names[protocol];
}

double
ls_coll_wire_factor (LsCollKind kind, uint32_t n)
{
  if (n < 2)
    return 0;
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return 2.0 * (n - 1) / n;
  case LS_COLL_ALL_GATHER:
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_ALL_TO_ALL:
  case LS_COLL_GATHER:
  case LS_COLL_SCATTER:
    return (n - 1.0) / n;
  case LS_COLL_BARRIER:
    return 0;
  default:
    return 1;
  }
}
