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

/* How far ranks are apart that differ by 1 in a dimension. */
static void
find_strides (LsRankOrder order, const uint32_t degree[LS_N_DIMS], uint32_t ret_stride[LS_N_DIMS])
{
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (order, dims);
  uint32_t stride = 1;
  for (int i = 0; i < LS_N_DIMS; i++) {
    ret_stride[dims[i]] = stride;
    stride *= degree[dims[i]];
  }
}

static void
strides_of (const LsMesh *m, uint32_t ret_stride[LS_N_DIMS])
{
  const uint32_t degree[LS_N_DIMS] = { m->tp, m->cp, 1, m->dp, m->pp };
  find_strides (m->order, degree, ret_stride);
}

static uint32_t
n_expert_copies (const LsMesh *m)
{
  g_assert (m->ep > 0 && m->etp > 0);
  return m->tp * m->cp * m->dp / (m->ep * m->etp);
}

static void
expert_strides_of (const LsMesh *m, uint32_t ret_stride[LS_N_DIMS])
{
  const uint32_t degree[LS_N_DIMS] = { m->etp, 1, m->ep, n_expert_copies (m), m->pp };
  find_strides (m->order, degree, ret_stride);
}

uint32_t
ls_mesh_rank (const LsMesh *m, LsCoord at)
{
  uint32_t stride[LS_N_DIMS];
  g_assert (at.tp < m->tp && at.cp < m->cp && at.dp < m->dp && at.pp < m->pp);
  strides_of (m, stride);
  return at.tp * stride[LS_DIM_TP] + at.cp * stride[LS_DIM_CP] + at.dp * stride[LS_DIM_DP]
      + at.pp * stride[LS_DIM_PP];
}

LsCoord
ls_mesh_coord (const LsMesh *m, uint32_t rank)
{
  uint32_t stride[LS_N_DIMS];
  g_assert (rank < ls_mesh_n_ranks (m));
  strides_of (m, stride);
  return (LsCoord) {
    .tp = rank / stride[LS_DIM_TP] % m->tp,
    .cp = rank / stride[LS_DIM_CP] % m->cp,
    .dp = rank / stride[LS_DIM_DP] % m->dp,
    .pp = rank / stride[LS_DIM_PP] % m->pp,
  };
}

uint32_t
ls_mesh_expert_rank (const LsMesh *m, LsExpertCoord at)
{
  uint32_t stride[LS_N_DIMS];
  expert_strides_of (m, stride);
  return at.etp * stride[LS_DIM_TP] + at.ep * stride[LS_DIM_EP] + at.edp * stride[LS_DIM_DP]
      + at.pp * stride[LS_DIM_PP];
}

LsExpertCoord
ls_mesh_expert_coord (const LsMesh *m, uint32_t rank)
{
  uint32_t stride[LS_N_DIMS];
  expert_strides_of (m, stride);
  return (LsExpertCoord) {
    .etp = rank / stride[LS_DIM_TP] % m->etp,
    .ep = rank / stride[LS_DIM_EP] % m->ep,
    .edp = rank / stride[LS_DIM_DP] % n_expert_copies (m),
    .pp = rank / stride[LS_DIM_PP] % m->pp,
  };
}

bool
ls_mesh_has_one_pipeline (const LsMesh *m)
{
  uint32_t stride[LS_N_DIMS], of_experts[LS_N_DIMS];
  strides_of (m, stride);
  expert_strides_of (m, of_experts);
  return m->pp == 1 || stride[LS_DIM_PP] == of_experts[LS_DIM_PP];
}

/* Strides count where there is more than one. */
static bool
has_same_strides (const uint32_t a[LS_N_DIMS], const uint32_t b[LS_N_DIMS], const uint32_t degree[LS_N_DIMS])
{
  for (int d = 0; d < LS_N_DIMS; d++)
    if (degree[d] > 1 && a[d] != b[d])
      return false;
  return true;
}

bool
ls_mesh_is_alike (const LsMesh *a, const LsMesh *b)
{
  const uint32_t degree[LS_N_DIMS] = { a->tp, a->cp, 1, a->dp, a->pp };
  uint32_t of_a[LS_N_DIMS], of_b[LS_N_DIMS];
  strides_of (a, of_a);
  strides_of (b, of_b);
  if (!has_same_strides (of_a, of_b, degree))
    return false;
  if (a->ep == 0 || a->etp == 0)
    return true;
  const uint32_t of_experts[LS_N_DIMS] = { a->etp, 1, a->ep, n_expert_copies (a), a->pp };
  expert_strides_of (a, of_a);
  expert_strides_of (b, of_b);
  return has_same_strides (of_a, of_b, of_experts);
}

/* --- copies ---------------------------------------------------------------------------------------- */

static bool
has_dp_before_cp (const LsMesh *m)
{
  uint32_t stride[LS_N_DIMS];
  strides_of (m, stride);
  return m->cp > 1 && m->dp > 1 && stride[LS_DIM_DP] < stride[LS_DIM_CP];
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
