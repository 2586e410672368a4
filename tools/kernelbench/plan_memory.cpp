#include <algorithm>

#include "ops.h"
#include "plan_launch.h"

namespace kb {

static constexpr double most_of_memory = 0.92; /* the rest: workspaces, modules */
static constexpr uint64_t seed = 600;

static uint64_t
largest_copy (const Plan &plan)
{
  uint64_t bytes = 0;
  for (const PlanOp &op : plan.ops)
    bytes = std::max (bytes, op.kind == OpKind::COPY ? op.bytes : 0);
  return bytes;
}

/* Ids must be rows of every table that is looked up. */
static int
least_rows (const Plan &plan)
{
  uint64_t rows = INT32_MAX;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.impl == Impl::GATHER)
      rows = std::min (rows, kernel.m);
  return (int) rows;
}

static void
require_memory (const Plan &plan)
{
  size_t free_bytes = 0, all_bytes = 0;
  double needed = (double) largest_copy (plan);
  for (uint64_t bytes : plan.region_bytes)
    needed += (double) bytes;
  KB_CHECK (cudaMemGetInfo (&free_bytes, &all_bytes));
  if (needed <= most_of_memory * (double) free_bytes)
    return;
  throw Failure (format ("the plan needs %.1f GB for its operands; %.1f GB of the memory are free", needed * 1e-9,
                         (double) free_bytes * 1e-9));
}

PlanMemory::PlanMemory (const Plan &plan) : flag_ (1)
{
  require_memory (plan);
  for (uint64_t bytes : plan.region_bytes)
    regions_.emplace_back ((size_t) bytes);
  auto region = [&] (Region r) -> const Buffer<uint8_t> & { return regions_[(size_t) r]; };
  auto fill_floats = [&] (Region r, uint64_t s) {
    fill_normal (nullptr, reinterpret_cast<float *> (region (r).get ()), region (r).size () / sizeof (float), 1, s);
  };
  for (Region r : { Region::READ, Region::WRITE })
    fill_normal (nullptr, reinterpret_cast<__nv_bfloat16 *> (region (r).get ()), region (r).size () / 2, 1, seed + (uint64_t) r);
  fill_floats (Region::FLOATS, seed + 10);
  fill_floats (Region::STATS, seed + 11);
  for (Region r : { Region::MOMENT, Region::PARTIAL, Region::MASK })
    if (region (r).size () > 0)
      KB_CHECK (cudaMemset (region (r).get (), r == Region::MASK, region (r).size ()));
  if (region (Region::IDS).size () > 0)
    fill_ids (nullptr, reinterpret_cast<int *> (region (Region::IDS).get ()), region (Region::IDS).size () / sizeof (int),
              least_rows (plan), seed + 12);
  if (uint64_t bytes = largest_copy (plan)) {
    copied_ = Buffer<uint8_t> ((size_t) bytes);
    KB_CHECK (cudaHostAlloc ((void **) &host_, (size_t) bytes, cudaHostAllocDefault));
    for (uint64_t i = 0; i < bytes; i++)
      host_[i] = (uint8_t) (i * 2654435761u >> 13);
  }
  KB_CHECK (cudaDeviceSynchronize ());
}

PlanMemory::~PlanMemory ()
{
  if (host_)
    cudaFreeHost (host_);
}

}
