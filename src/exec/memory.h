/* exec/memory.h — bytes alive on a rank over one step, on the host clock: the
 * order in which the program allocates and frees, as the caching allocator sees
 * it. That order is the program's own, so one walk per role gives it. */
#ifndef LS_EXEC_MEMORY_H
#define LS_EXEC_MEMORY_H

#include "parallel/plan.h"

typedef struct {
  uint64_t peak_bytes;
  uint64_t at_peak[LS_N_MEM];
  uint64_t category_peak[LS_N_MEM]; /* each category's own maximum */
  uint32_t peak_instance;           /* of the program              */
  uint16_t peak_op;
  uint64_t at_end[LS_N_MEM];        /* what the next step begins with: the static bytes again */
  uint64_t overfreed_bytes;         /* freed, but not alive: 0. See analysis/conservation.h   */
} LsRoleMemory;

typedef struct {
  uint32_t n_roles;
  LsRoleMemory *roles;
} LsMemory;

LsMemory *ls_memory_new (const LsPlan *plan);
void ls_memory_free (LsMemory *m); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMemory, ls_memory_free)

#endif
