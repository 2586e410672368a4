/* sweep/layouts.h — layers balanced over chunks for many configurations: what their parts take is
 * timed once for all that have it in common. */
#ifndef LS_SWEEP_LAYOUTS_H
#define LS_SWEEP_LAYOUTS_H

#include "job/hardware.h"
#include "strategy/strategy.h"

typedef struct LsLayouts LsLayouts;

/* Borrows both. One thread at a time. */
LsLayouts *ls_layouts_new (const LsModel *m, const LsHardware *hardware);
void ls_layouts_free (LsLayouts *layouts); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsLayouts, ls_layouts_free)

/* As ls_strategy_balance() with what things take on a cluster, which is to outlive the layouts. s: resolved.
 * variant: strategies with the same agree in all knobs that have no axis of their own in a sweep
 * (sweep/space.h). False: that cannot be known, as such a job cannot be lowered. */
bool ls_layouts_balance (LsLayouts *layouts, LsStrategy *s, const LsCluster *cluster, uint64_t variant);

#endif
