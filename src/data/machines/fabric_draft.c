#include "data/machines/fabric_draft.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "base/printable.h"
#include "cluster/index.h"
#include "data/text/json_out.h"
#include "data/text/text_place.h"

static void
clear_port (gpointer port)
{
  g_free (((LsDraftPort *) port)->nic);
}

LsFabricDraft *
ls_draft_new (LsDiagList *diags)
{
  LsFabricDraft *d = g_new0 (LsFabricDraft, 1);
  d->diags = diags;
  d->switches = ls_list_new (sizeof (LsDraftPlace), ls_clear_2_texts);
  d->hosts = ls_list_new (sizeof (LsDraftPlace), ls_clear_2_texts);
  for (int i = 0; i < 2; i++)
    d->by_key[i] = g_hash_table_new (g_str_hash, g_str_equal);
  d->links = g_array_new (FALSE, TRUE, sizeof (LsDraftLink));
  d->ports = ls_list_new (sizeof (LsDraftPort), clear_port);
  d->guessed = ls_list_new (sizeof (char *), ls_clear_text);
  return d;
}

void
ls_draft_free (LsFabricDraft *d)
{
  if (!d)
    return;
  g_hash_table_unref (d->by_key[0]);
  g_hash_table_unref (d->by_key[1]);
  g_array_unref (d->switches);
  g_array_unref (d->hosts);
  g_array_unref (d->links);
  g_array_unref (d->ports);
  g_array_unref (d->guessed);
  g_free (d);
}

static uint32_t
place (GArray *places, GHashTable *by_key, const char *key, const char *name)
{
  uint32_t number = GPOINTER_TO_UINT (g_hash_table_lookup (by_key, key));
  if (number > 0)
    return number - 1;
  const LsDraftPlace p = { ls_printable (key), ls_printable (name) };
  g_array_append_val (places, p);
  g_hash_table_insert (by_key, p.key, GUINT_TO_POINTER (places->len));
  return places->len - 1;
}

uint32_t
ls_draft_switch (LsFabricDraft *d, const char *key, const char *name)
{
  return place (d->switches, d->by_key[0], key, name ? name : key);
}

uint32_t
ls_draft_host (LsFabricDraft *d, const char *key)
{
  return place (d->hosts, d->by_key[1], key, key);
}

bool
ls_draft_has_switch (const LsFabricDraft *d, const char *key)
{
  return g_hash_table_contains (d->by_key[0], key);
}

void
ls_draft_link (LsFabricDraft *d, LsDraftLink link)
{
  const LsDraftLink sorted
      = { MIN (link.from, link.to), MAX (link.from, link.to), link.rate, link.hosts, link.from > link.to };
  if (link.from != link.to)
    g_array_append_val (d->links, sorted);
}

void
ls_draft_port (LsFabricDraft *d, uint32_t host, uint32_t at, double rate, const char *nic, int line)
{
  const LsDraftPort port = { host, at, rate, g_strdup (nic ? nic : ""), line };
  g_array_append_val (d->ports, port);
}

void
ls_draft_guess (LsFabricDraft *d, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  char *shown = ls_printable (text);
  g_array_append_val (d->guessed, shown);
}

bool
ls_draft_wrong (const LsFabricDraft *d, int line, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (d->diags, LS_ERROR_INPUT, d->path, line, line > 0 ? 1 : 0, NULL, NULL, NULL, "%s", text);
  return false;
}

/* --- nodes and their NICs ------------------------------------------------------------------------------ */

/* node3 before node12: shorter names first. */
static int
compare_names (const char *a, const char *b)
{
  size_t n = strlen (a), m = strlen (b);
  return n == m ? strcmp (a, b) : LS_ORDER (n, m);
}

static int
by_host_and_nic (gconstpointer a, gconstpointer b, gpointer draft)
{
  const LsDraftPort *p = a, *q = b;
  const LsFabricDraft *d = draft;
  int order = compare_names (g_array_index (d->hosts, LsDraftPlace, p->host).key,
                             g_array_index (d->hosts, LsDraftPlace, q->host).key);
  order = order ? order : compare_names (p->nic, q->nic);
  return order ? order : LS_ORDER (p->line, q->line);
}

/* The number of ports that most hosts have, of equally many the larger. n: [hosts] */
static uint32_t
usual_count (const LsFabricDraft *d, const uint32_t *n)
{
  uint32_t best = 0, most = 0;
  g_autofree uint32_t *tally = g_new0 (uint32_t, d->ports->len + 1);
  for (guint i = 0; i < d->hosts->len; i++)
    tally[n[i]]++;
  for (guint k = 1; k <= d->ports->len; k++)
    if (tally[k] >= most) {
      most = tally[k];
      best = k;
    }
  return best;
}

