/* sweep/sweep_scaling.c — the best of each number of GPUs and global batch beside the others.
 *
 * Ideal over GPUs: every GPU does as many tokens a second as with the fewest GPUs and the same
 * batch. Ideal over batches: as with the largest batch and the same GPUs, where a step's fixed
 * parts (bubble, reduction of gradients, optimizer) weigh least. Worked example: 100 tokens/s on
 * 4 GPUs, 170 on 8: 25 and 21.25 a GPU, 85 % of ideal. */
#include "sweep/sweep_state.h"

#include <math.h>

static double
per_gpu (const LsSweepGroup *g)
{
  return g->first ? g->first->tokens_per_s / g->gpus : NAN;
}

/* Of those that have a best and agree with g in what is not compared. */
static const LsSweepGroup *
base_of (const GArray *groups, const LsSweepGroup *g, bool over_gpus)
{
  const LsSweepGroup *base = NULL;
  for (guint i = 0; i < groups->len; i++) {
    const LsSweepGroup *other = &g_array_index (groups, LsSweepGroup, i);
    bool is_beside = over_gpus ? other->global_batch == g->global_batch : other->gpus == g->gpus;
    bool is_nearer
        = !base || (over_gpus ? other->gpus < base->gpus : other->global_batch > base->global_batch);
    if (other->first && is_beside && is_nearer)
      base = other;
  }
  return base;
}

/* Days and money to the loss: what lies on the curve is beaten by none. */
static bool
is_beaten (const GArray *groups, const LsSweepGroup *g)
{
  for (guint i = 0; i < groups->len; i++) {
    const LsSweepRow *other = g_array_index (groups, LsSweepGroup, i).first, *own = g->first;
    if (!other || other == own)
      continue;
    double days = other->to_loss.time_s - own->to_loss.time_s, money = other->to_loss.usd - own->to_loss.usd;
    if (days <= 0 && money <= 0 && (days < 0 || money < 0))
      return true;
  }
  return false;
}

void
sweep_scaling (LsSweepReport *report)
{
  for (guint i = 0; i < report->groups->len; i++) {
    LsSweepGroup *g = &g_array_index (report->groups, LsSweepGroup, i);
    g->tokens_per_s_per_gpu = g->of_fewest_gpus = g->of_largest_batch = NAN;
    if (!g->first)
      continue;
    g->tokens_per_s_per_gpu = per_gpu (g);
    g->of_fewest_gpus = per_gpu (g) / per_gpu (base_of (report->groups, g, true));
    g->of_largest_batch = per_gpu (g) / per_gpu (base_of (report->groups, g, false));
    g->is_beaten = is_beaten (report->groups, g);
  }
}
