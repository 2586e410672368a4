/* The three ways of timing: bench.h. */
#include <algorithm>
#include <cmath>

#include "bench.h"

namespace kb {

static constexpr int n_warm_up = 3;
static constexpr int n_groups = 15;           /* of back-to-back launches, in steady () */
static constexpr double group_us = 5e3;
static constexpr double batch_us = 20e3;      /* between two marks of sustained ()      */
static constexpr double last_us = 1e6;        /* the part of sustained () that counts   */
static constexpr double wake_up_s = 0.3;

void
Bench::flush_l2 ()
{
  read_all (stream_, flush_.get (), flush_.size (), 8 * n_sms ());
}

void
Bench::wake_up ()
{
  if (is_dry ())
    return;
  double until = elapsed_s () + wake_up_s;
  while (elapsed_s () < until) {
    for (int i = 0; i < 20; i++)
      flush_l2 ();
    KB_CHECK (cudaStreamSynchronize (stream_));
  }
}

Timing
Bench::isolated (const std::function<void ()> &launch, int n)
{
  std::vector<Event> start (n_warm_up + n), stop (n_warm_up + n);
  for (size_t i = 0; i < start.size (); i++) {
    flush_l2 ();
    start[i].record (stream_);
    launch ();
    stop[i].record (stream_);
    if (i == 0) /* loads modules, chooses algorithms: nothing may queue behind that */
      KB_CHECK (cudaStreamSynchronize (stream_));
  }
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  for (size_t i = n_warm_up; i < start.size (); i++)
    us.push_back (stop[i].us_since (start[i]));
  return summarise (us);
}

double
Bench::estimate_us (const Launch &launch)
{
  Event start, stop;
  launch (0);
  KB_CHECK (cudaStreamSynchronize (stream_));
  start.record (stream_);
  for (int i = 0; i < n_warm_up; i++)
    launch (i);
  stop.record (stream_);
  stop.wait ();
  return stop.us_since (start) / n_warm_up;
}

static int
launches_in (double us, double launch_us)
{
  return (int) std::min (1000.0, std::max (1.0, std::ceil (us / launch_us)));
}

Timing
Bench::steady (const Launch &launch)
{
  int per_group = launches_in (group_us, estimate_us (launch));
  std::vector<Event> marks (n_groups + 1);
  int set = 0;
  for (int i = 0; i < per_group; i++)
    launch (set++);
  for (Event &mark : marks) {
    mark.record (stream_);
    for (int i = 0; i < per_group && &mark != &marks.back (); i++)
      launch (set++);
  }
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  for (int i = 0; i < n_groups; i++)
    us.push_back (marks[i + 1].us_since (marks[i]) / per_group);
  return summarise (us);
}

/* At most two batches are queued ahead, so that the clocks, read when the last one
 * has been queued, are those under load. */
Timing
Bench::sustained (const Launch &launch, double seconds, Conditions *ret_conditions)
{
  int per_batch = launches_in (batch_us, estimate_us (launch));
  std::vector<Event> marks (1);
  int set = 0;
  marks[0].record (stream_);
  for (double until = elapsed_s () + seconds; elapsed_s () < until;) {
    for (int i = 0; i < per_batch; i++)
      launch (set++);
    marks.emplace_back ();
    marks.back ().record (stream_);
    if (marks.size () > 3)
      marks[marks.size () - 3].wait ();
  }
  *ret_conditions = device_->nvml ().read ();
  KB_CHECK (cudaStreamSynchronize (stream_));

  std::vector<double> us;
  double counted = 0;
  for (size_t i = marks.size () - 1; i > 0 && counted < last_us; i--) {
    double batch = marks[i].us_since (marks[i - 1]);
    counted += batch;
    us.push_back (batch / per_batch);
  }
  Timing time = summarise (us);
  time.us = counted / ((double) us.size () * per_batch); /* the rate of the whole second */
  return time;
}

}
