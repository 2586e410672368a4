#include <stddef.h>

#include "ask/collective/collective_sizes.h"
#include "base/doublings.h"
#include "base/order.h"
#include "data/measured/read_nccl_tests.h"
#include "data/text/field.h"
#include "job/hardware.h"
#include "network/coll.h"

#define MAX_FACTOR 1024 /* times LS_COLLECTIVE_MAX_BYTES is still a size */

static const LsEnumName protocol_names[] = {
  { "auto", LS_PROTOCOL_AUTO },     { "simple", LS_PROTOCOL_SIMPLE },
  { "ll", LS_PROTOCOL_LL },         { "ll128", LS_PROTOCOL_LL128 },
  { "Simple", LS_PROTOCOL_SIMPLE }, { "LL", LS_PROTOCOL_LL },
  { "LL128", LS_PROTOCOL_LL128 },   { NULL },
};

static bool
parse_gpus (const char *text, void *target)
{
  LsCollectiveSpec *spec = target;
  g_autoptr (GArray) counts = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_auto (GStrv) items = g_strsplit (text, ",", -1);
  for (char **item = items; *item; item++)
    if (!ls_doublings_add (g_strstrip (*item), LS_COLLECTIVE_MAX_GPUS, counts))
      return false;
  if (counts->len == 0)
    return false;
  g_array_sort (counts, ls_compare_uint32);
  for (guint i = counts->len - 1; i > 0; i--)
    if (g_array_index (counts, uint32_t, i) == g_array_index (counts, uint32_t, i - 1))
      g_array_remove_index (counts, i);
  g_clear_pointer (&spec->gpus, g_array_unref);
  spec->gpus = g_steal_pointer (&counts);
  return true;
}

static bool
parse_slice (const char *text, void *target)
{
  return ls_slice_parse (text, ((LsCollectiveSpec *) target)->slice);
}

/* Names of operations and their like are checked where they are used, "" too. */
#define NAME(key_)                                                                                           \
  {                                                                                                          \
#key_, LS_FIELD_STRING, offsetof(LsCollectiveSpec, key_)                                                 \
  }
#define TEXT(key_)                                                                                           \
  {                                                                                                          \
#key_, LS_FIELD_STRING, offsetof(LsCollectiveSpec, key_), .required = true                               \
  }

static const LsField fields[] = {
  NAME (op),
  NAME (algorithm),
  NAME (network),
  TEXT (cluster),
  TEXT (nccl),
  TEXT (compare),
  TEXT (trust),
  { "nodes", LS_FIELD_UINT, offsetof (LsCollectiveSpec, n_nodes), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS },
  { "slice", LS_FIELD_CUSTOM, .parse = parse_slice, .expected = LS_SLICE_EXPECTED },
  { "gpus", LS_FIELD_CUSTOM, .parse = parse_gpus,
    .expected = "whole numbers from 1 to " G_STRINGIFY (
        LS_COLLECTIVE_MAX_GPUS) " such as 8 or 2,4,8, or their doublings 2..1024" },
  { "protocol", LS_FIELD_ENUM, offsetof (LsCollectiveSpec, protocol), .names = protocol_names },
  { "min", LS_FIELD_BYTES, offsetof (LsCollectiveSpec, min_bytes), .min = 1,
    .max = (double) LS_COLLECTIVE_MAX_BYTES },
  { "max", LS_FIELD_BYTES, offsetof (LsCollectiveSpec, max_bytes), .min = 1,
    .max = (double) LS_COLLECTIVE_MAX_BYTES },
  { "messages", LS_FIELD_BOOL, offsetof (LsCollectiveSpec, messages) },
  { "factor", LS_FIELD_UINT, offsetof (LsCollectiveSpec, factor), .min = 2, .max = MAX_FACTOR },
  { NULL },
};

void
ls_collective_spec_init (LsCollectiveSpec *spec)
{
  *spec = (LsCollectiveSpec) { .protocol = LS_PROTOCOL_AUTO };
}

void
ls_collective_spec_clear (LsCollectiveSpec *spec)
{
  ls_fields_clear (fields, spec);
  g_clear_pointer (&spec->gpus, g_array_unref);
  ls_collective_spec_init (spec);
}

gboolean
ls_collective_spec_set (LsCollectiveSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  return ls_field_set_text (fields, spec, key, value, diags);
}
