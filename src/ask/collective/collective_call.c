#include "ask/collective/collective_call.h"

#include <lockstep/error.h>
#include <stddef.h>
#include <string.h>

#include "base/doublings.h"
#include "base/list.h"
#include "base/order.h"
#include "base/suggest.h"
#include "data/measured/read_nccl_tests.h"
#include "data/text/field.h"
#include "exec/messages/messages.h"
#include "job/hardware.h"
#include "network/coll.h"

/* --- its knobs from text ------------------------------------------------------------------------- */

#define MAX_FACTOR 1024 /* times LS_COLLECTIVE_MAX_BYTES is still a size */

static const LsEnumName protocol_names[] = {
  { "auto", LS_PROTOCOL_AUTO },     { "simple", LS_PROTOCOL_SIMPLE },
  { "ll", LS_PROTOCOL_LL },         { "ll128", LS_PROTOCOL_LL128 },
  { "Simple", LS_PROTOCOL_SIMPLE }, { "LL", LS_PROTOCOL_LL },
  { "LL128", LS_PROTOCOL_LL128 },   { NULL },
};

static bool
add_gpus (char *word, GArray *counts)
{
  return ls_doublings_add (g_strstrip (word), LS_COLLECTIVE_MAX_GPUS, counts);
}

static bool
parse_gpus (const char *text, void *target)
{
  GArray **gpus = &((LsCollectiveSpec *) target)->gpus;
  if (!ls_list_parse (text, sizeof (uint32_t), add_gpus, gpus))
    return false;
  GArray *counts = *gpus;
  g_array_sort (counts, ls_compare_uint32);
  for (guint i = counts->len - 1; i > 0; i--)
    if (g_array_index (counts, uint32_t, i) == g_array_index (counts, uint32_t, i - 1))
      g_array_remove_index (counts, i);
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
  { "max_ctas", LS_FIELD_UINT, offsetof (LsCollectiveSpec, max_ctas), .min = 1, .max = UINT8_MAX },
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
  if (strcmp (key, "algorithm") == 0 && strcmp (value, "auto") == 0) {
    g_clear_pointer (&spec->algorithm, g_free); /* as nobody had said it */
    return TRUE;
  }
  return ls_field_set_text (fields, spec, key, value, diags);
}

/* --- one collective alone on a cluster: names as people write them, and the time of a call ------- */

#define ALL "all"
#define P2P "p2p" /* what tables of measurements call a send with its receive */

static const LsCollectiveNetwork networks[] = {
  { "flow", LS_NETWORK_FLOW },
  { "alphabeta", LS_NETWORK_ALPHABETA },
  { "step", LS_NETWORK_STEP },
};

gboolean
ls_collective_find_networks (const char *name, const LsCollectiveNetwork **ret_networks, guint *ret_n,
                             GError **error)
{
  const char *words[G_N_ELEMENTS (networks) + 2] = { NULL };
  guint n_words = 0;
  for (guint i = 0; i < G_N_ELEMENTS (networks); i++) {
    words[n_words++] = networks[i].name;
    *ret_networks = &networks[i];
    *ret_n = 1;
    if (strcmp (name, networks[i].name) == 0)
      return TRUE;
  }
  *ret_networks = networks;
  *ret_n = G_N_ELEMENTS (networks);
  if (strcmp (name, ALL) == 0)
    return TRUE;
  words[n_words++] = ALL;
  return ls_fail_word (error, "--network", name, words);
}

gboolean
ls_collective_find_kind (const char *op, LsCollKind *ret_kind, GError **error)
{
  const char *words[LS_N_COLL_KINDS + 2] = { NULL };
  for (int kind = 0; kind < LS_N_COLL_KINDS; kind++) {
    words[kind] = ls_coll_kind_name ((LsCollKind) kind);
    *ret_kind = (LsCollKind) kind;
    if (strcmp (op, words[kind]) == 0)
      return TRUE;
  }
  *ret_kind = LS_COLL_SEND_RECV;
  if (strcmp (op, P2P) == 0)
    return TRUE;
  words[LS_N_COLL_KINDS] = P2P;
  return ls_fail_word (error, "--op", op, words);
}

