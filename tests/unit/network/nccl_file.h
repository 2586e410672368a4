/* tests/unit/network/nccl_file.h — reads members of topologies/calib/nccl.set.json without
 * io/, which a test of this room cannot link: every key of the table is looked
 * up as "key": value on a line of its own. */
#ifndef LS_TESTS_NCCL_FILE_H
#define LS_TESTS_NCCL_FILE_H

#include <string.h>

#include "ls_test.h"

#include "nccl_tables.h"
#include "network/coll.h"

typedef struct {
  const char *key;
  size_t offset;
  enum { NCCL_COUNT, NCCL_NUMBER, NCCL_TIME, NCCL_RATE, NCCL_BYTES, NCCL_GENERATION } unit;
} NcclKey;

#define KEY(field, unit)                                                                                     \
  {                                                                                                          \
#field, offsetof(LsNccl, field), unit                                                                    \
  }

static const NcclKey nccl_keys[] = {
  { "generation", offsetof (LsNccl, tables), NCCL_GENERATION },
  KEY (nvlink, NCCL_RATE),
  KEY (channels_ring, NCCL_COUNT),
  KEY (channels_net, NCCL_COUNT),
  KEY (channels_nvls, NCCL_COUNT),
  KEY (channels_p2p, NCCL_COUNT),
  KEY (ring_bus_intra, NCCL_RATE),
  KEY (ring_bus_per_nic, NCCL_RATE),
  KEY (nvls_bus, NCCL_RATE),
  KEY (nvls_step_cost, NCCL_BYTES),
  KEY (p2p_intra, NCCL_RATE),
  KEY (p2p_inter, NCCL_RATE),
  KEY (base_all_reduce, NCCL_TIME),
  KEY (base_all_gather, NCCL_TIME),
  KEY (base_reduce_scatter, NCCL_TIME),
  KEY (base_nvls, NCCL_TIME),
  KEY (base_p2p_intra, NCCL_TIME),
  KEY (base_p2p_inter, NCCL_TIME),
  KEY (hop_intra, NCCL_TIME),
  KEY (hop_inter, NCCL_TIME),
  KEY (handshake, NCCL_TIME),
  KEY (handshake_hop, NCCL_TIME),
  KEY (ramp_bytes, NCCL_BYTES),
  KEY (drain, NCCL_NUMBER),
  KEY (self_copy, NCCL_NUMBER),
  KEY (sm_share_per_channel, NCCL_NUMBER),
  KEY (hbm_per_wire_all_reduce, NCCL_NUMBER),
  KEY (hbm_per_wire_all_gather, NCCL_NUMBER),
  KEY (hbm_per_wire_reduce_scatter, NCCL_NUMBER),
  KEY (hbm_per_wire_p2p, NCCL_NUMBER),
};

/* The first value of the key, without quotes; those of the object "sources" stand deeper. */
static inline char *
nccl_value (const char *text, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\n      \"%s\": ", key);
  const char *at = strstr (text, quoted);
  if (!at)
    return NULL;
  at += strlen (quoted);
  at += *at == '"';
  return g_strndup (at, strcspn (at, "\",\n"));
}

static inline bool
nccl_generation (const char *value, LsNcclTables *ret)
{
  static const LsNcclTables all[]
      = { LS_TEST_NCCL_VOLTA, LS_TEST_NCCL_AMPERE, LS_TEST_NCCL_HOPPER, LS_TEST_NCCL_BLACKWELL };
  for (size_t i = 0; i < G_N_ELEMENTS (all); i++)
    if (g_strcmp0 (value, all[i].name) == 0) {
      *ret = all[i];
      return true;
    }
  return false;
}

static inline bool
nccl_set (LsNccl *nccl, const NcclKey *key, const char *value)
{
  void *field = (char *) nccl + key->offset;
  uint64_t bytes;
  switch (key->unit) {
  case NCCL_COUNT:
    *(uint32_t *) field = (uint32_t) g_ascii_strtoull (value, NULL, 10);
    return true;
  case NCCL_NUMBER:
    *(double *) field = g_ascii_strtod (value, NULL);
    return true;
  case NCCL_GENERATION:
    return nccl_generation (value, field);
  case NCCL_TIME:
    return ls_parse_time (value, field, NULL);
  case NCCL_RATE:
    return ls_parse_rate (value, field, NULL);
  default:
    if (!ls_parse_bytes (value, &bytes, NULL))
      return false;
    *(double *) field = (double) bytes;
    return true;
  }
}

/* The text of the member nccl-NAME of the set, newly allocated; NULL: it has none. */
static inline char *
nccl_member (const char *set, const char *name)
{
  g_autofree char *start = g_strdup_printf ("\n    \"nccl-%s\": {\n", name);
  const char *at = strstr (set, start), *end = at ? strstr (at, "\n    }") : NULL;
  return end ? g_strndup (at, (gsize) (end - at)) : NULL;
}

/* false, with a failed check, if a key is missing or malformed. */
static inline bool
nccl_read (const char *name, LsNccl *ret_nccl)
{
  *ret_nccl = (LsNccl) { 0 };
  g_autofree char *path
      = g_build_filename (g_getenv ("LS_DATA_DIR"), "topologies", "calib", "nccl.set.json", NULL);
  g_autofree char *set = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &set, NULL, NULL)))
    return false;
  g_autofree char *text = nccl_member (set, name);
  if (!LS_CHECK (text != NULL))
    return false;
  for (size_t i = 0; i < G_N_ELEMENTS (nccl_keys); i++) {
    g_autofree char *value = nccl_value (text, nccl_keys[i].key);
    bool is_left_out = !value && strcmp (nccl_keys[i].key, "nvls_step_cost") == 0; /* none on Hopper */
    bool ok = is_left_out || (value && nccl_set (ret_nccl, &nccl_keys[i], value));
    if (!ls_check_impl (ok, __FILE__, __LINE__, "%s: nccl-%s: %s", path, name, nccl_keys[i].key))
      return false;
  }
  return true;
}

#endif
