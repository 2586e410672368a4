/* data/machines/read_slurm_topology.c — Slurm's topology.conf (topology/tree and topology/block), and what
 * `scontrol show topology` prints.
 *
 *     SwitchName=leaf1 Nodes=node[01-16]
 *     SwitchName=top Switches=leaf[1-2] LinkSpeed=900
 *     BlockName=rack1 Nodes=node[01-18]
 *
 * It says which nodes are at which switch, and neither rates (the manual page has LinkSpeed in any unit, and
 * without effect) nor how many links there are: above a switch they are as many as the NICs below it here,
 * shared by the switches above. What has nothing above it is joined by one more switch. */
#include "data/machines/fabric_draft.h"

#include <string.h>

#include "cluster/allocation.h"

/* "Nodes=..." of a line, in any case; NULL: it has none. Newly allocated. */
static char *
value_of (const char *line, const char *key)
{
  g_auto (GStrv) words = g_strsplit_set (line, " \t\r", -1);
  for (char **word = words; *word; word++) {
    const char *equals = strchr (*word, '=');
    if (equals && (size_t) (equals - *word) == strlen (key)
        && g_ascii_strncasecmp (*word, key, strlen (key)) == 0)
      return g_strdup (equals + 1);
  }
  return NULL;
}

/* Newly allocated; NULL: a diagnostic. */
static GPtrArray *
names_of (const LsFabricDraft *d, const char *list, int line)
{
  g_autofree char *why = NULL;
  GPtrArray *names = ls_node_list_names (list, &why);
  if (!names)
    ls_draft_wrong (d, line, "\"%.60s\": %s", list, why);
  return names;
}

typedef struct {
  LsFabricDraft *d;
  GHashTable *placed; /* hosts that are at a switch: names of the draft */
  guint n_twice;      /* of a second switch, left out */
} Reading;

static bool
place_nodes (Reading *r, const char *name, const char *list, int line)
{
  g_autoptr (GPtrArray) names = names_of (r->d, list, line);
  for (guint i = 0; names && i < names->len; i++) {
    uint32_t host = ls_draft_host (r->d, names->pdata[i]);
    if (!g_hash_table_add (r->placed, GUINT_TO_POINTER (host)))
      r->n_twice++;
    else
      ls_draft_port (r->d, host, ls_draft_switch (r->d, name, NULL), 0, NULL, line);
  }
  return names != NULL;
}

static bool
place_switches (Reading *r, const char *name, const char *list, int line)
{
  g_autoptr (GPtrArray) names = names_of (r->d, list, line);
  uint32_t above = ls_draft_switch (r->d, name, NULL);
  for (guint i = 0; names && i < names->len; i++)
    ls_draft_link (r->d,
                   (LsDraftLink) { .from = ls_draft_switch (r->d, names->pdata[i], NULL), .to = above });
  return names != NULL;
}

static bool
read_line (Reading *r, char *line, int number)
{
  char *comment = strchr (line, '#');
  if (comment)
    *comment = '\0';
  g_autofree char *name = value_of (line, "SwitchName"), *block = value_of (line, "BlockName"),
                  *nodes = value_of (line, "Nodes"), *switches = value_of (line, "Switches");
  const char *own = name ? name : block;
  if (!own)
    return true;
  if (!switches && !nodes)
    return ls_draft_wrong (r->d, number, "%s: expected Nodes= or Switches=", own);
  return switches ? place_switches (r, own, switches, number) : place_nodes (r, own, nodes, number);
}

/* --- what is above what ----------------------------------------------------------------------- */

/* Links as they were read lead from below upwards, but a draft puts their ends in order. */
static uint32_t
lower_end (const LsDraftLink *link)
{
  return link->is_back ? link->to : link->from;
}
static uint32_t
upper_end (const LsDraftLink *link)
{
  return link->is_back ? link->from : link->to;
}

/* Hosts below each switch, [switches], by one round per level; n_above: switches right above it. */
static void
count_hosts (const LsFabricDraft *d, double *hosts, uint32_t *n_above)
{
  guint n = d->switches->len;
  g_autofree double *own = g_new0 (double, n);
  for (guint i = 0; i < d->ports->len; i++)
    own[g_array_index (d->ports, LsDraftPort, i).at]++;
  for (guint i = 0; i < d->links->len; i++)
    n_above[lower_end (&g_array_index (d->links, LsDraftLink, i))]++;
  memcpy (hosts, own, n * sizeof *own);
  for (guint round = 0; round < 8; round++) { /* Slurm's trees have two or three levels */
    g_autofree double *next = g_memdup2 (own, n * sizeof *own);
    for (guint i = 0; i < d->links->len; i++) {
      const LsDraftLink *link = &g_array_index (d->links, LsDraftLink, i);
      next[upper_end (link)] += hosts[lower_end (link)] / n_above[lower_end (link)];
    }
    memcpy (hosts, next, n * sizeof *next);
  }
}

static void
finish_links (LsFabricDraft *d)
{
  guint n = d->switches->len, n_tops = 0;
  g_autofree uint32_t *n_above = g_new0 (uint32_t, n);
  g_autofree double *hosts = g_new0 (double, n);
  count_hosts (d, hosts, n_above);
  for (guint i = 0; i < d->links->len; i++) {
    LsDraftLink *link = &g_array_index (d->links, LsDraftLink, i);
    link->hosts = hosts[lower_end (link)] / n_above[lower_end (link)];
  }
  for (guint i = 0; i < n; i++)
    n_tops += n_above[i] == 0;
  for (guint i = 0; i < n && n_tops > 1; i++)
    if (n_above[i] == 0)
      ls_draft_link (
          d, (LsDraftLink) { .from = i, .to = ls_draft_switch (d, "joined", "joined"), .hosts = hosts[i] });
  ls_draft_guess (d, "links above a switch: as fast as all NICs below it (non-blocking)");
  if (n_tops > 1)
    ls_draft_guess (d, "a switch \"joined\" above %u that have none in common", n_tops);
}

bool
ls_draft_read_slurm (LsFabricDraft *d, const char *text, gsize n)
{
  g_autofree char *joined = g_strdup (text);
  for (char *at = strstr (joined, "\\\n"); at; at = strstr (at, "\\\n")) /* lines that go on */
    memcpy (at, "  ", 2);
  g_auto (GStrv) lines = g_strsplit (joined, "\n", -1);
  g_autoptr (GHashTable) placed = g_hash_table_new (NULL, NULL);
  Reading r = { .d = d, .placed = placed };
  for (guint i = 0; lines[i]; i++)
    if (!read_line (&r, lines[i], (int) i + 1))
      return false;
  if (d->ports->len == 0)
    return ls_draft_wrong (d, 0, "no SwitchName= or BlockName= with Nodes=");
  if (r.n_twice > 0)
    ls_draft_guess (d, "the first switch of %u nodes that stand at several", r.n_twice);
  finish_links (d);
  return true;
}
