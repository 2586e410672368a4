// Pins: flows that start at random on a leaf-spine end when SimGrid says, to 1e-6.
//
//     storm HOSTS FLOWS OVERSUBSCRIPTION SPREAD_MS SEED [Lazy|Full]
//
// Prints the greatest difference of an end, relative to the end.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "simgrid_storm.h"

static const double allowed = 1e-6;

static int compare(const Storm *storm, const std::vector<double> &theirs)
{
  double worst = 0;
  uint32_t n_bad = 0;
  for (uint32_t i = 0; i < storm->spec.n_flows; i++) {
    const StormFlow *f = &storm->flows[i];
    double ours = static_cast<double>(f->end) / 1e12, off = std::fabs(ours - theirs[i]) / theirs[i];
    bool is_bad = f->end <= f->start || theirs[i] <= 0 || !(off <= allowed);
    if (is_bad && n_bad++ < 5)
      std::printf("flow %u, host %u to %u, %" PRIu64 " bytes: ends at %.12g s, SimGrid %.12g s\n", i, f->from, f->to, f->bytes, ours, theirs[i]);
    worst = std::fmax(worst, off);
  }
  std::printf("%u flows on %u hosts, 1:%u, starts over %g ms: %.2g off at most, %u by more than %g\n", storm->spec.n_flows,
              storm->spec.n_hosts, storm->spec.oversubscription, static_cast<double>(storm->spec.spread) / 1e9, worst, n_bad, allowed);
  return n_bad > 0;
}

int main(int argc, char **argv)
{
  if (argc != 6 && argc != 7) {
    std::fprintf(stderr, "usage: storm HOSTS FLOWS OVERSUBSCRIPTION SPREAD_MS SEED [Lazy|Full]\n");
    return 2;
  }
  StormSpec spec = {};
  spec.n_hosts = static_cast<uint32_t>(std::atoi(argv[1]));
  spec.n_flows = static_cast<uint32_t>(std::atoi(argv[2]));
  spec.oversubscription = static_cast<uint32_t>(std::atoi(argv[3]));
  spec.spread = static_cast<int64_t>(std::atof(argv[4]) * 1e9);
  spec.seed = static_cast<uint64_t>(std::atoi(argv[5]));
  Storm *storm = storm_new(&spec);
  storm_run(storm, false);
  simgrid_prepare(storm, "thread", argc == 7 ? argv[6] : "Lazy");
  std::vector<double> theirs;
  simgrid_run(&theirs);
  int rc = compare(storm, theirs);
  storm_free(storm);
  return rc;
}
