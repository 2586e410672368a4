/* cluster/spec.h — what the builder needs to know of a spec (private to
 * cluster/): copies, limits, and what its checks share. */
#ifndef LS_CLUSTER_SPEC_H
#define LS_CLUSTER_SPEC_H

#include "cluster/cluster.h"

/* Guards against typing errors, far above any machine: GPUs; leaves, and uplinks of
 * one leaf, which are its spines; links of the graph, each direction one (2^20 GPUs
 * in DGX H100 nodes have a third of that; a link takes 48 bytes); letters of a vertex. */
#define LS_CLUSTER_MAX_GPUS   (1u << 20)
#define LS_CLUSTER_MAX_FABRIC 65536
#define LS_CLUSTER_MAX_LINKS  (1u << 26)
#define LS_MAX_VERTEX_NAME    64

void ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy);

/* LsNodeKind of a vertex of its list; -1: there is none of that name. */
int ls_spec_list_kind (const LsClusterSpec *s, const char *name);

/* LS_ERROR_CONFLICT; FALSE, to be returned. */
gboolean ls_spec_conflict (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Whether a link that is used has a rate. */
gboolean ls_spec_check_link (const char *what, gboolean is_used, const LsLinkSpec *link, GError **error);

/* "Evenly" both ways: 8 NICs on 4 switches, or 2 NICs on 4 switches. */
static inline gboolean
ls_deals_out (uint32_t a, uint32_t b)
{
  return a % b == 0 || b % a == 0;
}

#endif
