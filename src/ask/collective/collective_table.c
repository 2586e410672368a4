#include "ask/collective/collective_table.h"

#include <lockstep/error.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "ask/collective/measured_collectives.h"
#include "base/doublings.h"
#include "base/list.h"
#include "base/order.h"
#include "base/suggest.h"
#include "cluster/cluster.h"
#include "data/measured/read_nccl_tests.h"
#include "data/text/field.h"
#include "data/text/override.h"
#include "exec/messages/messages.h"
#include "job/assumptions.h"
#include "job/hardware.h"
#include "job/job_steps.h"

/* --- its knobs from text ------------------------------------------------------------------------- */

#define MAX_FACTOR 1024 /* times LS_COLLECTIVE_MAX_BYTES is still a size */

static const LsEnumName protocol_names[] = {
  { "auto", LS_PROTOCOL_AUTO },     { "simple", LS_PROTOCOL_SIMPLE },
  { "ll", LS_PROTOCOL_LL },         { "ll128", LS_PROTOCOL_LL128 },
  { "Simple", LS_PROTOCOL_SIMPLE }, { "LL", LS_PROTOCOL_LL },
  { "LL128", LS_PROTOCOL_LL128 },   { NULL },
};

/* In order, each once. */
static bool
add_counts (char *word, GArray *counts)
{
  if (!ls_doublings_add (g_strstrip (word), LS_COLLECTIVE_MAX_GPUS, counts))
    return false;
  g_array_sort (counts, ls_compare_uint32);
  for (guint i = counts->len - 1; i > 0; i--)
    if (g_array_index (counts, uint32_t, i) == g_array_index (counts, uint32_t, i - 1))
      g_array_remove_index (counts, i);
  return true;
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
  { "nccl_env", LS_FIELD_STRING, offsetof (LsCollectiveSpec, nccl_env), .repeated = true },
  TEXT (compare),
  TEXT (trust),
  { "max_ctas", LS_FIELD_UINT, offsetof (LsCollectiveSpec, max_ctas), .min = 1, .max = UINT8_MAX },
  { "nodes", LS_FIELD_UINT, offsetof (LsCollectiveSpec, n_nodes), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS },
  { "slice", LS_FIELD_CUSTOM, offsetof (LsCollectiveSpec, slice), .parse = ls_slice_parse,
    .expected = LS_SLICE_EXPECTED },
  { "gpus", LS_FIELD_CUSTOM, offsetof (LsCollectiveSpec, gpus), .add = add_counts,
    .element_size = sizeof (uint32_t),
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
  g_clear_pointer (&spec->more, g_strfreev);
  ls_collective_spec_init (spec);
}

gboolean
ls_collective_spec_set (LsCollectiveSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  bool is_unsaid = strcmp (key, "algorithm") == 0 && strcmp (value, "auto") == 0;
  return is_unsaid || ls_field_add_text (fields, spec, key, value, diags);
}

/* --- options that win over variables of NCCL's environment ------------------------------------- */

enum { BY_ALGORITHM, BY_PROTOCOL, BY_CTAS, N_CHOICES };
static const char *const choices[N_CHOICES] = { "--algorithm", "--protocol", "--max-ctas" };

static bool
is_typed (const LsCollectiveSpec *spec, int choice)
{
  const bool all[] = { spec->algorithm, spec->protocol != LS_PROTOCOL_AUTO, spec->max_ctas > 0 };
  return all[choice];
}

/* What a cluster is loaded with. typed: owned, borrowed by what is returned. */
static LsMeasuredFiles
files_of (const LsCollectiveSpec *spec, char **ret_typed)
{
  *ret_typed = g_strconcat (is_typed (spec, BY_ALGORITHM) ? "algorithms=x," : "",
                            is_typed (spec, BY_PROTOCOL) ? "protocols=x," : "",
                            is_typed (spec, BY_CTAS) ? "max_ctas=1," : "", NULL);
  return (LsMeasuredFiles) { NULL, spec->nccl, spec->nccl_env, *ret_typed };
}

/* --- one collective alone on a cluster: names as people write them, and the time of a call ------- */

#define ALL "all"
#define P2P "p2p" /* what tables of measurements call a send with its receive */

/* A fidelity of the network. */
typedef struct {
  const char *name;
  LsNetworkFidelity fidelity;
} LsCollectiveNetwork;

static const LsCollectiveNetwork fidelities[] = {
  { "flow", LS_NETWORK_FLOW },
  { "alphabeta", LS_NETWORK_ALPHABETA },
  { "step", LS_NETWORK_STEP },
};

/* The fidelity of that name, or all for "all"; static. LS_ERROR_USAGE. */
static gboolean
find_networks (const char *name, const LsCollectiveNetwork **ret_networks, guint *ret_n, GError **error)
{
  static const char *const words[] = { "flow", "alphabeta", "step", ALL, NULL };
  guint i = 0;
  while (words[i] && strcmp (name, words[i]) != 0)
    i++;
  *ret_networks = &fidelities[i % G_N_ELEMENTS (fidelities)];
  *ret_n = i < G_N_ELEMENTS (fidelities) ? 1 : G_N_ELEMENTS (fidelities);
  return words[i] || ls_fail_word (error, "--network", name, words);
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
      : g_strdup_printf (" with %s", ls_protocol_names[request->protocol]);
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
                    ls_protocol_names[request->protocol], ls_coll_kind_name (request->kind), request->n,
                    ls_cluster_chip_word (&c->spec, request->n), c->spec.name, why);
  if (request->max_ctas > 0 && !ls_cluster_traits (&c->spec)->has_nccl)
    return ls_fail (error, LS_ERROR_CONFLICT, "--max-ctas: a %s has no NCCL, whose thread blocks these are",
                    ls_cluster_traits (&c->spec)->name);
  if (ls_coll_applies (c, nccl, request))
    return ls_coll_check_size (c, nccl, request, network->fidelity, error);
  complain_of_algorithm (c, nccl, request, error);
  return FALSE;
}

