/* data/machines/read_ibnetdiscover.c — what `ibnetdiscover` prints of an InfiniBand fabric.
 *
 *     Switch  41 "S-b8599f0300fc6de4"       # "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 13 lmc 0
 *     [1]     "H-ec0d9a03007d7d0b"[1](ec0d9a03007d7d0b)    # "node1 mlx5_0" lid 28 4xHDR
 *     [21]    "S-0002c903007b78b0"[1]       # "MF0;spine1:MQM8700/U1" lid 19 4xHDR
 *
 * Sections of switches say it all: each link between switches is in both, and sections of channel adapters
 * repeat what is at switches. The first word of an adapter's description is its host, the rest its port's
 * name. Those of switches themselves (reductions in the network) are no hosts; adapters that nobody has
 * named are hosts by themselves. */
#include "data/machines/fabric_draft.h"

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

/* "4xHDR" at the end of a line; 0: nothing. */
static double
rate_of (const char *line)
{
  const char *last = strrchr (line, ' '), *x = last ? strchr (last, 'x') : NULL;
  for (guint i = 0; x && i < G_N_ELEMENTS (lanes); i++)
    if (g_str_equal (x + 1, lanes[i].name))
      return g_ascii_strtod (last, NULL) * lanes[i].rate;
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
  double rate = rate_of (line);
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
  if (n_reducers > 0)
    ls_draft_guess (d, "without %u Aggregation Nodes, which are parts of switches", n_reducers);
  return d->switches->len > 0 || ls_draft_wrong (d, 0, "no section of a switch");
}
