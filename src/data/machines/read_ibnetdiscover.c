/* data/machines/read_ibnetdiscover.c — what `ibnetdiscover` prints of an InfiniBand fabric.
 *
 *     Switch  41 "S-b8599f0300fc6de4"       # "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 13 lmc 0
 *     [1]     "H-ec0d9a03007d7d0b"[1](ec0d9a03007d7d0b)    # "node1 mlx5_0" lid 28 4xHDR
 *     [21]    "S-0002c903007b78b0"[1]       # "MF0;spine1:MQM8700/U1" lid 19 4xHDR
 *
 * Sections of switches say it all: each link between switches is in both, and sections of channel adapters
 * repeat what is at switches. The first word of an adapter's description is its host, the rest its port's
 * name. Those of switches themselves (reductions in the network) are no hosts; adapters that nobody has
 * named are hosts by themselves.
 *
 * `ibnetdiscover -p` has a line for each port: type, LID, port, GUID, width, speed, and the same of the other
 * end with both descriptions; a port that is free has its own only. Each link is there from both of its ends,
 * unless somebody has kept the lines of adapters alone.
 *
 *     CA    13  1 0xec0d9a03007d7d0b 4x HDR - SW     7 21 0xb8599f0300fc6de4 ( 'node1 mlx5_0' - 'leaf1' )
 *     SW     7 22 0xb8599f0300fc6de4 4x SDR                                    'leaf1' */
#include "data/machines/fabric_draft.h"

#include <stdio.h>
#include <string.h>

#define GBIT (1e9 / 8)

/* Of a lane, what data it carries: InfiniBand's rates by name, net of their line code (8b/10b up to QDR,
 * 64b/66b after it); InfiniBand Architecture Specification, volume 2. */
static const struct {
  const char *name;
  double rate;
} lanes[] = { { "SDR", 2 * GBIT },    { "DDR", 4 * GBIT },     { "QDR", 8 * GBIT },
              { "FDR10", 10 * GBIT }, { "FDR", 13.64 * GBIT }, { "EDR", 25 * GBIT },
              { "HDR", 50 * GBIT },   { "NDR", 100 * GBIT },   { "XDR", 200 * GBIT } };

/* "4xHDR"; 0: nothing that is known. */
static double
rate_of (const char *word)
{
  const char *x = strchr (word, 'x');
  for (guint i = 0; x && i < G_N_ELEMENTS (lanes); i++)
    if (g_str_equal (x + 1, lanes[i].name))
      return g_ascii_strtod (word, NULL) * lanes[i].rate;
  return 0;
}

/* Between the n-th pair of quotes, newly allocated; NULL: there are fewer. */
static char *
quoted (const char *line, int n)
{
  g_auto (GStrv) parts = g_strsplit (line, "\"", -1);
  return g_strv_length (parts) > (guint) (2 * n + 1) ? g_strdup (parts[2 * n + 1]) : NULL;
}

static bool
is_switch (const LsFabricDraft *d, const char *id)
{
  return g_str_has_prefix (id, "S-") || ls_draft_has_switch (d, id);
}

/* Of a switch itself, which reduces in it. */
static bool
is_reducer (const char *description)
{
  return strstr (description, "Aggregation Node") != NULL;
}

/* A port of an adapter. */
static void
add_port (LsFabricDraft *d, uint32_t at, const char *id, const char *description, double rate, int line)
{
  const char *text = description ? description : id, *blank = strchr (text, ' ');
  g_autofree char *host = blank ? g_strndup (text, (gsize) (blank - text)) : g_strdup (text);
  if (is_reducer (text))
    return;
  bool is_named = !strstr (text, "Technologies");
  ls_draft_port (d, ls_draft_host (d, is_named ? host : id), at, rate, is_named && blank ? blank + 1 : id,
                 line);
}

static bool
read_port (LsFabricDraft *d, uint32_t at, const char *line, int number)
{
  g_autofree char *id = quoted (line, 0), *description = quoted (line, 1);
  const char *last = strrchr (line, ' ');
  double rate = last ? rate_of (last + 1) : 0;
  if (!id)
    return ls_draft_wrong (d, number, "expected [PORT] \"ID\"[PORT] of a link; got \"%.40s\"", line);
  if (is_switch (d, id))
    ls_draft_link (d, (LsDraftLink) { .from = at, .to = ls_draft_switch (d, id, description), .rate = rate });
  else
    add_port (d, at, id, description, rate, number);
  return true;
}

static bool
begins_switch (const char *line)
{
  return g_str_has_prefix (line, "Switch") && g_ascii_isspace (line[strlen ("Switch")]);
}

static void
note_reducers (LsFabricDraft *d, uint32_t n)
{
  if (n > 0)
    ls_draft_guess (d, "without %u Aggregation Nodes, which are parts of switches", n);
}