/* Messages that it takes one by one, 0 with a fidelity that plans them together. LS_ERROR_LIMIT,
 * LS_ERROR_CONFLICT as of the next. */
static gboolean
count_messages (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
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

/* Fills algorithm, protocol, network, n_ranks, bytes, time and bus_factor. progress: of the messages counted
 * above; or NULL. LS_ERROR_CONFLICT: the algorithm does not do this. */
static gboolean
time_call (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
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

/* --- a collective's messages, and who holds what after each round -------------------------------- */

/* The blocks of all places after so many rounds. */
static uint32_t *
after (const LsCollectiveMessages *m, uint32_t n_rounds)
{
  return m->held + (size_t) n_rounds * n_places (m) * m->n_blocks;
}

/* Whether a rank has something of a block at the start: the table of network/script.h. */
static bool
starts_with (const LsScript *s, uint32_t rank, uint32_t block)
{
  uint32_t part = s->part_of ? s->part_of[rank] : rank;
  switch (s->kind) {
  case LS_COLL_ALL_REDUCE:
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_REDUCE:
    return true;
  case LS_COLL_ALL_GATHER:
  case LS_COLL_GATHER:
  case LS_COLL_BARRIER:
    return block / (s->n_blocks / s->n) == part;
  case LS_COLL_BROADCAST:
  case LS_COLL_SCATTER:
    return rank == s->root;
  case LS_COLL_ALL_TO_ALL:
    return block / s->n == rank;
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    return block == rank;
  default:
    return rank == 0;
  }
}

/* What is sent is what the sender had when it entered the round. */
static void
deliver (LsCollectiveMessages *m, const LsCollectiveMessage *message)
{
  const uint32_t *from = after (m, message->round) + (size_t) message->from * m->n_blocks;
  uint32_t *to = after (m, message->round + 1) + (size_t) message->send.to * m->n_blocks;
  for (uint32_t i = 0; i < message->send.n; i++) {
    uint32_t block = ls_collective_messages_block (m, message, i);
    to[block] = message->send.reduces ? to[block] | from[block] : from[block];
  }
}

static void
run_round (LsCollectiveMessages *m, const LsScript *s, uint32_t round, LsSend *room)
{
  memcpy (after (m, round + 1), after (m, round), (size_t) n_places (m) * m->n_blocks * sizeof *m->held);
  for (uint32_t place = 0; place < n_places (m); place++) {
    uint32_t n = s->sends (s, place, round, room);
    for (uint32_t i = 0; i < n; i++) {
      LsCollectiveMessage message = { round, place, room[i] };
      g_array_append_val (m->messages, message);
      deliver (m, &message);
    }
  }
}

/* Of the algorithm of the request, else of the one that is fastest alone. The request must be met and small
 * enough (ls_coll_applies(), ls_coll_check_size() with LS_NETWORK_STEP). LS_ERROR_LIMIT: more ranks than
 * above. Cost: rounds × places × blocks. Free with ls_collective_messages_free(). */
static LsCollectiveMessages *
ls_collective_messages_new (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                            GError **error)
{
  if (request->n > LS_COLLECTIVE_MESSAGES_MAX_RANKS)
    return ls_fail_null (error, LS_ERROR_LIMIT, "--messages is of %d %s at most; got %u",
                         LS_COLLECTIVE_MESSAGES_MAX_RANKS, ls_cluster_chip_word (&c->spec, 2), request->n);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsScript *s = ls_coll_script (c, nccl, request, arena);
  LsCollectiveMessages *m = g_new0 (LsCollectiveMessages, 1);
  *m = (LsCollectiveMessages) {
    .n = s->n,
    .n_switches = s->n_switches,
    .n_blocks = s->n_blocks,
    .n_rounds = s->n_rounds,
    .block_bytes = s->block_bytes,
    .messages = g_array_new (FALSE, FALSE, sizeof (LsCollectiveMessage)),
  };
  m->held = g_new0 (uint32_t, (size_t) (m->n_rounds + 1) * n_places (m) * m->n_blocks);
  for (uint32_t rank = 0; rank < m->n; rank++)
    for (uint32_t block = 0; block < m->n_blocks; block++)
      m->held[(size_t) rank * m->n_blocks + block] = starts_with (s, rank, block) ? 1u << rank : 0;
  g_autofree LsSend *room = g_new (LsSend, MAX (1, s->max_sends));
  for (uint32_t round = 0; round < m->n_rounds; round++)
    run_round (m, s, round, room);
  return m;
}

/* NULL allowed */
static void
ls_collective_messages_free (LsCollectiveMessages *m)
{
  if (!m)
    return;
  g_array_unref (m->messages);
  g_free (m->held);
  g_free (m);
}

uint32_t
ls_collective_messages_block (const LsCollectiveMessages *m, const LsCollectiveMessage *message, uint32_t i)
{
  return (uint32_t) ((message->send.first + (uint64_t) i * MAX (1, message->send.stride)) % m->n_blocks);
}

uint32_t
ls_collective_messages_held (const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t place, uint32_t block)
{
  return after (m, n_rounds)[(size_t) place * m->n_blocks + block];
}

/* ---- measured collectives simulated, and their errors ---- */

#define DEFAULT_TRUST "A"
#define ANY_TRUST     "all"

typedef struct {
  char *reason;
  guint n;
} Skipped;

static const LsSortKey by_reason[] = { { LS_RISING (Skipped, reason) }, { 0 } };

typedef struct {
  LsCollectiveRun *run;
  const LsCollectiveSpec *spec;
  const LsCollectiveNetwork *network;
  GHashTable *machines; /* LsNamedHardware */
  const LsMeasuredFiles *files;
  GArray *skipped;       /* Skipped, by first row      */
  bool has_told_of_nccl; /* lines of variables, which are those of the first cluster */
} Comparison;

static void
skip (Comparison *x, const char *message)
{
  g_autofree char *reason = ls_first_line (message);
  x->run->table.n_skipped++;
  Skipped *s = ls_list_like (x->skipped, by_reason, &(Skipped) { .reason = reason });
  if (s->n++ == 0)
    reason = NULL; /* it is the list's */
}

/* --- which rows --------------------------------------------------------------------- */

static bool
is_wanted (const LsMeasuredCollective *m, const LsCollectiveSpec *spec)
{
  LsCollKind wanted, kind; /* "p2p" is "send-recv" too */
  bool is_op = !spec->op || strcmp (m->op, spec->op) == 0
      || (ls_collective_find_kind (spec->op, &wanted, NULL) && ls_collective_find_kind (m->op, &kind, NULL)
          && kind == wanted);
  bool is_trusted = !m->trust || g_strcmp0 (spec->trust, ANY_TRUST) == 0
      || strcmp (m->trust, spec->trust ? spec->trust : DEFAULT_TRUST) == 0;
  bool is_count = !spec->gpus;
  for (guint i = 0; !is_count && i < spec->gpus->len; i++)
    is_count = g_array_index (spec->gpus, uint32_t, i) == m->n_gpus;
  return is_trusted && is_count && is_op && (!spec->cluster || strcmp (m->cluster, spec->cluster) == 0)
      && (spec->n_nodes == 0 || m->n_nodes == spec->n_nodes)
      && (spec->min_bytes == 0 || m->bytes >= spec->min_bytes)
      && (spec->max_bytes == 0 || m->bytes <= spec->max_bytes);
}

/* --- one row ------------------------------------------------------------------------ */

static gboolean
has_room (const LsCluster *c, LsCollKind kind, const LsMeasuredCollective *m, GError **error)
{
  uint32_t least = UINT32_MAX;
  for (uint32_t node = 0; node < m->n_nodes; node++)
    least = MIN (least, ls_cluster_gpus_of (c, node));
  if (m->n_gpus / m->n_nodes > least)
    return ls_fail (error, LS_ERROR_CONFLICT, "a node of %s has %u %s; got %u on %u", m->cluster, least,
                    ls_cluster_chip_word (&c->spec, least), m->n_gpus, m->n_nodes);
  if (kind == LS_COLL_SEND_RECV && m->n_gpus != 2)
    return ls_fail (error, LS_ERROR_CONFLICT, "%s is between two %s; got %u", m->op,
                    ls_cluster_chip_word (&c->spec, 2), m->n_gpus);
  return TRUE;
}

static LsCollRequest
request_of (const LsCollectiveSpec *spec, LsCollKind kind, const uint32_t *gpus, uint32_t n)
{
  return (LsCollRequest) { .kind = kind,
                           .gpus = gpus,
                           .n = n,
                           .algorithm = spec->algorithm,
                           .protocol = (LsProtocol) spec->protocol,
                           .max_ctas = spec->max_ctas };
}

/* By which it was measured, where nothing is typed. */
static gboolean
take_way (const LsMeasuredCollective *m, LsCollRequest *request, GError **error)
{
  const bool has_algorithm = m->algorithm && *m->algorithm, has_protocol = m->protocol && *m->protocol;
  if (has_algorithm && !g_strv_contains (ls_coll_algorithms (), m->algorithm))
    return ls_fail (error, LS_ERROR_INPUT, "no algorithm is named \"%s\"", m->algorithm);
  int protocol = has_protocol ? ls_enum_value (protocol_names, m->protocol) : LS_PROTOCOL_AUTO;
  if (protocol < 0)
    return ls_fail (error, LS_ERROR_INPUT, "no protocol is named \"%s\"", m->protocol);
  if (has_algorithm && !request->algorithm)
    request->algorithm = m->algorithm;
  if (request->protocol == LS_PROTOCOL_AUTO)
    request->protocol = (LsProtocol) protocol;
  return TRUE;
}

static gboolean
simulate (const Comparison *x, LsNamedHardware *machine, const LsMeasuredCollective *m, LsCollectiveRow *row,
          GError **error)
{
  LsCollKind kind;
  if (!ls_collective_find_kind (m->op, &kind, NULL))
    return ls_fail (error, LS_ERROR_INPUT, "no operation is named \"%s\"", m->op);
  const LsCluster *c = machine->cluster;
  if (!c || c->spec.n_nodes != m->n_nodes) {
    ls_cluster_free (machine->cluster);
    c = machine->cluster = ls_hardware_build (machine->hardware, m->n_nodes, error);
  }
  if (!c || !has_room (c, kind, m, error))
    return FALSE;
  row->chips = ls_cluster_chip_word (&c->spec, m->n_gpus);
  g_autofree uint32_t *gpus = g_new (uint32_t, m->n_gpus);
  uint32_t per_node = m->n_gpus / m->n_nodes;
  for (uint32_t i = 0; i < m->n_gpus; i++)
    gpus[i] = ls_cluster_gpu_at (c, i / per_node, i % per_node);
  LsCollRequest request = request_of (x->spec, kind, gpus, m->n_gpus);
  request.bytes = m->bytes;
  if (!take_way (m, &request, error))
    return FALSE;
  gboolean ok = time_call (c, &machine->hardware->nccl, &request, x->network, NULL, row, error);
  row->time += ls_collective_launch (m, &c->spec);
  return ok;
}

static void
compare_row (Comparison *x, const LsMeasuredCollective *m)
{
  if (!*m->cluster) {
    skip (x, "the cluster is not known");
    return;
  }
  LsNamedHardware *machine = ls_named_hardware (x->machines, m->cluster, x->files);
  if (!machine->hardware) {
    skip (x, machine->reason);
    return;
  }
  if (!x->has_told_of_nccl)
    ls_note_nccl (NULL, machine->hardware, NULL, x->run->notes);
  x->has_told_of_nccl = true;
  g_autoptr (GError) error = NULL;
  LsCollectiveRow row
      = { .cluster = m->cluster, .op = m->op, .n_nodes = m->n_nodes, .measured_us = m->time_us };
  if (simulate (x, machine, m, &row, &error))
    g_array_append_val (x->run->rows, row);
  else
    skip (x, error->message);
}

/* --- errors ------------------------------------------------------------------------- */

/* Interned. */
static const char *
family_of (const LsCollectiveRow *row)
{
  g_autofree char *name = g_strconcat (row->cluster, "/", row->op, NULL);
  return g_intern_string (name);
}

/* Of the rows from min to max bytes, of each family and of all. */
static void
score (const GArray *rows, const GPtrArray *names, uint64_t min, uint64_t max, LsScore *ret_families,
       LsScore *ret_total)
{
  g_autofree LsScoreRow *chosen = g_new (LsScoreRow, rows->len + 1);
  guint n = 0;
  for (guint i = 0; i < rows->len; i++) {
    const LsCollectiveRow *row = &g_array_index (rows, LsCollectiveRow, i);
    if (row->bytes >= min && row->bytes <= max)
      chosen[n++] = (LsScoreRow) { .family = family_of (row),
                                   .measured_s = row->measured_us * 1e-6,
                                   .predicted_s = ls_time_to_s (row->time) };
  }
  ls_score_by_family (chosen, n, (const char *const *) names->pdata, names->len, ret_families, ret_total);
}

static void
score_all (LsCollectiveRun *run)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < run->rows->len; i++) {
    const char *name = family_of (&g_array_index (run->rows, LsCollectiveRow, i));
    if (!g_ptr_array_find (names, name, NULL))
      g_ptr_array_add (names, (gpointer) name);
  }
  g_ptr_array_sort (names, ls_compare_texts);
  LsCollectiveFamily *total = &run->table.total;
  total->name = "all";
  g_autofree LsScore *all = g_new (LsScore, names->len + 1), *large = g_new (LsScore, names->len + 1),
                     *small = g_new (LsScore, names->len + 1);
  score (run->rows, names, 0, UINT64_MAX, all, &total->all);
  score (run->rows, names, LS_COLLECTIVE_LARGE_BYTES, UINT64_MAX, large, &total->large);
  score (run->rows, names, 0, LS_COLLECTIVE_LARGE_BYTES - 1, small, &total->small);
  for (guint i = 0; i < names->len; i++)
    ls_list_add (run->families, &(LsCollectiveFamily) { names->pdata[i], all[i], large[i], small[i] });
}

