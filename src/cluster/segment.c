#include "cluster/segment.h"

#include "cluster/spec.h"

uint32_t
ls_segment_trays (const LsClusterSpec *s)
{
  return s->interior == LS_INTERIOR_SERVER ? MAX (s->server.cpu_boards, 1) : 1;
}

static uint32_t
gpus_of_tray (const LsClusterSpec *s)
{
  return s->gpus_per_node / ls_segment_trays (s);
}

static uint32_t
gpus_of_segment (const LsClusterSpec *s)
{
  return s->segment * gpus_of_tray (s);
}

static gboolean
check_asked (const LsClusterSpec *s, uint32_t n_gpus, GError **error)
{
  uint32_t trays = ls_segment_trays (s), unit = gpus_of_segment (s);
  if (trays == 1 || s->segment > trays)
    return ls_spec_conflict (error, "--segment %u: a node of %s %s%u compute tray%s (node.cpu.boards)",
                             s->segment, s->name, trays == 1 ? "is " : "has ", trays, trays == 1 ? "" : "s");
  if (n_gpus % unit == 0)
    return TRUE;
  return ls_spec_conflict (error,
                           "--segment %u: expected GPUs in segments of %u (%u trays with %u each); got %u",
                           s->segment, unit, s->segment, gpus_of_tray (s), n_gpus);
}

gboolean
ls_segment_place (LsClusterSpec *s, uint32_t n_nodes, uint32_t n_gpus, GError **error)
{
  s->taken_per_node = 0;
  if (s->segment == 0 || gpus_of_tray (s) == 0) /* no such node can be built: that is said there */
    return TRUE;
  if (s->segment_is_asked && !check_asked (s, n_gpus, error))
    return FALSE;
  uint32_t trays = ls_segment_trays (s), taken = trays / s->segment * gpus_of_segment (s);
  bool is_whole = n_gpus > s->gpus_per_node && n_gpus % gpus_of_segment (s) == 0;
  bool has_room = n_nodes == 0 || n_gpus <= (uint64_t) n_nodes * taken;
  if (s->segment_is_asked || (is_whole && has_room))
    s->taken_per_node = taken;
  return TRUE;
}

char *
ls_segment_text (const LsClusterSpec *s)
{
  if (ls_cluster_taken (s) == s->gpus_per_node)
    return NULL;
  return g_strdup_printf ("%u of the %u %s of a node: segments of %u of its %u trays", ls_cluster_taken (s),
                          s->gpus_per_node, ls_cluster_chip_word (s, s->gpus_per_node), s->segment,
                          ls_segment_trays (s));
}