bool
ls_draft_read_ibnetdiscover (LsFabricDraft *d, const char *text, gsize n)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  uint32_t at = UINT32_MAX, n_reducers = 0;
  for (char **line = lines; *line; line++) { /* switches have their names first */
    g_autofree char *id = begins_switch (g_strstrip (*line)) ? quoted (*line, 0) : NULL,
                    *description = id ? quoted (*line, 1) : NULL;
    if (id)
      ls_draft_switch (d, id, description);
  }
  for (guint i = 0; lines[i]; i++) {
    bool is_section = g_ascii_isalpha (*lines[i]) && strchr (lines[i], '"');
    g_autofree char *id = begins_switch (lines[i]) ? quoted (lines[i], 0) : NULL;
    if (is_section)
      at = id ? ls_draft_switch (d, id, NULL) : UINT32_MAX;
    else if (at != UINT32_MAX && *lines[i] == '[') {
      n_reducers += is_reducer (lines[i]);
      if (!read_port (d, at, lines[i], (int) i + 1))
        return false;
    }
  }
  note_reducers (d, n_reducers);
  return d->switches->len > 0 || ls_draft_wrong (d, 0, "no section of a switch");
}

/* --- of -p ---------------------------------------------------------------------------------- */

/* An end of a link; the words as they are printed. */
typedef struct {
  char type[4], port[8], guid[20];
  const char *description;
} End;

/* The descriptions of "'A' - 'B' )", in place. */
static bool
split_descriptions (char *text, End ends[2])
{
  char *middle = strstr (text, "' - '"), *close = middle ? strstr (middle + strlen ("' - '"), "' )") : NULL;
  if (!close)
    return false;
  *middle = *close = '\0';
  ends[0].description = g_strstrip (text + 1);
  ends[1].description = g_strstrip (middle + strlen ("' - '"));
  return true;
}

/* What has been read of -p. */
typedef struct {
  LsFabricDraft *d;
  GHashTable *seen; /* ports of adapters */
  uint32_t n_reducers, n_others;
} Ports;

static void
add_ends (Ports *p, const End ends[2], double rate, int line)
{
  LsFabricDraft *d = p->d;
  bool is_switch[2] = { g_str_equal (ends[0].type, "SW"), g_str_equal (ends[1].type, "SW") };
  uint32_t at[2];
  for (int i = 0; i < 2; i++)
    at[i] = is_switch[i] ? ls_draft_switch (d, ends[i].guid, ends[i].description) : 0;
  if (is_switch[0] && is_switch[1])
    ls_draft_link (d, (LsDraftLink) { .from = at[0], .to = at[1], .rate = rate });
  if (is_switch[0] == is_switch[1])
    return;
  const End *adapter = &ends[is_switch[0]];
  bool is_adapter = g_str_equal (adapter->type, "CA");
  if (!g_hash_table_add (p->seen, g_strconcat (adapter->guid, " ", adapter->port, NULL)))
    return;
  p->n_reducers += is_adapter && is_reducer (adapter->description);
  p->n_others += !is_adapter;
  if (is_adapter)
    add_port (d, at[!is_switch[0]], adapter->guid, adapter->description, rate, line);
}

/* Free ports say nothing, and neither do lines of another kind. */
static bool
read_pair (Ports *p, char *line, int number)
{
  End ends[2];
  char width[8], speed[8];
  int at = 0,
      n = sscanf (line, "%3s %*d %7[0-9] 0x%16[0-9a-f] %7s %7s - %3s %*d %7[0-9] 0x%16[0-9a-f] ( %n",
                  ends[0].type, ends[0].port, ends[0].guid, width, speed, ends[1].type, ends[1].port,
                  ends[1].guid, &at);
  bool is_port = g_str_has_prefix (line, "SW ") || g_str_has_prefix (line, "CA ");
  if (!is_port || n == 5)
    return true;
  if (n < 8 || at == 0 || !split_descriptions (line + at, ends))
    return ls_draft_wrong (p->d, number,
                           "expected TYPE LID PORT 0xGUID WIDTH SPEED - TYPE LID PORT 0xGUID ( 'NAME' - "
                           "'NAME' ); got \"%.40s\"",
                           line);
  g_autofree char *rate = g_strconcat (width, speed, NULL);
  add_ends (p, ends, rate_of (rate), number);
  return true;
}

/* Lines of adapters alone show no link between switches. */
static void
join_switches (LsFabricDraft *d)
{
  guint n = d->switches->len;
  if (n < 2 || d->links->len > 0)
    return;
  uint32_t joined = ls_draft_switch (d, "joined", "joined");
  for (guint i = 0; i < d->ports->len; i++) {
    const LsDraftPort *port = &g_array_index (d->ports, LsDraftPort, i);
    ls_draft_link (d, (LsDraftLink) { .from = port->at, .to = joined, .rate = port->rate });
  }
  ls_draft_guess (d, "a switch \"joined\" above %u that no line joins, by as many links as each has to hosts",
                  n);
}

bool
ls_draft_read_ib_ports (LsFabricDraft *d, const char *text, gsize n)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Ports p = { .d = d, .seen = seen };
  for (guint i = 0; lines[i]; i++)
    if (!read_pair (&p, g_strstrip (lines[i]), (int) i + 1))
      return false;
  note_reducers (d, p.n_reducers);
  if (p.n_others > 0)
    ls_draft_guess (d, "without %u links of switches to routers and others that are no hosts", p.n_others);
  join_switches (d);
  return d->switches->len > 0 || ls_draft_wrong (d, 0, "no link of a switch");
}