/* What a time rests on besides the call, and that nobody knows how far off it is. nccl NULL: of several that
 * are compared; last: of the most GPUs. */
static void
assume (LsCollectiveRun *run, const LsCollectiveSpec *spec, const LsHardware *h, const LsCollectiveRow *last)
{
  const LsNccl *nccl = h ? &h->nccl : NULL;
  const uint32_t n_ctas = spec->max_ctas > 0 ? spec->max_ctas : nccl ? nccl->max_ctas : 0;
  const char *source = nccl && nccl->names_generation ? nccl->tables.source : NULL; /* "NCCL 2.30.7 (...)" */
  const char *left = spec->nccl_env ? ", as --nccl-env leaves them" : "";
  g_autofree char *of = source ? g_strndup (source, strcspn (source, "(:")) : NULL,
                  *tuner = source ? g_strdup_printf ("by the tables of %s%s", g_strchomp (of), left)
                                  : g_strdup (h ? "the fastest" : "by the tables of each"),
                  *gpus = g_strdup_printf ("%u", last->n_ranks),
                  *nodes = g_strdup_printf ("%u", MAX (spec->gpus ? spec->n_nodes : 0, last->n_nodes)),
                  *ctas = g_strdup_printf ("%u", n_ctas),
                  *slice = h && !h->spec.torus.is_given ? ls_slice_text (&h->spec) : NULL;
  const bool is_one = !spec->compare && !run->table.is_scaling, is_given = spec->protocol != LS_PROTOCOL_AUTO,
             is_barrier = !spec->compare && last->bytes == 0,
             has_ends = g_strcmp0 (last->op, "p2p") == 0 || g_strcmp0 (last->op, "send-recv") == 0,
             is_sized = spec->n_nodes > 0 || spec->slice[0] > 0, has_ctas = n_ctas > 0,
             has_nccl = !h || !ls_cluster_traits (&h->spec)->is_slice, /* a torus has none */
      has_trust = spec->compare && ((const LsMeasuredCollective *) run->measured->pdata[0])->trust;
  const char *by_nodes = is_sized ? "all of what is given" : "all of the nodes",
             *by_gpus = spec->gpus ? "by --gpus" : "the cluster's file",
             *by_rows = run->has_ways ? "as a row has it, else auto" : NULL,
             *rates = spec->compare ? "gpu.nccl=NAME behind the cluster's name in FILE" : "--nccl NAME";
  const struct {
    bool holds;
    const char *key, *value, *words, *why, *instead;
  } rows[] = {
    { has_nccl, "algorithm",
      spec->algorithm ? spec->algorithm
          : by_rows   ? by_rows
                      : "auto",
      "algorithm %s", spec->algorithm ? NULL : tuner, "--algorithm KIND" },
    { has_nccl, "protocol", by_rows && !is_given ? by_rows : ls_protocol_names[spec->protocol], "protocol %s",
      is_given ? NULL : tuner, "--protocol KIND" },
    { has_nccl && !is_barrier, "max_ctas", has_ctas ? ctas : "as the library has it",
      n_ctas == 1    ? "at most %s CTA"
          : has_ctas ? "at most %s CTAs"
                     : "CTAs %s",
      spec->max_ctas > 0 ? NULL
          : has_ctas     ? "the file of --nccl"
                         : "by default",
      "--max-ctas N" },
    { has_nccl, "nccl", nccl ? nccl->name : "each accelerator", "rates of %s",
      spec->nccl ? NULL : "the accelerator's file", rates },
    { is_one && !has_ends, "gpus", gpus, "--gpus %s", spec->gpus ? NULL : by_nodes, "--gpus N" },
    { is_one && has_nccl, "nodes", nodes, has_ends ? "--nodes %s" : NULL, spec->n_nodes > 0 ? NULL : by_gpus,
      "--nodes N" },
    { spec->compare, "slice", slice, "slices of %s", "the largest",
      "node.torus.slice=[A,B] behind the cluster's name in FILE" },
    { true, "network", spec->network ? spec->network : "flow", "network %s",
      spec->network ? NULL : "by default", "--network KIND" },
    { !is_barrier, "datatype", "float", NULL, "times depend on bytes alone", "--min SIZE --max SIZE" },
    { !spec->compare, "interval", "unknown", "interval %s", "no errors of single calls are kept" },
    { has_trust, "trust", spec->trust ? spec->trust : DEFAULT_TRUST, "rows of trust %s",
      spec->trust ? NULL : "by default", "--trust NAME" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].holds && rows[i].value)
      ls_assumptions_add (&run->table.assumptions, rows[i].key, g_strdup (rows[i].value), rows[i].words,
                          rows[i].why, rows[i].instead);
}

