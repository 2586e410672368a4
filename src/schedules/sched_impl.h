/* schedules/sched_impl.h — what the schedules share among themselves; everybody
 * else includes schedules/sched.h. */
#ifndef LS_SCHEDULES_SCHED_IMPL_H
#define LS_SCHEDULES_SCHED_IMPL_H

#include "schedules/sched.h"

extern const LsSched ls_sched_1f1b;
extern const LsSched ls_sched_chimera;
extern const LsSched ls_sched_dualpipe;
extern const LsSched ls_sched_dualpipev;
extern const LsSched ls_sched_gpipe;
extern const LsSched ls_sched_gpipe_lifo;
extern const LsSched ls_sched_hanayo;
extern const LsSched ls_sched_interleaved;
extern const LsSched ls_sched_interleaved_zb;
extern const LsSched ls_sched_looped_bfs;
extern const LsSched ls_sched_naive;
extern const LsSched ls_sched_none;
extern const LsSched ls_sched_pipedream;
extern const LsSched ls_sched_v_half;
extern const LsSched ls_sched_v_min;
extern const LsSched ls_sched_zb_1p;
extern const LsSched ls_sched_zb_2p;
extern const LsSched ls_sched_zb_auto;
extern const LsSched ls_sched_zb_h1;
extern const LsSched ls_sched_zb_h2;
extern const LsSched ls_sched_zbv;
extern const LsSched ls_sched_zbv_auto;

static inline void
ls_sched_append (GArray *actions, LsActionType type, uint32_t chunk, uint32_t mb)
{
  LsAction a = { .mb = mb, .chunk = (uint16_t) chunk, .type = (uint8_t) type };
  g_array_append_val (actions, a);
}

/* Schedules that are given as a time of each action, in units of a forward: LsSchedSlot values,
 * appended as actions in the order of their times, of which no two are equal. With
 * is_split each B becomes an I and a W. */
typedef struct {
  uint64_t at;
  LsAction action;
} LsSchedSlot;

void ls_sched_slot_add (GArray *slots, uint64_t at, LsActionType type, uint32_t chunk, uint32_t mb);
void ls_sched_append_slots (GArray *slots, bool is_split, GArray *actions);

uint32_t ls_sched_two_chunks (const LsSchedShape *shape);          /* 2 */
uint32_t ls_sched_rank (const LsSchedShape *shape, uint32_t rank); /* the rank */

#endif
