/* How much of each link a step uses. Trunks only: an HBM is shared like a link but is none. */
#include "analysis/link_groups.h"
#include "cluster/places.h"

GArray *
ls_link_use_new (const LsTimeline *t, const LsCluster *c)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsLinkUse));
  g_auto (LsHostNames) names = { 0 };
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  g_array_set_clear_func (links, ls_link_clear_use);
  for (uint32_t i = 0; i < MIN (c->n_trunks, t->n_resources); i++) {
    if (ls_timeline_bytes (t, i) <= 0)
      continue;
    LsLinkUse use = {
      .name = ls_cluster_resource_name_with (c, i, &names),
      .utilisation = ls_timeline_bytes (t, i) / (ls_cluster_resource_capacity (c, i) * window_s),
      .bytes = ls_timeline_bytes (t, i),
    };
    g_array_append_val (links, use);
  }
  g_array_sort (links, ls_link_compare_uses);
  return links;
}

static GArray *
group_links (const GArray *links)
{
  LsLinkGroups groups = ls_link_groups_new ();
  for (guint i = 0; i < links->len; i++) {
    const LsLinkUse *use = &g_array_index (links, LsLinkUse, i);
    guint place;
    LsLinkTally *tally = ls_link_tally_of (&groups, use->name, &place);
    ls_link_add_name (tally, use->name);
    ls_link_add_level (tally->levels, use->utilisation, use->bytes, 1);
  }
  return ls_link_groups_take (&groups);
}

void
ls_link_use_report (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  if (!ls_link_use_by_places (r, t, c))
    ls_link_use_report_each (r, t, c);
}

void
ls_link_use_report_each (LsReport *r, const LsTimeline *t, const LsCluster *c)
{
  GArray *links = ls_link_use_new (t, c), *groups = group_links (links);
  r->n_link_groups = groups->len;
  r->link_groups = (LsLinkGroup *) g_array_free (groups, FALSE);
  if (links->len > LS_N_BUSIEST)
    g_array_set_size (links, LS_N_BUSIEST);
  r->n_links = links->len;
  r->links = (LsLinkUse *) g_array_free (links, FALSE);
}