/* Reads spec->compare and fills a new run with its rows, simulated, and their errors. */
static gboolean
ls_collective_compare (LsCollectiveRun *run, const LsCollectiveSpec *spec, const LsCollectiveNetwork *network,
                       GError **error)
{
  if (!ls_collective_read_measured (spec, run, error))
    return FALSE;
  g_autoptr (GHashTable) machines = ls_named_hardware_new ();
  g_autoptr (GArray) skipped = ls_list_new (sizeof (Skipped), ls_clear_text);
  g_autofree char *typed = NULL;
  const LsMeasuredFiles files = files_of (spec, &typed);
  Comparison x = { run, spec, network, machines, &files, skipped, false };

  guint n_wanted = 0;
  for (guint i = 0; i < run->measured->len; i++) {
    const LsMeasuredCollective *m = g_ptr_array_index (run->measured, i);
    if (!is_wanted (m, spec))
      continue;
    n_wanted++;
    compare_row (&x, m);
  }
  if (n_wanted == 0)
    return ls_fail (error, LS_ERROR_USAGE, "%s: none of %u rows matches",
                    spec->more ? "the files" : spec->compare, run->measured->len);
  score_all (run);
  for (guint i = 0; i < skipped->len; i++) {
    const Skipped *s = &g_array_index (skipped, Skipped, i);
    ls_note (run->notes, "%u row%s skipped: %s", s->n, s->n == 1 ? "" : "s", s->reason);
  }
  ls_collective_note_regret (run);
  g_autofree char *file = spec->more ? g_strdup ("files") : g_path_get_basename (spec->compare);
  run->title = g_strdup_printf ("%s: %u of %u rows selected, %u compared", file, n_wanted, run->measured->len,
                                run->rows->len);
  if (run->rows->len > 0) {
    const LsCollectiveRow *first = &g_array_index (run->rows, LsCollectiveRow, 0);
    bool is_one = g_hash_table_size (machines) == 1;
    assume (run, spec, is_one ? ls_named_hardware (machines, first->cluster, &files)->hardware : NULL, first);
    return TRUE;
  }
  g_ptr_array_add (run->notes, NULL); /* a table without a row says nothing */
  g_autofree char *reasons = g_strjoinv ("\n  ", (char **) run->notes->pdata);
  return ls_fail (error, LS_ERROR_CONFLICT, "no row could be compared:\n  %s", reasons);
}

