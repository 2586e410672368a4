/* tests/bench/storm.h — storms: random flows between the hosts of a leaf-spine fabric.
 *
 * A storm is data: trunks with capacities, and flows with sizes, starts and the trunks
 * that they cross, drawn from a seed. Whoever runs it writes down when each flow ended.
 * Hosts have one 400 Gbit/s NIC; 32 of them share a leaf, which has one trunk up to all
 * spines and one down. Latencies play no part.
 *
 * Readable from C++, for the comparison with SimGrid. */
#ifndef LS_STORM_H
#define LS_STORM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STORM_MAX_HOPS 4

typedef struct {
  uint32_t from, to; /* hosts */
  uint64_t bytes;
  int64_t start; /* ps; in a sustained storm: when the flow that it follows ended */
  int64_t end;   /* ps; -1: did not end */
  uint32_t n_hops, hop[STORM_MAX_HOPS];
} StormFlow;

typedef struct {
  uint32_t n_hosts, oversubscription; /* of the leaves */
  uint32_t n_flows;                   /* all */
  uint32_t n_at_once;                 /* sustained: so many start, flow i + n_at_once follows
                                         flow i; 0: each starts when its `start` says */
  int64_t spread;                     /* ps: starts are uniform below this; 0: all at 0 */
  uint64_t seed;
} StormSpec;

typedef struct {
  StormSpec spec;
  uint32_t n_trunks;
  double *capacity; /* [n_trunks], bytes/s */
  StormFlow *flows; /* [spec.n_flows] */
} Storm;

Storm *storm_new (const StormSpec *spec);
void storm_free (Storm *storm);

/* On an LsFlowNet; sets `end` of all flows, and in a sustained storm `start`. Returns the
 * seconds of processor time from the first event to the last. */
double storm_run (Storm *storm, bool is_reference);

/* Flows per second of the median of three runs. */
double storm_rate (Storm *storm, bool is_reference);

#ifdef __cplusplus
}
#endif

#endif
