#include "cluster/all_to_all.h"

double
ls_all_to_all_links (LsRouting routing, uint32_t n, uint32_t n_busy, uint32_t n_links)
{
  g_assert (n > 1 && n_busy > 0 && n_busy <= n);
  if (routing == LS_ROUTING_MINIMAL || n == 2)
    return n_links;
  double between = n - 2.0, weight = 1 + (n_busy > 2 ? (n_busy - 2) / between : 0);
  return n_links * (between / weight + (routing == LS_ROUTING_VALIANT ? 0 : 1));
}