/* ---- the sizes that are asked for ---- */

#define DEFAULT_MIN_BYTES UINT64_C (1024)
#define DEFAULT_MAX_BYTES (UINT64_C (8) << 30)
#define DEFAULT_FACTOR    2
/* Of several numbers of GPUs five sizes: as many curves as a chart bears. */
#define DEFAULT_SCALING_MIN_BYTES (UINT64_C (1) << 20)
#define DEFAULT_SCALING_FACTOR    8

void
ls_collective_run_free (LsCollectiveRun *run)
{
  if (!run)
    return;
  g_free (run->cluster);
  g_free (run->op);
  g_clear_pointer (&run->measured, g_ptr_array_unref);
  g_array_unref (run->rows);
  g_array_unref (run->families);
  g_ptr_array_unref (run->notes);
  g_free (run->title);
  g_clear_pointer (&run->table.assumptions, g_array_unref);
  ls_collective_messages_free (run->messages);
  g_free (run);
}

/* --- which GPUs ------------------------------------------------------------------- */

/* The two ends of a p2p: on different nodes if there are two. */
static GArray *
two_ends (const LsCluster *c, const char *op, uint32_t n_gpus, GError **error)
{
  if (c->n_gpus < 2 || (n_gpus > 0 && n_gpus != 2))
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "--op %s is between two %s; got %u\n"
                         "note: leave --gpus out; --nodes 2 puts one on each of two",
                         op, ls_cluster_chip_word (&c->spec, 2), n_gpus > 0 ? n_gpus : c->n_gpus);
  uint32_t ends[] = { 0, c->spec.n_nodes > 1 ? ls_cluster_gpu_at (c, 1, 0) : 1 };
  return g_array_append_vals (g_array_new (FALSE, FALSE, sizeof *ends), ends, 2);
}

