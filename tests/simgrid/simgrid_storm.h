// tests/simgrid/simgrid_storm.h — a storm (../bench/storm.h) run by SimGrid, as the same
// fluid model: a link for each trunk, model CM02 with its factors at 1, no latency, no TCP
// window, no cross-traffic, precision 1e-9. Its finish times are seconds as doubles.
#ifndef LS_SIMGRID_STORM_H
#define LS_SIMGRID_STORM_H

#include <string>
#include <vector>

#include "storm.h"

// One process can hold one SimGrid engine: prepare once, run once. A sustained storm needs
// an actor for each flow that is in progress; `contexts` is SimGrid's way to switch between
// them ("raw" is its fastest, "thread" one that sanitizers understand).
void simgrid_prepare (const Storm *storm, const std::string &contexts, const std::string &optim);

// Seconds of processor time from the first event to the last; ret_end: [n_flows], seconds.
double simgrid_run (std::vector<double> *ret_end);

#endif
