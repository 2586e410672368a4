/* tools/kernelbench/plan_kernels.h — which of our kernels stands for one of a trace;
 * private to plan*.cpp. */
#ifndef LS_KERNELBENCH_PLAN_KERNELS_H
#define LS_KERNELBENCH_PLAN_KERNELS_H

#include "plan.h"

namespace kb {

/* Reads one of `kernels`, all but what its layout says about its use. */
PlanKernel read_plan_kernel (const Json &json);

/* The layout of a product whose name says none, from the tag of an op that runs it. */
void set_layout (PlanKernel &kernel, const std::string &tag);

/* Fails unless all keys of an object are among these or begin with "x-". */
void require_keys (const Json &object, std::initializer_list<const char *> keys);

}

#endif