/* --- the table -------------------------------------------------------------------- */

typedef struct {
  LsCollectiveRun *run;
  const LsCollectiveSpec *spec;
  LsCollKind kind;
  const LsCollectiveNetwork *networks;
  const LsHardware *hardware;
  GString *slices;             /* so far */
  bool heard[N_CHOICES];       /* some call is another without that option */
  uint64_t n_messages, n_done; /* one by one: so far asked for, and moved */
} Sweep;

/* Of all sizes on these GPUs. */
static void
tell_messages (guint64 n_done, guint64 n_to_do, gpointer data)
{
  const Sweep *x = data;
  ls_progress_tell (&x->spec->progress, x->n_done + n_done, MAX (x->n_messages, x->n_done + n_to_do));
}

/* Which of the options that were typed a call takes another time by, or has anyway. */
static void
hear (Sweep *x, const LsCluster *c, const LsCollRequest *request, const LsCollectiveNetwork *network,
      const LsCollectiveRow *row)
{
  LsCollRequest without[N_CHOICES] = { *request, *request, *request };
  without[BY_ALGORITHM].algorithm = NULL;
  without[BY_PROTOCOL].protocol = LS_PROTOCOL_AUTO;
  without[BY_CTAS].max_ctas = 0;
  for (int i = 0; i < N_CHOICES; i++) {
    LsCollectiveRow other = *row;
    x->heard[i] = x->heard[i] || !is_typed (x->spec, i)
        || !time_call (c, &x->hardware->nccl, &without[i], network, NULL, &other, NULL)
        || other.time != row->time
        || (i != BY_CTAS && row->n_ranks > 1 && strcmp (other.algorithm, row->algorithm) == 0
            && strcmp (other.protocol, row->protocol) == 0);
  }
}

static gboolean
add_size (Sweep *x, const LsCluster *c, const LsCollRequest *request, GError **error)
{
  const LsProgress progress = { tell_messages, x };
  for (guint k = 0; k < x->run->table.n_networks; k++) {
    LsCollectiveRow row = { .cluster = x->run->cluster, .op = x->run->op, .measured_us = NAN };
    uint64_t n = 0;
    row.n_nodes = ls_cluster_host_of (c, request->gpus[request->n - 1]) + 1; /* the first leave no node out */
    row.chips = ls_cluster_chip_word (&c->spec, request->n);
    if (!count_messages (c, &x->hardware->nccl, request, &x->networks[k], &n, error)
        || !time_call (c, &x->hardware->nccl, request, &x->networks[k], n > 0 ? &progress : NULL, &row,
                       error))
      return FALSE;
    x->n_done += n;
    hear (x, c, request, &x->networks[k], &row);
    g_array_append_val (x->run->rows, row);
  }
  return TRUE;
}

/* A barrier has no sizes. */
static gboolean
add_sizes (Sweep *x, const LsCluster *c, LsCollRequest *request, GError **error)
{
  const LsCollectiveSpec *spec = x->spec;
  uint64_t max = spec->max_bytes > 0 ? spec->max_bytes : MAX (DEFAULT_MAX_BYTES, spec->min_bytes);
  gboolean is_scaling = x->run->table.is_scaling;
  uint64_t min = spec->min_bytes > 0
      ? spec->min_bytes
      : MIN (is_scaling || spec->messages ? DEFAULT_SCALING_MIN_BYTES : DEFAULT_MIN_BYTES, max);
  uint32_t factor = spec->factor > 0 ? spec->factor : is_scaling ? DEFAULT_SCALING_FACTOR : DEFAULT_FACTOR;
  if (request->kind == LS_COLL_BARRIER || spec->messages)
    max = min;
  for (request->bytes = min; request->bytes <= max; request->bytes *= factor)
    for (guint k = 0; k < x->run->table.n_networks; k++) {
      uint64_t n;
      if (!count_messages (c, &x->hardware->nccl, request, &x->networks[k], &n, error))
        return FALSE;
      x->n_messages += n;
    }
  if (!ls_coll_check_all (x->n_messages, error))
    return FALSE;
  for (request->bytes = min; request->bytes <= max; request->bytes *= factor)
    if (!add_size (x, c, request, error))
      return FALSE;
  return TRUE;
}

