#include "base/tally.h"

#include "base/order.h"

/* What the GPUs of a host add, and more: those of the next add the same. */
#define MOST_LOOKED_BACK 16

GArray *
ls_tally_new (void)
{
  return g_array_new (FALSE, FALSE, sizeof (LsTally));
}

void
ls_tally_add_times (GArray *tally, uint64_t value, uint32_t n)
{
  const LsTally own = { value, n };
  for (guint i = 1; i <= MIN (tally->len, MOST_LOOKED_BACK); i++) {
    LsTally *known = &g_array_index (tally, LsTally, tally->len - i);
    if (known->value == value) {
      known->n += n;
      return;
    }
  }
  g_array_append_val (tally, own);
}

static int
by_value (const void *a, const void *b)
{
  return LS_ORDER (((const LsTally *) a)->value, ((const LsTally *) b)->value);
}

void
ls_tally_sort (GArray *tally)
{
  guint n = 0;
  g_array_sort (tally, by_value);
  for (guint i = 0; i < tally->len; i++) {
    const LsTally own = g_array_index (tally, LsTally, i);
    if (n > 0 && g_array_index (tally, LsTally, n - 1).value == own.value)
      g_array_index (tally, LsTally, n - 1).n += own.n;
    else
      g_array_index (tally, LsTally, n++) = own;
  }
  g_array_set_size (tally, n);
}