/* Keeps the ports of hosts that have as many as most. Returns that number, and how many hosts these are. */
static uint32_t
sort_ports (LsFabricDraft *d, uint32_t *ret_n_hosts)
{
  g_autofree uint32_t *n = g_new0 (uint32_t, d->hosts->len + 1);
  guint kept = 0;
  for (guint i = 0; i < d->ports->len; i++)
    n[g_array_index (d->ports, LsDraftPort, i).host]++;
  uint32_t rails = usual_count (d, n), n_out = 0;
  const char *out = NULL;
  for (guint i = 0; i < d->hosts->len; i++)
    if (n[i] != rails) {
      out = out ? out : g_array_index (d->hosts, LsDraftPlace, i).name;
      n_out++;
    }
  if (n_out == 1)
    ls_draft_guess (d, "without the host %s, which has not %u ports as most have", out, rails);
  else if (n_out > 1)
    ls_draft_guess (d, "without %u hosts (%s and others) that have not %u ports as most have", n_out, out,
                    rails);
  g_array_sort_with_data (d->ports, by_host_and_nic, d);
  for (guint i = 0; i < d->ports->len; i++) {
    LsDraftPort *port = &g_array_index (d->ports, LsDraftPort, i),
                *to = &g_array_index (d->ports, LsDraftPort, kept);
    bool is_kept = n[port->host] == rails;
    if (is_kept && to != port) {
      g_free (to->nic);
      *to = *port;
      port->nic = NULL;
    }
    kept += is_kept;
  }
  g_array_set_size (d->ports, kept);
  *ret_n_hosts = rails > 0 ? kept / rails : 0;
  return rails;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

/* Ports are sorted: port r of node h is h * rails + r. A rule for each run of nodes at one switch. */
static void
write_nics (const LsFabricDraft *d, uint32_t rails, char *const *names, LsJsonOut *w)
{
  uint32_t n = d->ports->len / rails;
  ls_json_out_begin_array (w, "nics");
  for (uint32_t r = 0; r < rails; r++)
    for (uint32_t h = 0, first = 0; h < n; h++) {
      uint32_t at = g_array_index (d->ports, LsDraftPort, h * rails + r).at;
      if (h + 1 < n && g_array_index (d->ports, LsDraftPort, (h + 1) * rails + r).at == at)
        continue;
      g_autofree char *nodes = g_strdup_printf ("%u-%u", first, h);
      ls_json_out_begin_object (w, NULL);
      ls_json_out_uint (w, "rail", r);
      ls_json_out_string (w, "nodes", nodes);
      ls_json_out_string (w, "switch", names[at]);
      ls_json_out_end_object (w);
      first = h + 1;
    }
  ls_json_out_end_array (w);
}

static void
write_link (const char *key, double rate, const LsLinkSpec *like, const char *path, LsJsonOut *w)
{
  LsLinkSpec link = *like;
  g_autofree char *source = g_strdup_printf ("%s; efficiency and latency: %s", path, like->source);
  link.bandwidth_bytes_per_s = round (rate);
  link.source = source;
  ls_json_out_begin_object (w, key);
  ls_fields_write (ls_link_fields, w, &link, NULL);
  ls_json_out_end_object (w);
}

static const LsSortKey by_ends[]
    = { { LS_RISING (LsDraftLink, from) }, { LS_RISING (LsDraftLink, to) }, { 0 } };

#define MAX_RATE 1e15 /* that a link may have */

/* What the links of a fabric are where nothing else is said. */
typedef struct {
  const LsFabricDraft *d;
  const LsLinkSpec *like;
  double port, node; /* bytes/s of a NIC, and of all NICs of a node */
  char **names;      /* [switches], unique */
} Figures;

/* Those of one pair of switches, as many as are counted from either end, at the mean of their rates; one that
 * stands for those of many hosts in as many parts as a link's rate (link_fields.c) asks for. */
static void
write_links (const Figures *f, LsJsonOut *w)
{
  GArray *links = f->d->links;
  uint32_t n[2] = { 0, 0 };
  double sum = 0;
  ls_sort_by (links, by_ends);
  ls_json_out_begin_array (w, "links");
  for (guint i = 0; i < links->len; i++) {
    const LsDraftLink *link = &g_array_index (links, LsDraftLink, i);
    n[link->is_back]++;
    sum += link->hosts > 0 ? link->hosts * f->node : link->rate > 0 ? link->rate : f->port;
    if (i + 1 < links->len && ls_compare_by (link, link + 1, (gpointer) by_ends) == 0)
      continue;
    double rate = sum / (n[0] + n[1]);
    uint32_t parts = link->hosts > 0 ? 1 + (uint32_t) (rate / MAX_RATE) : MAX (n[0], n[1]);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "from", f->names[link->from]);
    ls_json_out_string (w, "to", f->names[link->to]);
    if (link->hosts == 0 || parts > 1)
      ls_json_out_uint (w, "count", parts);
    rate = link->hosts > 0 ? rate / parts : rate;
    if (rate != f->port)
      write_link ("link", rate, f->like, f->d->path, w);
    ls_json_out_end_object (w);
    n[0] = n[1] = 0;
    sum = 0;
  }
  ls_json_out_end_array (w);
}