/* Of the size that was just timed. */
static gboolean
add_messages (Sweep *x, const LsCluster *c, LsCollRequest *request, GError **error)
{
  const LsCollectiveRow *row = &g_array_index (x->run->rows, LsCollectiveRow, x->run->rows->len - 1);
  request->bytes = row->bytes;
  request->algorithm = *row->algorithm ? row->algorithm : NULL;
  if (!ls_coll_check_size (c, &x->hardware->nccl, request, LS_NETWORK_STEP, error))
    return FALSE;
  x->run->messages = ls_collective_messages_new (c, &x->hardware->nccl, request, error);
  return x->run->messages != NULL;
}

/* Of several numbers of GPUs once: of the last one, with the slices of all. */
static void
add_place (Sweep *x, const LsCluster *c, uint32_t n)
{
  const bool is_given = x->spec->slice[0] > 0, is_slice = ls_cluster_traits (&c->spec)->is_slice;
  GArray **all = &x->run->table.assumptions;
  g_autofree char *slice = c->spec.torus.is_given ? NULL : ls_slice_text (&c->spec);
  if (slice)
    g_string_append_printf (x->slices, "%s%s", x->slices->len > 0 ? ", " : "", slice);
  if (!x->run->table.is_scaling)
    ls_assumptions_add_place (all, x->spec->cluster, &c->spec, is_given, is_slice ? "" : NULL);
  else if (n == g_array_index (x->spec->gpus, uint32_t, x->spec->gpus->len - 1)) {
    ls_assumptions_add_unsaid (all, x->spec->cluster, &c->spec, c->spec.n_nodes > 1);
    if (slice)
      ls_assumptions_add (all, "slice", g_strdup (x->slices->str), "slices of %s", "by the number of chips",
                          c->spec.torus.n_axes == 2 ? "--slice AxB" : "--slice AxBxC");
  }
}

/* All sizes on n_gpus; 0: all. */
static gboolean
add_gpus (Sweep *x, uint32_t n_gpus, GError **error)
{
  g_autoptr (LsCluster) c = ls_hardware_build_asked (x->hardware, x->spec->n_nodes, n_gpus, error);
  if (!c)
    return FALSE;
  g_autoptr (GArray) gpus = x->kind == LS_COLL_SEND_RECV ? two_ends (c, x->run->op, n_gpus, error)
                                                         : g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (!gpus)
    return FALSE;
  const uint32_t n = n_gpus > 0 ? n_gpus : c->n_gpus;
  for (uint32_t rank = 0; rank < n && x->kind != LS_COLL_SEND_RECV; rank++) { /* as those of a job lie */
    uint32_t gpu = ls_cluster_gpu_of (&c->spec, rank);
    g_array_append_val (gpus, gpu);
  }
  g_autoptr (LsCollMemo) memo = ls_coll_memo_new ();
  LsCollRequest request = request_of (x->spec, x->kind, (const uint32_t *) (gpointer) gpus->data, gpus->len);
  request.memo = memo;
  if (!add_sizes (x, c, &request, error))
    return FALSE;
  const LsCollectiveRow *last = &g_array_index (x->run->rows, LsCollectiveRow, x->run->rows->len - 1);
  if (n_gpus > 0 && x->spec->n_nodes > last->n_nodes)
    ls_note (x->run->notes, "--nodes %u: %u %s fill the first %u of them, the others are idle",
             x->spec->n_nodes, last->n_ranks, last->chips, last->n_nodes);
  add_place (x, c, n);
  return !x->spec->messages || add_messages (x, c, &request, error);
}

/* What a chart over GPUs marks; a torus has none of these, nor nodes of unequal size. */
static void
note_boundaries (LsCollectiveTable *t, const LsClusterSpec *spec)
{
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (spec); k++)
    if (ls_cluster_spec_of_kind (spec, k)->gpus_per_node != spec->gpus_per_node)
      return;
  if (ls_cluster_traits (spec)->is_slice)
    return;
  t->gpus_per_node = spec->gpus_per_node;
  t->gpus_per_leaf = (uint64_t) spec->network.nodes_per_leaf * spec->gpus_per_node;
  if (spec->fabric == LS_FABRIC_FAT_TREE)
    t->gpus_per_pod = (uint64_t) spec->network.nodes_per_pod * spec->gpus_per_node;
  if (ls_is_dragonfly (spec))
    t->gpus_per_pod = (uint64_t) spec->network.nodes_per_group * spec->gpus_per_node;
}

static char *
title_of (const LsCollectiveRun *run)
{
  const LsCollectiveRow *first = &g_array_index (run->rows, LsCollectiveRow, 0);
  const LsCollectiveRow *last = &g_array_index (run->rows, LsCollectiveRow, run->rows->len - 1);
  if (run->table.is_scaling)
    return g_strdup_printf ("%s on %u to %u %s of %s", run->op, first->n_ranks, last->n_ranks,
                            run->table.chips, run->cluster);
  return g_strdup_printf ("%s on %u %s of %s, %u node%s", run->op, last->n_ranks, last->chips, run->cluster,
                          last->n_nodes, last->n_nodes == 1 ? "" : "s");
}

