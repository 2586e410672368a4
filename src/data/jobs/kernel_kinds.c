#include "data/jobs/kernel_kinds.h"

#define KIND(name, kind) [kind] = { name, kind }

const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1] = { LS_KERNEL_KINDS (KIND) };
G_STATIC_ASSERT (LS_KERNEL_ATTENTION_BWD + 1 == LS_KERNEL_SOFTMAX);

const LsEnumName ls_access_names[LS_N_ACCESSES + 1] = { LS_ACCESSES (KIND) };
