#include "plan/mesh.h"

#include <glib.h>
#include <string.h>

static const char *const names[LS_N_DIMS] = { "tp", "cp", "ep", "dp", "pp" };

/* --- orders ---------------------------------------------------------------------------------------- */

const char *
ls_dim_name (LsDim dim)
{
  return names[dim];
}

/* The digits of the number in the base of factorials are places among the dimensions that are left (Lehmer's
 * code; Knuth, TAOCP 7.2.1.2). */
void
ls_rank_order_dims (LsRankOrder order, LsDim ret_dims[LS_N_DIMS])
{
  static const uint32_t factorial[LS_N_DIMS] = { 24, 6, 2, 1, 1 };
  g_assert (order < LS_N_RANK_ORDERS);
  uint32_t used = 0;
  for (int i = 0; order == 0 && i < LS_N_DIMS; i++)
    ret_dims[i] = (LsDim) i;
  if (order == 0)
    return;
  for (int i = 0; i < LS_N_DIMS; i++) {
    uint32_t place = order / factorial[i] % (uint32_t) (LS_N_DIMS - i), dim = 0;
    for (;; dim++)
      if (!(used & 1u << dim) && place-- == 0)
        break;
    ret_dims[i] = (LsDim) dim;
    used |= 1u << dim;
  }
}

static LsRankOrder
order_of (const LsDim dims[LS_N_DIMS])
{
  for (LsRankOrder order = 0;; order++) {
    LsDim known[LS_N_DIMS];
    ls_rank_order_dims (order, known);
    if (memcmp (known, dims, sizeof known) == 0)
      return order;
  }
}

static int
dim_of (const char *name)
{
  for (int d = 0; d < LS_N_DIMS; d++)
    if (g_ascii_strcasecmp (name, names[d]) == 0)
      return d;
  return -1;
}

bool
ls_rank_order_parse (const char *text, LsRankOrder *ret_order, uint32_t *ret_named)
{
  g_auto (GStrv) parts = g_strsplit (text, "-", -1);
  LsDim dims[LS_N_DIMS];
  uint32_t n = 0, named = 0;
  for (char **part = parts; *part; part++) {
    int dim = dim_of (*part);
    if (dim < 0 || (named & 1u << dim))
      return false;
    named |= 1u << dim;
    dims[n++] = (LsDim) dim;
  }
  if (n == 0)
    return false;
  for (int d = 0; d < LS_N_DIMS; d++)
    if (!(named & 1u << d))
      dims[n++] = (LsDim) d;
  *ret_order = order_of (dims);
  *ret_named = named;
  return true;
}

char *
ls_rank_order_text (LsRankOrder order)
{
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (order, dims);
  return g_strjoin ("-", names[dims[0]], names[dims[1]], names[dims[2]], names[dims[3]], names[dims[4]],
                    NULL);
}

/* --- numbers --------------------------------------------------------------------------------------- */

LsMeshDigits
ls_mesh_digits (const LsMesh *m, bool of_experts)
{
  LsMeshDigits d = { .degree = { m->tp, m->cp, 1, m->dp, m->pp } };
  if (of_experts) {
    g_assert (m->ep > 0 && m->etp > 0);
    d = (LsMeshDigits) { .degree = { m->etp, 1, m->ep, m->tp * m->cp * m->dp / (m->ep * m->etp), m->pp } };
  }
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (m->order, dims);
  uint32_t stride = 1;
  for (int i = 0; i < LS_N_DIMS; i++) {
    d.stride[dims[i]] = stride;
    stride *= d.degree[dims[i]];
  }
  return d;
}

static uint32_t
index_of (const LsMeshDigits *d, LsDim dim, uint32_t rank)
{
  return rank / d->stride[dim] % d->degree[dim];
}

uint32_t
ls_mesh_rank (const LsMesh *m, LsCoord at)
{
  const LsMeshDigits d = ls_mesh_digits (m, false);
  g_assert (at.tp < m->tp && at.cp < m->cp && at.dp < m->dp && at.pp < m->pp);
  return at.tp * d.stride[LS_DIM_TP] + at.cp * d.stride[LS_DIM_CP] + at.dp * d.stride[LS_DIM_DP]
      + at.pp * d.stride[LS_DIM_PP];
}

LsCoord
ls_mesh_coord (const LsMesh *m, uint32_t rank)
{
  const LsMeshDigits d = ls_mesh_digits (m, false);
  g_assert (rank < ls_mesh_n_ranks (m));
  return (LsCoord) { .tp = index_of (&d, LS_DIM_TP, rank),
                     .cp = index_of (&d, LS_DIM_CP, rank),
                     .dp = index_of (&d, LS_DIM_DP, rank),
                     .pp = index_of (&d, LS_DIM_PP, rank) };
}

uint32_t
ls_mesh_expert_rank (const LsMesh *m, LsExpertCoord at)
{
  const LsMeshDigits d = ls_mesh_digits (m, true);
  return at.etp * d.stride[LS_DIM_TP] + at.ep * d.stride[LS_DIM_EP] + at.edp * d.stride[LS_DIM_DP]
      + at.pp * d.stride[LS_DIM_PP];
}

LsExpertCoord
ls_mesh_expert_coord (const LsMesh *m, uint32_t rank)
{
  const LsMeshDigits d = ls_mesh_digits (m, true);
  return (LsExpertCoord) { .etp = index_of (&d, LS_DIM_TP, rank),
                           .ep = index_of (&d, LS_DIM_EP, rank),
                           .edp = index_of (&d, LS_DIM_DP, rank),
                           .pp = index_of (&d, LS_DIM_PP, rank) };
}

bool
ls_mesh_has_one_pipeline (const LsMesh *m)
{
  return m->pp == 1
      || ls_mesh_digits (m, false).stride[LS_DIM_PP] == ls_mesh_digits (m, true).stride[LS_DIM_PP];
}

/* Strides count where there is more than one. */
static bool
has_same_strides (const LsMesh *a, const LsMesh *b, bool of_experts)
{
  const LsMeshDigits of_a = ls_mesh_digits (a, of_experts), of_b = ls_mesh_digits (b, of_experts);
  for (int d = 0; d < LS_N_DIMS; d++)
    if (of_a.degree[d] > 1 && of_a.stride[d] != of_b.stride[d])
      return false;
  return true;
}

bool
ls_mesh_is_alike (const LsMesh *a, const LsMesh *b)
{
  return has_same_strides (a, b, false) && (a->ep == 0 || a->etp == 0 || has_same_strides (a, b, true));
}

/* --- copies ---------------------------------------------------------------------------------------- */

static bool
has_dp_before_cp (const LsMesh *m)
{
  const LsMeshDigits d = ls_mesh_digits (m, false);
  return m->cp > 1 && m->dp > 1 && d.stride[LS_DIM_DP] < d.stride[LS_DIM_CP];
}

uint32_t
ls_mesh_copy (const LsMesh *m, LsCoord at)
{
  return has_dp_before_cp (m) ? at.dp + m->dp * at.cp : at.cp + m->cp * at.dp;
}

LsCoord
ls_mesh_at_copy (const LsMesh *m, LsCoord at, uint32_t copy)
{
  bool is_dp_first = has_dp_before_cp (m);
  at.cp = is_dp_first ? copy / m->dp : copy % m->cp;
  at.dp = is_dp_first ? copy % m->dp : copy / m->cp;
  return at;
}