gboolean
ls_collective_check_algorithm (const char *algorithm, GError **error)
{
  return g_strv_contains (ls_coll_algorithms (), algorithm)
      || ls_fail_word (error, "--algorithm", algorithm, ls_coll_algorithms ());
}

/* The rule that is broken, and what would do. */
static void
complain_of_algorithm (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request, GError **error)
{
  GString *others = g_string_new (NULL);
  LsCollRequest other = *request;
  for (const char *const *name = ls_coll_algorithms (); *name; name++) {
    other.algorithm = *name;
    if (ls_coll_applies (c, nccl, &other))
      g_string_append_printf (others, "%s%s", others->len > 0 ? ", " : "", *name);
  }
  g_autofree char *rule = ls_coll_rule (request->algorithm);
  g_autofree char *protocol = request->protocol == LS_PROTOCOL_AUTO
      ? g_strdup ("")
      : g_strdup_printf (" with %s", ls_protocol_name (request->protocol));
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
               "--algorithm %s does not do %s%s on these %u %s of %s\nnote: it does %s\nnote: what does: %s",
               request->algorithm, ls_coll_kind_name (request->kind), protocol, request->n,
               ls_cluster_chip_word (&c->spec, request->n), c->spec.name, rule,
               others->len > 0 ? others->str : "nothing");
  g_string_free (others, TRUE);
}

static gboolean
check_call (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
            const LsCollectiveNetwork *network, GError **error)
{
  const char *why = ls_coll_lacks_protocol (c, nccl, request);
  if (why)
    return ls_fail (error, LS_ERROR_CONFLICT, "--protocol %s does not do %s on these %u %s of %s: %s",
                    ls_protocol_name (request->protocol), ls_coll_kind_name (request->kind), request->n,
                    ls_cluster_chip_word (&c->spec, request->n), c->spec.name, why);
  if (request->max_ctas > 0 && !ls_cluster_traits (&c->spec)->has_nccl)
    return ls_fail (error, LS_ERROR_CONFLICT, "--max-ctas: a %s has no NCCL, whose thread blocks these are",
                    ls_cluster_traits (&c->spec)->name);
  if (ls_coll_applies (c, nccl, request))
    return ls_coll_check_size (c, nccl, request, network->fidelity, error);
  complain_of_algorithm (c, nccl, request, error);
  return FALSE;
}

gboolean
ls_collective_count (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                     const LsCollectiveNetwork *network, uint64_t *ret_n, GError **error)
{
  *ret_n = 0;
  if (network->fidelity != LS_NETWORK_STEP)
    return TRUE;
  g_autoptr (LsArena) arena = ls_arena_new ();
  if (!check_call (c, nccl, request, network, error))
    return FALSE;
  *ret_n = ls_script_n_messages (ls_coll_script (c, nccl, request, arena));
  return TRUE;
}

gboolean
ls_collective_time (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                    const LsCollectiveNetwork *network, const LsProgress *progress, LsCollectiveRow *row,
                    GError **error)
{
  if (!check_call (c, nccl, request, network, error))
    return FALSE;
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *plan = ls_coll_plan (c, nccl, request, network->fidelity, arena);
  row->algorithm = plan->algorithm;
  row->protocol = plan->protocol;
  row->network = network->name;
  row->n_ranks = request->n;
  row->bytes = request->kind == LS_COLL_BARRIER ? 0 : request->bytes;
  row->time = network->fidelity == LS_NETWORK_STEP
      ? ls_messages_time_alone (ls_coll_script (c, nccl, request, arena), c, progress)
      : ls_coll_time_alone (c, plan);
  row->bus_factor = ls_coll_wire_factor (request->kind, request->n);
  if (row->time < LS_TIME_NEVER)
    return TRUE;
  g_autofree char *bytes = ls_format_bytes (row->bytes); /* what cannot be represented is no result */
  return ls_fail (
      error, LS_ERROR_LIMIT,
      "%s of %s over %u %s of %s by %s (--network %s) is not over after %.3g days; more cannot be simulated",
      ls_coll_kind_name (request->kind), bytes, row->n_ranks, ls_cluster_chip_word (&c->spec, row->n_ranks),
      c->spec.name, row->algorithm, row->network, ls_time_to_s (LS_TIME_NEVER / 2) / 86400);
}
