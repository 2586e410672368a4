#include "data/launch/tpu_slices.h"

#include <string.h>

/* TensorCores of a chip, and whether they are one device: docs.jax.dev, ChipVersion of
 * jax.experimental.pallas.tpu. What a name's number counts: docs.cloud.google.com/tpu/docs/v5p ("v5p-8 has 8
 * TensorCores") and v4, v5e and v6e (chips). */
static const struct {
  const char *name;    /* in front of the number */
  const char *of_node; /* in names of GKE's nodes */
  guint per_chip;      /* what the number counts */
  guint devices;
} generations[] = {
  { "v2-", "tpu-v2", 2, 2 },
  { "v3-", "tpu-v3", 2, 2 },
  { "v4-", "tpu-v4", 2, 1 },
  { "v5p-", "tpu-v5p", 2, 1 },
  { "v5litepod-", "tpu-v5-lite", 1, 1 },
  { "v5e-", "tpu-v5e", 1, 1 },
  { "v6e-", "tpu-v6e", 1, 1 },
  { "tpu7x-", "tpu7x", 2, 2 },
};

guint64
tpu_topology_chips (const char *text)
{
  g_auto (GStrv) sides = g_strsplit (text, "x", 4);
  guint64 product = 1;
  for (char **side = sides; *side; side++) {
    guint64 n;
    if (!g_ascii_string_to_unsigned (*side, 10, 1, 1 << 16, &n, NULL))
      return 0;
    product *= n;
  }
  return MIN (product, G_MAXUINT32);
}

guint64
tpu_slice_chips (const char *type)
{
  for (guint i = 0; i < G_N_ELEMENTS (generations); i++) {
    if (!g_str_has_prefix (type, generations[i].name))
      continue;
    const char *rest = type + strlen (generations[i].name);
    return strchr (rest, 'x') ? tpu_topology_chips (rest)
                              : tpu_topology_chips (rest) / generations[i].per_chip;
  }
  return 0;
}

guint
tpu_devices_of_chip (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (generations); i++)
    if (g_str_has_prefix (name, generations[i].name) || g_str_has_prefix (name, generations[i].of_node))
      return generations[i].devices;
  return 0;
}
