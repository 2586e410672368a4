// The storms of ../bench/bench_storm.c by SimGrid and by us: its flows per second, and how
// many times that ours are.
//
//     bench_simgrid NAME HOSTS FLOWS OVERSUBSCRIPTION [sustained]
#include <cstdlib>
#include <string>

#include "ls_bench.h"
#include "simgrid_storm.h"

static const uint32_t sustained = 4; // flows that follow each other

int main(int argc, char **argv)
{
  if (argc != 5 && argc != 6) {
    fprintf(stderr, "usage: bench_simgrid NAME HOSTS FLOWS OVERSUBSCRIPTION [sustained]\n");
    return 2;
  }
  StormSpec spec = {};
  spec.n_hosts = static_cast<uint32_t>(std::atoi(argv[2]));
  spec.n_flows = static_cast<uint32_t>(std::atoi(argv[3]));
  spec.oversubscription = static_cast<uint32_t>(std::atoi(argv[4]));
  spec.seed = 1;
  uint32_t n = spec.n_flows;
  if (argc == 6) {
    spec.n_at_once = n;
    spec.n_flows = sustained * n;
  }
  Storm *storm = storm_new(&spec);
  double ours = storm_rate(storm, false);
  simgrid_prepare(storm, "raw", "Lazy");
  std::vector<double> ends;
  double theirs = spec.n_flows / simgrid_run(&ends);
  ls_bench_header();
  ls_bench_print(argv[1], n, "flows/s", theirs, ours / theirs);
  storm_free(storm);
  return 0;
}
