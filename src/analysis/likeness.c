#include "analysis/likeness.h"

#include <math.h>

const char *
ls_aspect_key (LsAspect aspect)
{
  static const char *const keys[LS_N_ASPECTS]
      = { "architecture", "format",    "node", "backend", "schedule", "context", "offload",
          "experts",      "transport", "gpus", "fabric",  "guessed",  "tp",      "params" };
  return keys[aspect];
}

bool
ls_aspect_is_beyond (LsAspect aspect, double a, double b)
{
  if (!(a > 0 && b > 0))
    return false;
  return aspect == LS_ASPECT_FABRIC ? a < b : a > b;
}

double
ls_aspect_distance (LsAspect aspect, double a, double b)
{
  return aspect == LS_ASPECT_GUESSED ? fabs (a - b) : fabs (log (a / b));
}

static char *
node_words (const char *node)
{
  return g_str_equal (node, "listed")
      ? g_strdup ("is on nodes whose vertices and links are listed")
      : g_strdup_printf ("is on nodes with %s only", g_str_equal (node, "pcie") ? "PCIe" : node);
}

char *
ls_aspect_words (LsAspect aspect, const LsTraits *traits, double extreme)
{
  if (aspect < LS_N_WORD_ASPECTS) {
    const char *word = traits->word[aspect];
    switch (aspect) {
    case LS_ASPECT_ARCHITECTURE:
      return g_strdup_printf ("is on %s of architecture %s", traits->chips, word);
    case LS_ASPECT_FORMAT:
      return g_strdup_printf ("is in %s", word);
    case LS_ASPECT_NODE:
      return node_words (word);
    case LS_ASPECT_BACKEND:
      return g_strdup_printf ("has --dp-kind %s", word);
    case LS_ASPECT_SCHEDULE:
      return g_strdup_printf ("has --schedule %s", word);
    case LS_ASPECT_CONTEXT:
      return g_strdup ("has context parallelism");
    case LS_ASPECT_OFFLOAD:
      return g_strdup ("offloads");
    case LS_ASPECT_EXPERTS:
      return g_strdup ("has experts");
    default:
      return g_strdup (g_str_equal (word, "tcp") ? "is joined by TCP"
                                                 : "has its data go through host memory between nodes");
    }
  }
  double figure = traits->figure[aspect - LS_N_WORD_ASPECTS];
  if (aspect == LS_ASPECT_GPUS)
    return g_strdup_printf ("is on more than %.0f %s", extreme, traits->chips);
  if (aspect == LS_ASPECT_FABRIC)
    return g_strdup_printf ("has a fabric of %.3g GB/s per %s (%.3g at least)", 1e-9 * figure, traits->chip,
                            1e-9 * extreme);
  if (aspect == LS_ASPECT_TENSOR)
    return g_strdup_printf ("has --tp above %.0f", extreme);
  if (aspect == LS_ASPECT_PARAMS)
    return g_strdup_printf ("has more than %.3g billion parameters", 1e-9 * extreme);
  return g_strdup_printf ("has %.0f %% of its kernel time from data sheets and guesses (%.0f %% at most)",
                          100 * figure, 100 * extreme);
}
