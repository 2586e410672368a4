#include "model/predict.h"

#include <string.h>

uint32_t
ls_model_block_layers (const LsModel *m)
{
  return m->predict.pattern ? (uint32_t) strlen (m->predict.pattern) : 1;
}

uint32_t
ls_model_n_all_layers (const LsModel *m)
{
  return m->n_layers + m->predict.layers * ls_model_block_layers (m);
}

bool
ls_model_block_is_again (const LsModel *m, uint32_t block)
{
  return m->predict.shared && block > 0;
}

uint32_t
ls_model_n_own_blocks (const LsModel *m)
{
  return m->predict.shared ? MIN (m->predict.layers, 1) : m->predict.layers;
}

const char *
ls_model_check_predictions (const LsModel *m)
{
  const char *pattern = m->predict.pattern;
  if (m->predict.layers == 0)
    return pattern || m->predict.shared || m->predict.windowed
        ? "missing key \"predict_layers\", which others go with"
        : NULL;
  if (m->predict.windowed && m->attn.window == 0)
    return "missing key \"window\", which \"predict_windowed\" goes with";
  if (!pattern)
    return NULL;
  if (!*pattern || pattern[strspn (pattern, "ADMPSHamde")] || strlen (pattern) > LS_MAX_BLOCK_LAYERS)
    return "expected at most " G_STRINGIFY (
        LS_MAX_BLOCK_LAYERS) " letters of A, D, M, P, S, H, a, m, d and e";
  if (strpbrk (pattern, "MmP") && m->mixer.kind == LS_MIXER_NONE)
    return "missing key \"mixer\", for layers of mixers";
  if ((strchr (pattern, 'S') && m->compressed.csa_ratio == 0)
      || (strchr (pattern, 'H') && m->compressed.hca_ratio == 0))
    return "expected layers S and H where \"layer_pattern\" has them";
  if (strchr (pattern, 'e') && m->moe.n_experts == 0)
    return "missing key \"experts\", for layers of them alone";
  return m->norms == LS_NORMS_SHARED && strpbrk (pattern, "amde")
      ? "expected two halves of a layer that share a norm"
      : NULL;
}
