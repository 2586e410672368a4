#include "simgrid_storm.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <simgrid/s4u.hpp>
#include <utility>

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

void simgrid_prepare(const Storm *s, const std::string &contexts, const std::string &optim)
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

double simgrid_run(std::vector<double> *ret_end)
{
  double start = cpu_s();
  sg4::Engine::get_instance()->run();
  double spent = cpu_s() - start;
  *ret_end = ends;
  return spent;
}
