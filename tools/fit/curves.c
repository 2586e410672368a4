#include "curves.h"

#include <stdlib.h>
#include <string.h>

static bool
parse_op (const char *op, LsCollKind *ret_kind)
{
  for (LsCollKind kind = 0; kind < LS_N_COLL_KINDS; kind++)
    if (strcmp (op, kind == LS_COLL_SEND_RECV ? "p2p" : ls_coll_kind_name (kind)) == 0) {
      *ret_kind = kind;
      return true;
    }
  return false;
}

static LsNcclCurve *
curve_of (GPtrArray *curves, const char *cluster, LsCollKind kind, uint32_t n_gpus, uint32_t n_nodes)
{
  for (guint i = 0; i < curves->len; i++) {
    LsNcclCurve *c = curves->pdata[i];
    if (strcmp (c->name, cluster) == 0 && c->kind == kind && c->n_gpus == n_gpus && c->n_nodes == n_nodes)
      return c;
  }
  LsNcclCurve *c = ls_nccl_curve_new (cluster, kind, n_gpus, n_nodes);
  g_ptr_array_add (curves, c);
  return c;
}

/* The first seven columns hold no quotes: cluster, trust, op, gpus, nodes, size_bytes,
 * time_us. */
GPtrArray *
ls_fit_read_curves (const char *path, const char *const *clusters, const char *trust, GError **error)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, error))
    return NULL;
  GPtrArray *curves = g_ptr_array_new_with_free_func (ls_nccl_curve_free);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (size_t i = 1; lines[i]; i++) {
    g_auto (GStrv) f = g_strsplit (lines[i], ",", 8);
    LsCollKind kind;
    if (g_strv_length (f) < 8 || strcmp (f[1], trust) != 0 || !parse_op (f[2], &kind)
        || !g_strv_contains (clusters, f[0]))
      continue;
    LsNcclPoint p = { .bytes = g_ascii_strtoull (f[5], NULL, 10), .measured_s = g_ascii_strtod (f[6], NULL) * 1e-6 };
    g_array_append_val (
        curve_of (curves, f[0], kind, (uint32_t) strtoul (f[3], NULL, 10), (uint32_t) strtoul (f[4], NULL, 10))->points, p);
  }
  return curves;
}
