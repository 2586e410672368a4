#include "job/job_headroom.h"

#include <lockstep/units.h>

#include "job/softwares.h"

bool
ls_headroom_parse (const char *text, LsHeadroomAsk *ret_ask)
{
  const char *expected;
  LsHeadroomAsk ask = { .is_set = true };
  char *end;
  double percent = g_ascii_strtod (text, &end);
  bool is_number = g_ascii_isdigit (*text) && end != text;
  if (is_number && end[0] == '%' && end[1] == '\0' && percent < 100)
    ask.percent = percent;
  else if (!(is_number && *end == '\0' && percent == 0) && !ls_parse_bytes (text, &ask.bytes, &expected))
    return false;
  *ret_ask = ask;
  return true;
}

static void
add_part (LsHeadroom *h, const char *what, const char *source, uint64_t bytes)
{
  LsHeadroomPart part = { g_strdup (what), g_strdup (source), bytes };
  if (!h->parts)
    h->parts = g_array_new (FALSE, FALSE, sizeof (LsHeadroomPart));
  g_array_append_val (h->parts, part);
  h->bytes += bytes;
}

/* Of nodes of several kinds of the largest memory: no rank is left with less than it asks for. */
static uint64_t
share_of (const LsClusterSpec *spec, double percent)
{
  uint64_t most = 0;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (spec); k++)
    most = MAX (most, ls_cluster_spec_of_kind (spec, k)->gpu.hbm_bytes);
  return (uint64_t) (percent / 100 * (double) most);
}

void
ls_headroom_of (const LsHeadroomAsk *ask, const LsSoftwareSpec *software, int dp_kind,
                const LsHardware *hardware, const LsMemoryOptions *memory, LsHeadroom *ret)
{
  const LsSoftwareSpec *owner
      = software ? software : ls_softwares_find (dp_kind, ls_hardware_architecture (hardware));
  const LsClusterSpec *spec = &hardware->spec;
  *ret = (LsHeadroom) { .is_asked = ask->is_set || software };
  if (ask->is_set) {
    ret->bytes = ask->bytes + share_of (spec, ask->percent);
    return;
  }
  for (guint i = 0; owner && owner->headroom && i < owner->headroom->len; i++) {
    const LsHeadroomItem *item = &g_array_index (owner->headroom, LsHeadroomItem, i);
    if (!item->is_of_allocator || memory->allocator != LS_MEMORY_CACHING)
      add_part (ret, item->what, item->source, item->bytes + share_of (spec, item->percent));
  }
  ret->program = ret->parts ? g_strdup (owner->program) : NULL;
}
