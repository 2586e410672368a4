#include "plan/mesh.h"

#include <glib.h>

uint32_t
ls_mesh_rank (const LsMesh *m, LsCoord at)
{
  g_assert (at.tp < m->tp && at.cp < m->cp && at.dp < m->dp && at.pp < m->pp);
  return ((at.pp * m->dp + at.dp) * m->cp + at.cp) * m->tp + at.tp;
}

LsCoord
ls_mesh_coord (const LsMesh *m, uint32_t rank)
{
  g_assert (rank < ls_mesh_n_ranks (m));
  return (LsCoord) {
    .tp = rank % m->tp,
    .cp = rank / m->tp % m->cp,
    .dp = rank / (m->tp * m->cp) % m->dp,
    .pp = rank / (m->tp * m->cp * m->dp),
  };
}
