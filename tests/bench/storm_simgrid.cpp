// Storms (storm.h) held against SimGrid, which runs them as the same fluid model: a link for each trunk, model CM02
// with its factors at 1, no latency, no TCP window, no cross-traffic, precision 1e-9. Its finish times are seconds as doubles.
//
//     storm_simgrid HOSTS FLOWS OVERSUBSCRIPTION SPREAD_MS SEED [Lazy|Full]
//
// Pins: flows that start at random on a leaf-spine end when SimGrid says, to 1e-6. Prints the greatest difference of an end,
// relative to the end.
//
//     storm_simgrid speed NAME HOSTS FLOWS OVERSUBSCRIPTION [sustained]
//
// The storms of bench_storm.c by SimGrid and by us: its flows per second, and how many times that ours are.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ls_bench.h"
#include "storm.h"

namespace sg4 = simgrid::s4u;

static const Storm *storm;
static std::vector<sg4::Host *> hosts;
static std::vector<double> ends;

// As ls_bench_cpu_s().
static double cpu_s()
{
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

static void add_routes(sg4::NetZone *zone, const std::vector<sg4::Link *> &links)
{
  std::set<std::pair<uint32_t, uint32_t>> known;
  for (uint32_t i = 0; i < storm->spec.n_flows; i++) {
    const StormFlow &f = storm->flows[i];
    if (!known.insert({f.from, f.to}).second)
      continue;
    std::vector<sg4::LinkInRoute> hops;
    for (uint32_t k = 0; k < f.n_hops; k++)
      hops.emplace_back(links[f.hop[k]]);
    zone->add_route(hosts[f.from]->get_netpoint(), hosts[f.to]->get_netpoint(), nullptr, nullptr, hops, false);
  }
}

static void build()
{
  sg4::NetZone *zone = sg4::create_full_zone("fabric");
  std::vector<sg4::Link *> links;
  for (uint32_t i = 0; i < storm->n_trunks; i++)
    links.push_back(zone->create_link("t" + std::to_string(i), storm->capacity[i])->set_latency(0)->seal());
  for (uint32_t i = 0; i < storm->spec.n_hosts; i++)
    hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9)->seal());
  add_routes(zone, links);
  zone->seal();
}

static sg4::CommPtr send(uint32_t i)
{
  const StormFlow &f = storm->flows[i];
  return sg4::Comm::sendto_async(hosts[f.from], hosts[f.to], f.bytes);
}

static double seconds(int64_t ps)
{
  return static_cast<double>(ps) / 1e12;
}

// Starts all, each in its time, and then asks each when it ended.
static void start_all()
{
  std::vector<uint32_t> order(storm->spec.n_flows);
  for (uint32_t i = 0; i < order.size(); i++)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(), [](uint32_t a, uint32_t b) { return storm->flows[a].start < storm->flows[b].start; });
  std::vector<sg4::CommPtr> comms(order.size());
  for (uint32_t i : order) {
    double start = seconds(storm->flows[i].start);
    if (start > sg4::Engine::get_clock())
      sg4::this_actor::sleep_until(start);
    comms[i] = send(i);
  }
  for (uint32_t i : order) {
    comms[i]->wait();
    ends[i] = comms[i]->get_finish_time();
  }
}

static void send_one_after_another(uint32_t first, uint32_t stride)
{
  for (uint32_t i = first; i < storm->spec.n_flows; i += stride) {
    send(i)->wait();
    ends[i] = sg4::Engine::get_clock();
  }
}

// One process can hold one SimGrid engine: prepare once, run once. A sustained storm needs
// an actor for each flow that is in progress; `contexts` is SimGrid's way to switch between
// them ("raw" is its fastest, "thread" one that sanitizers understand).
static void simgrid_prepare(const Storm *s, const std::string &contexts, const std::string &optim)
{
  static int argc = 2;
  static char name[] = "storm", quiet[] = "--log=xbt_cfg.thres:warning", *argv[] = {name, quiet, nullptr};
  static sg4::Engine engine(&argc, argv);
  for (const std::string &setting : {std::string("network/model:CM02"), "network/optim:" + optim, std::string("network/crosstraffic:0"),
                                     std::string("network/TCP-gamma:0"), std::string("network/latency-factor:1"),
                                     std::string("network/bandwidth-factor:1"), std::string("network/weight-S:0"),
                                     std::string("maxmin/precision:1e-9"), std::string("surf/precision:1e-9"),
                                     "contexts/factory:" + contexts, std::string("contexts/stack-size:64")})
    sg4::Engine::set_config(setting);
  storm = s;
  build();
  ends.assign(s->spec.n_flows, -1);
  uint32_t n = s->spec.n_at_once;
  if (n == 0)
    sg4::Actor::create("all", hosts[0], start_all);
  for (uint32_t i = 0; i < n; i++)
    sg4::Actor::create("slot", hosts[0], send_one_after_another, i, n);
}

// Seconds of processor time from the first event to the last; ret_end: [n_flows], seconds.
static double simgrid_run(std::vector<double> *ret_end)
{
  double start = cpu_s();
  sg4::Engine::get_instance()->run();
  double spent = cpu_s() - start;
  *ret_end = ends;
  return spent;
}

// ---- ends ----

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

static int check(int argc, char **argv)
{
  StormSpec spec = {};
  spec.n_hosts = static_cast<uint32_t>(std::atoi(argv[1]));
  spec.n_flows = static_cast<uint32_t>(std::atoi(argv[2]));
  spec.oversubscription = static_cast<uint32_t>(std::atoi(argv[3]));
  spec.spread = static_cast<int64_t>(std::atof(argv[4]) * 1e9);
  spec.seed = static_cast<uint64_t>(std::atoi(argv[5]));
  Storm *drawn = storm_new(&spec);
  storm_run(drawn, false);
  simgrid_prepare(drawn, "thread", argc == 7 ? argv[6] : "Lazy");
  std::vector<double> theirs;
  simgrid_run(&theirs);
  int rc = compare(drawn, theirs);
  storm_free(drawn);
  return rc;
}

// ---- speed ----

static const uint32_t sustained = 4; // flows that follow each other

static int speed(int argc, char **argv)
{
  StormSpec spec = {};
  spec.n_hosts = static_cast<uint32_t>(std::atoi(argv[1]));
  spec.n_flows = static_cast<uint32_t>(std::atoi(argv[2]));
  spec.oversubscription = static_cast<uint32_t>(std::atoi(argv[3]));
  spec.seed = 1;
  uint32_t n = spec.n_flows;
  if (argc == 5) {
    spec.n_at_once = n;
    spec.n_flows = sustained * n;
  }
  Storm *drawn = storm_new(&spec);
  double ours = storm_rate(drawn, false);
  simgrid_prepare(drawn, "raw", "Lazy");
  std::vector<double> ends;
  double theirs = spec.n_flows / simgrid_run(&ends);
  ls_bench_header();
  ls_bench_print(argv[0], n, "flows/s", theirs, ours / theirs);
  storm_free(drawn);
  return 0;
}

int main(int argc, char **argv)
{
  if ((argc == 6 || argc == 7) && std::strcmp(argv[1], "speed") == 0)
    return speed(argc - 2, argv + 2);
  if (argc == 6 || argc == 7)
    return check(argc, argv);
  std::fprintf(stderr, "usage: storm_simgrid HOSTS FLOWS OVERSUBSCRIPTION SPREAD_MS SEED [Lazy|Full]\n"
                       "       storm_simgrid speed NAME HOSTS FLOWS OVERSUBSCRIPTION [sustained]\n");
  return 2;
}