/* Names for people where they are unique and not too long, else keys. */
static char **
unique_names (const LsFabricDraft *d)
{
  g_autoptr (GHashTable) times = g_hash_table_new (g_str_hash, g_str_equal);
  char **names = g_new0 (char *, d->switches->len + 1);
  for (int pass = 0; pass < 2; pass++)
    for (guint i = 0; i < d->switches->len; i++) {
      const LsDraftPlace *s = &g_array_index (d->switches, LsDraftPlace, i);
      guint n = GPOINTER_TO_UINT (g_hash_table_lookup (times, s->name));
      if (pass == 0)
        g_hash_table_insert (times, s->name, GUINT_TO_POINTER (n + 1));
      else
        names[i] = g_strndup (n == 1 && strlen (s->name) <= LS_MAX_VERTEX_NAME ? s->name : s->key,
                              LS_MAX_VERTEX_NAME);
    }
  return names;
}

static char *
fabric_json (const Figures *f, uint32_t rails)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "kind", "list");
  ls_json_out_uint (&w, "rails", rails);
  write_link ("link", f->port, f->like, f->d->path, &w);
  ls_json_out_begin_array (&w, "switches");
  for (char **name = f->names; *name; name++)
    ls_json_out_string (&w, NULL, *name);
  ls_json_out_end_array (&w);
  write_links (f, &w);
  write_nics (f->d, rails, f->names, &w);
  ls_json_out_end_object (&w);
  return g_strdup (text->str);
}

/* The lowest rate that a port has; 0: none says it. */
static double
port_rate (const LsFabricDraft *d)
{
  double rate = 0;
  for (guint i = 0; i < d->ports->len; i++) {
    double r = g_array_index (d->ports, LsDraftPort, i).rate;
    rate = r > 0 && (rate == 0 || r < rate) ? r : rate;
  }
  return rate;
}

static void add_change (GPtrArray *changes, const char *format, ...) G_GNUC_PRINTF (2, 3);
static void
add_change (GPtrArray *changes, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (changes, g_strdup_vprintf (format, args));
  va_end (args);
}

/* Without names of NICs a host is at one switch with all that it has. */
static bool
fit_nics (LsFabricDraft *d, const LsClusterSpec *base, uint32_t rails, double rate, GPtrArray *changes)
{
  bool has_nics = *g_array_index (d->ports, LsDraftPort, 0).nic != '\0';
  if (has_nics && rails != base->nics.n && !ls_cluster_traits (base)->has_counts)
    return ls_draft_wrong (d, 0, "hosts have %u ports here, and the node %u NICs", rails, base->nics.n);
  if (has_nics && rails != base->nics.n)
    add_change (changes, "node.nics.count=%u", rails);
  if (rate > 0 && rate != base->nics.port.bandwidth_bytes_per_s)
    add_change (changes, "node.nics.link.bandwidth=%.0fB/s", rate);
  return true;
}

bool
ls_draft_finish (LsFabricDraft *d, const LsClusterSpec *base, GPtrArray *changes)
{
  uint32_t n_hosts, rails = sort_ports (d, &n_hosts);
  const LsLinkSpec *spine = &base->network.spine,
                   *like = spine->bandwidth_bytes_per_s > 0 ? spine : &base->nics.port;
  double rate = n_hosts > 0 ? port_rate (d) : 0;
  if (n_hosts == 0)
    return ls_draft_wrong (d, 0, "no host is at a switch");
  if (base->nics.n == 0)
    return ls_draft_wrong (d, 0, "the node has no NICs, which a fabric could join");
  if (!fit_nics (d, base, rails, rate, changes))
    return false;
  bool has_nics = *g_array_index (d->ports, LsDraftPort, 0).nic != '\0';
  Figures f = { d, like, rate > 0 ? rate : base->nics.port.bandwidth_bytes_per_s };
  f.node = f.port * (has_nics ? rails : base->nics.n);
  f.names = unique_names (d);
  g_autofree char *json = fabric_json (&f, rails);
  add_change (changes, "nodes=%u", n_hosts);
  add_change (changes, "fabric=%s", json);
  if (rate == 0)
    ls_draft_guess (d, "rates of the fabric's links: as the nodes' NICs");
  ls_draft_guess (d, "latencies and efficiency of the fabric: %s", like->source);
  g_strfreev (f.names);
  return true;
}
