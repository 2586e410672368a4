#include "sweep/family.h"

#include <string.h>

char *
ls_family_of_id (const char *id)
{
  static const char *const two_part[] = { "sc21-t1", "sc21-t2", "vtrain-multi", "vtrain-single" };
  for (guint i = 0; i < G_N_ELEMENTS (two_part); i++)
    if (g_str_has_prefix (id, two_part[i]))
      return g_strdup (two_part[i]);

  size_t n = 0;
  while (g_ascii_isalpha (id[n]))
    n++;
  return g_strndup (id, n);
}

static bool
trains_with_dropout (const char *family)
{
  static const char *const families[]
    = { "korth", "mtnlg", "sc21-t1", "sc21-t2", "vtrain-multi", "vtrain-single", "zb", NULL };
  return g_strv_contains (families, family);
}

bool
ls_family_tp_async (const char *family)
{
  static const char *const before[]
    = { "bloom", "mtnlg", "sc21-t1", "sc21-t2", "vtrain-multi", "vtrain-single", NULL };
  return !g_strv_contains (before, family);
}

bool
ls_family_grad_norm (const char *id, const char *schedule)
{
  static const char *const validated_later[] = { "zb-1p", "zb-2p", NULL };
  g_autofree char *family = ls_family_of_id (id);
  return strcmp (family, "zb") != 0 || g_str_has_suffix (id, "-sync") || !schedule
         || !g_strv_contains (validated_later, schedule);
}

void
ls_family_complete_model (const char *family, LsModel *m)
{
  gboolean is_gpt = m->mlp == LS_MLP_GELU;
  m->norm = m->mlp == LS_MLP_SWIGLU ? LS_NORM_RMSNORM : LS_NORM_LAYERNORM;
  m->position = is_gpt ? LS_POSITION_LEARNED : LS_POSITION_ROPE;
  if (strcmp (family, "bloom") == 0)
    m->position = LS_POSITION_ALIBI;
  m->linear_bias = is_gpt;
  m->qkv_bias = false;
  m->tied_embeddings = is_gpt;
  m->dropout = is_gpt && trains_with_dropout (family);
}
