/* lower/layers/lower_delayed.c — weight gradients that are computed behind an exchange of tokens,
 * which does not wait for them (lower_pieces.h). */
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

bool
delays_weights (const Lower *l, LsActionType pass)
{
  return l->s->delay_wgrad && pass == LS_ACTION_B;
}

void
delay_weights (Build *b, guint i)
{
  g_array_append_val (b->delayed, i);
}

/* They need nothing of what the next op waits for. */
void
build_delayed_weights (Build *b)
{
  DpPass *p = b->pass;
  GArray *joins = b->next_deps;
  b->next_deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  uint16_t layer = b->layer;
  build_piece (b, PIECE_WEIGHTS);
  for (guint d = 0; d < b->delayed->len; d++) {
    guint i = g_array_index (b->delayed, guint, d);
    b->layer = layer_of (p->c, i);
    build_weight_operator (b, p->c, i);
    if (p->backend->after)
      p->backend->after (b, p, i);
  }
  b->layer = layer;
  g_array_set_size (b->delayed, 0);
  g_array_prepend_vals (b->next_deps, joins->data, joins->len);
  g_array_unref (joins);
}