static gboolean
tabulate (LsCollectiveRun *run, const LsCollectiveSpec *spec, LsCollKind kind,
          const LsCollectiveNetwork *networks, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *typed = NULL;
  const LsMeasuredFiles files = files_of (spec, &typed);
  g_autoptr (LsHardware) hardware = ls_hardware_load_with (spec->cluster, &files, diags);
  if (!hardware)
    return ls_diag_list_to_error (diags, error);
  if (!ls_hardware_set_slice (hardware, spec->slice, error))
    return FALSE;
  run->cluster = g_strdup (hardware->spec.name);
  run->op = g_strdup (spec->op);
  run->table.chips = ls_cluster_chip_word (&hardware->spec, 2);
  run->table.is_scaling = spec->gpus && spec->gpus->len > 1;
  note_boundaries (&run->table, &hardware->spec);

  g_autoptr (GString) slices = g_string_new (NULL);
  Sweep x = { run, spec, kind, networks, hardware, slices };
  if (!spec->gpus && !add_gpus (&x, 0, error))
    return FALSE;
  for (guint i = 0; spec->gpus && i < spec->gpus->len; i++)
    if (!add_gpus (&x, g_array_index (spec->gpus, uint32_t, i), error))
      return FALSE;
  run->title = title_of (run);
  const LsCollectiveRow *last = &g_array_index (run->rows, LsCollectiveRow, run->rows->len - 1);
  bool is_across = last->n_ranks > ls_cluster_taken (&hardware->spec); /* of the most */
  ls_note_network (&hardware->spec, is_across, run->notes);
  ls_cluster_doubts (&hardware->spec, run->notes);
  g_autoptr (GString) known = g_string_new (NULL);
  if (!spec->nccl || ls_hardware_has_other_nccl (hardware)) {
    ls_append_known (known, "collectives in a node", &hardware->spec.gpu.collectives_known);
    if (is_across)
      ls_append_known (known, "collectives across nodes", &hardware->spec.network.known);
  }
  ls_note_known (known, run->notes);
  ls_note_nccl (spec->nccl, hardware, NULL, run->notes);
  if (kind == LS_COLL_BARRIER && (spec->min_bytes | spec->max_bytes | spec->factor))
    ls_note (run->notes, "a barrier moves nothing: --min, --max and --factor have no effect here");
  for (int i = 0; i < N_CHOICES; i++)
    if (!x.heard[i] && is_typed (spec, i))
      ls_note (run->notes, "%s has no effect here: every call takes as long without it", choices[i]);
  assume (run, spec, hardware, last);
  return TRUE;
}

/* --- the whole -------------------------------------------------------------------- */

static gboolean
check_given (const LsCollectiveSpec *spec, guint n_networks, GError **error)
{
  const bool has_many = n_networks > 1, has_range = spec->max_bytes > 0 || spec->factor > 0,
             has_counts = spec->gpus && spec->gpus->len > 1;
  const LsWrong rows[] = {
    { spec->messages && has_many, "--messages does not go with --network all" },
    { spec->messages && has_range, "--messages is of one size, --min; leave --max and --factor out" },
    { spec->messages && has_counts, "--messages is of one number of --gpus" },
  };
  if (!ls_check (rows, G_N_ELEMENTS (rows), error))
    return FALSE;
  if (spec->compare && has_many)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--compare takes one fidelity of the network; got --network all");
  g_autofree char *min = ls_format_bytes (spec->min_bytes), *max = ls_format_bytes (spec->max_bytes);
  return spec->max_bytes == 0 || spec->min_bytes <= spec->max_bytes
      || ls_fail (error, LS_ERROR_USAGE, "--min %s exceeds --max %s", min, max);
}

LsCollectiveRun *
ls_collective_run_new (const LsCollectiveSpec *spec, GError **error)
{
  LsCollKind kind = LS_COLL_ALL_REDUCE;
  const LsCollectiveNetwork *networks;
  guint n_networks;
  if ((spec->op && !ls_collective_find_kind (spec->op, &kind, error))
      || (spec->algorithm && !g_strv_contains (ls_coll_algorithms (), spec->algorithm)
          && !ls_fail_word (error, "--algorithm", spec->algorithm, ls_coll_algorithms ()))
      || !find_networks (spec->network ? spec->network : "flow", &networks, &n_networks, error)
      || !check_given (spec, n_networks, error))
    return NULL;

  g_autoptr (LsCollectiveRun) run = g_new0 (LsCollectiveRun, 1);
  run->rows = g_array_new (FALSE, TRUE, sizeof (LsCollectiveRow));
  run->families = g_array_new (FALSE, TRUE, sizeof (LsCollectiveFamily));
  run->notes = g_ptr_array_new_with_free_func (g_free);
  run->table.n_networks = n_networks;
  run->table.is_comparison = spec->compare != NULL;
  if (!(spec->compare ? ls_collective_compare (run, spec, networks, error)
                      : tabulate (run, spec, kind, networks, error)))
    return NULL;
  run->table.title = run->title;
  run->table.messages = run->messages;
  run->table.n_rows = run->rows->len;
  run->table.rows = (const LsCollectiveRow *) (gpointer) run->rows->data;
  run->table.n_families = run->families->len;
  run->table.families = (const LsCollectiveFamily *) (gpointer) run->families->data;
  return g_steal_pointer (&run);
}
