/* data/machines/read_reliability.c — topologies/reliability/ and topologies/jitter/ read: how parts fail,
 * and how they differ. */
#include "data/machines/machines.h"

#include <math.h>

#include "data/datadir.h"

/* --- topologies/jitter/ -------------------------------------------------------------------------- */

#define OF_JITTER(key_, member_) key_, LS_FIELD_DOUBLE, offsetof (LsJitter, member_)

const LsField ls_jitter_fields[] = {
  LS_FIELDS_HEADER (LsJitter),
  { OF_JITTER ("noise", noise), .required = true, .max = 0.5,
    .meaning = "standard deviation of the kernel time of an accelerator in steps of one second, of its mean; "
               "steps of T seconds have it over the root of T" },
  { OF_JITTER ("spread", spread), .max = 0.2, .default_text = "`clock_spread` of the accelerator",
    .meaning = "standard deviation of the rate of matrix products among accelerators" },
  { OF_JITTER ("day", day), .max = 0.5, .default_text = "0",
    .meaning = "how much longer steps of all are in the slowest hour of a day than in the fastest" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

bool
ls_jitter_read (const LsJsonDoc *doc, LsJitter *ret_jitter, LsDiagList *diags)
{
  LsJitter j = { .spread = NAN };
  bool ok = ls_fields_read_file (ls_jitter_fields, "jitter", doc, &j, diags);
  if (ok)
    *ret_jitter = j;
  else
    ls_jitter_clear (&j);
  return ok;
}

bool
ls_jitter_load (const char *name, LsJitter *ret_jitter, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_JITTER, name, diags);
  return doc && ls_jitter_read (doc, ret_jitter, diags);
}

#define MAX_PER_DAY 1e6
#define MAX_TIME_PS (90.0 * 86400 * (double) LS_S)

#define SEEN(unit_)                                                                                          \
  LS_FIELD_DOUBLE, offsetof (LsExposure, of) + (unit_) * sizeof (double), .above = true, .max = 1e9,         \
                                                                          .default_text = "not said"

static const LsField seen_fields[] = {
  { "days", LS_FIELD_DOUBLE, offsetof (LsExposure, days), .required = true, .above = true, .max = 1e5,
    .meaning = "how long they were counted" },
  { "gpus", SEEN (LS_FAILS_GPU), .meaning = "on so many accelerators" },
  { "nodes", SEEN (LS_FAILS_NODE), .meaning = "that is, nodes" },
  { "nics", SEEN (LS_FAILS_NIC), .meaning = "that is, ports of the network" },
  { "jobs", SEEN (LS_FAILS_JOB), .meaning = "that is, jobs" },
  { "racks", SEEN (LS_FAILS_RACK), .meaning = "that is, racks" },
  { NULL },
};

static const LsEnumName units[]
    = { { "gpu", LS_FAILS_GPU }, { "node", LS_FAILS_NODE }, { "nic", LS_FAILS_NIC },
        { "job", LS_FAILS_JOB }, { "rack", LS_FAILS_RACK }, { NULL } };
static const LsEnumName effects[] = { { "replace", LS_FAILURE_REPLACE },
                                      { "restart", LS_FAILURE_RESTART },
                                      { "planned", LS_FAILURE_PLANNED },
                                      { "stall", LS_FAILURE_STALL },
                                      { "slow", LS_FAILURE_SLOW },
                                      { "corrupt", LS_FAILURE_CORRUPT },
                                      { NULL } };

#define CAUSE(key_, kind_, member_) key_, kind_, offsetof (LsFailureCause, member_)
#define OF(key_, kind_, member_)    key_, kind_, offsetof (LsReliability, member_)

static const LsField cause_fields[] = {
  { CAUSE ("name", LS_FIELD_STRING, name), .required = true, .meaning = "what tables call it" },
  { CAUSE ("unit", LS_FIELD_ENUM, unit), .required = true, .names = units,
    .meaning = "what fails: its rate is of one of these" },
  { CAUSE ("effect", LS_FIELD_ENUM, effect), .names = effects, .default_text = "`\"replace\"`",
    .meaning
    = "replace: the job ends, and goes on with another node; restart: it ends, and goes on with the same; "
      "planned: the same, after a checkpoint; stall: it waits; slow: it is slower until the node is found "
      "and replaced; corrupt: it goes on with wrong numbers, and later back after them" },
  { CAUSE ("count", LS_FIELD_DOUBLE, count), .max = 1e9, .default_text = "`per_day` says it",
    .meaning = "how many were seen" },
  { CAUSE ("per_day", LS_FIELD_DOUBLE, per_day), .max = MAX_PER_DAY, .default_text = "`count` says it",
    .meaning = "how many there are of one unit in a day" },
  { CAUSE ("detect", LS_FIELD_TIME, detect), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until it is noticed; of a stall, how long it is" },
  { CAUSE ("locate", LS_FIELD_TIME, locate), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until the node is found and taken out" },
  { CAUSE ("repair", LS_FIELD_TIME, repair), .max = MAX_TIME_PS, .default_text = "that of the file",
    .meaning = "until a node that failed is back" },
  { CAUSE ("nodes", LS_FIELD_UINT, nodes), .min = 1, .max = 100000, .default_text = "1",
    .meaning = "of replace: nodes that it takes at once, such as those behind a switch" },
  { CAUSE ("factor", LS_FIELD_DOUBLE, factor), .min = 1, .max = 100, .default_text = "1",
    .meaning = "of slow: a step takes so many times as long" },
  { NULL },
};

static const LsFailureCause cause_blank
    = { .effect = LS_FAILURE_REPLACE, .factor = 1, .nodes = 1, .repair = LS_TIME_NEVER };

const LsField ls_reliability_fields[] = {
  LS_FIELDS_HEADER (LsReliability),
  { "seen", LS_FIELD_OBJECT, offsetof (LsReliability, seen), .fields = seen_fields,
    .default_text = "needed by causes with a count", .meaning = "where failures were counted" },
  { OF ("causes", LS_FIELD_ARRAY, causes), .required = true, .fields = cause_fields, .blank = &cause_blank,
    .element_size = sizeof (LsFailureCause), .meaning = "what stops or slows a job" },
  { OF ("gpus_per_node", LS_FIELD_UINT, gpus_per_node), .max = 1e6, .default_text = "as those of the job",
    .meaning = "of the nodes that were counted: a job meets rates of nodes by its accelerators over this" },
  { OF ("nodes_per_rack", LS_FIELD_UINT, nodes_per_rack), .min = 1, .max = 1e6,
    .default_text = "needed by causes of the unit rack",
    .meaning = "a job has its nodes over this many racks" },
  { OF ("place", LS_FIELD_TIME, place), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until a job that ended has its nodes again" },
  { OF ("place_gpus", LS_FIELD_UINT, place_gpus), .default_text = "any",
    .meaning = "with so many GPUs or fewer" },
  { OF ("place_more", LS_FIELD_TIME, place_more), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "and longer for each doubling of them" },
  { OF ("initialise", LS_FIELD_TIME, initialise), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning
    = "until it trains: process groups, compilation, the first batch; reading its checkpoint is apart" },
  { OF ("repair", LS_FIELD_TIME, repair), .max = MAX_TIME_PS, .default_text = "0s",
    .meaning = "until a node that failed is back" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *message)
{
  return ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
}

/* The rate of a cause that was counted. */
static bool
finish_cause (const LsJsonDoc *doc, const cJSON *node, const LsReliability *r, LsFailureCause *c,
              LsDiagList *diags)
{
  bool has_count = cJSON_GetObjectItemCaseSensitive (node, "count"),
       has_rate = cJSON_GetObjectItemCaseSensitive (node, "per_day");
  if (has_count == has_rate)
    return complain (doc, node, diags, "expected either \"count\" or \"per_day\"");
  if (has_count && !(r->seen.days > 0 && r->seen.of[c->unit] > 0))
    return complain (doc, node, diags, "a \"count\" needs \"seen\" with days, and how many units there were");
  if (has_count)
    c->per_day = c->count / (r->seen.days * r->seen.of[c->unit]);
  if (!(c->per_day <= MAX_PER_DAY))
    return complain (doc, node, diags, "expected at most 1e6 a day of one unit");
  if ((c->effect == LS_FAILURE_SLOW) != (c->factor > 1))
    return complain (doc, node, diags, "a \"factor\" above 1 and the effect slow go together");
  if (c->nodes > 1 && c->effect != LS_FAILURE_REPLACE)
    return complain (doc, node, diags, "several \"nodes\" go with the effect replace");
  if (c->unit == LS_FAILS_RACK && r->nodes_per_rack == 0)
    return complain (doc, node, diags, "the unit rack needs \"nodes_per_rack\"");
  if (c->repair == LS_TIME_NEVER)
    c->repair = r->repair;
  return true;
}

bool
ls_reliability_read (const LsJsonDoc *doc, LsReliability *ret_reliability, LsDiagList *diags)
{
  LsReliability r = { 0 };
  bool ok = ls_fields_read_file (ls_reliability_fields, "reliability", doc, &r, diags);
  const cJSON *list = ls_json_doc_at (doc, "causes"), *node = list ? list->child : NULL;
  for (guint i = 0; ok && i < r.causes->len; i++, node = node->next)
    ok = finish_cause (doc, node, &r, &g_array_index (r.causes, LsFailureCause, i), diags);
  if (ok)
    *ret_reliability = r;
  else
    ls_reliability_clear (&r);
  return ok;
}

bool
ls_reliability_load (const char *name, LsReliability *ret_reliability, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_RELIABILITY, name, diags);
  return doc && ls_reliability_read (doc, ret_reliability, diags);
}
