#include "row.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace kb {

std::string
format (const char *pattern, ...)
{
  char text[1024];
  va_list args;
  va_start (args, pattern);
  vsnprintf (text, sizeof text, pattern, args);
  va_end (args);
  return text;
}

/* The q-quantile of sorted values, between the two nearest. */
static double
quantile (const std::vector<double> &sorted, double q)
{
  double at = q * (double) (sorted.size () - 1);
  size_t below = (size_t) at, above = std::min (below + 1, sorted.size () - 1);
  return sorted[below] + (at - (double) below) * (sorted[above] - sorted[below]);
}

Timing
summarise (std::vector<double> us)
{
  if (us.empty ())
    return { 0, 0 };
  std::sort (us.begin (), us.end ());
  double median = quantile (us, 0.5);
  return { median, median > 0 ? 100 * (quantile (us, 0.9) - quantile (us, 0.1)) / median : 0 };
}

std::string
conditions_note (const Conditions &c)
{
  return format ("sm_mhz=%u power_w=%.0f temperature_c=%u", c.sm_mhz, c.power_w, c.temperature_c);
}

/* nvmlClocksEventReasons of the NVML API reference. */
static const struct {
  uint64_t bit;
  const char *word;
} disturbances[] = {
  { 0x08, "hw-slowdown" }, { 0x10, "sync-boost" }, { 0x20, "heat" }, { 0x40, "hw-heat" }, { 0x80, "power-brake" },
};

std::string
disturbance_of (const Conditions &c)
{
  std::string words = c.others > 0 ? "other-process" : "";
  for (const auto &d : disturbances)
    if (c.throttle & d.bit)
      words += std::string (words.empty () ? "" : "+") + d.word;
  return words;
}

const char row_columns[] = "group,name,shape,dtype,bytes,flops,time_us,spread_pct,rate,note";

std::string
row_csv (const Row &row)
{
  std::string text = format ("%s,%s,%s,%s,%.0f,%.0f,", row.group.c_str (), row.name.c_str (), row.shape.c_str (),
                             row.dtype.c_str (), row.bytes, row.flops);
  std::string note = row.note;
  if (!row.disturbance.empty ())
    note += (note.empty () ? "" : " ") + std::string ("disturbed=") + row.disturbance;
  if (row.time.us <= 0)
    return text + ",,," + note;
  return text + format ("%.3f,%.2f,%.2f,", row.time.us, row.time.spread_pct, row.rate ()) + note;
}

std::string
quoted (const std::string &text)
{
  std::string out = "\"";
  for (unsigned char c : text)
    if (c == '"' || c == '\\')
      out += { '\\', (char) c };
    else if (c < 0x20)
      out += format ("\\u%04x", c);
    else
      out += (char) c;
  return out + "\"";
}

static std::string
conditions_members (const Conditions &c)
{
  return format ("\"sm_mhz\": %u, \"sm_mhz_min\": %u, \"memory_mhz\": %u, \"power_w\": %.0f, \"temperature_c\": %u, "
                 "\"throttle\": %llu, \"others\": %u",
                 c.sm_mhz, c.sm_mhz_min, c.memory_mhz, c.power_w, c.temperature_c, (unsigned long long) c.throttle, c.others);
}

std::string
row_members (const Row &row)
{
  std::string text = "\"group\": " + quoted (row.group) + ", \"name\": " + quoted (row.name) + ", \"shape\": "
                     + quoted (row.shape) + ", \"dtype\": " + quoted (row.dtype);
  text += format (", \"bytes\": %.0f, \"flops\": %.0f, \"time_us\": %.3f, \"spread_pct\": %.2f, \"rate\": %.2f, ", row.bytes,
                  row.flops, row.time.us, row.time.spread_pct, row.rate ());
  text += "\"note\": " + quoted (row.note) + ", \"implementation\": " + quoted (row.implementation);
  text += ", " + conditions_members (row.conditions);
  if (!row.disturbance.empty ())
    text += ", \"disturbed\": " + quoted (row.disturbance);
  return text;
}

static unsigned
count_at (const Json &object, const char *key)
{
  return (unsigned) object.at (key).count (4294967295u);
}

static Conditions
conditions_from (const Json &o)
{
  Conditions c;
  c.sm_mhz = count_at (o, "sm_mhz");
  c.sm_mhz_min = count_at (o, "sm_mhz_min");
  c.memory_mhz = count_at (o, "memory_mhz");
  c.power_w = o.at ("power_w").number ();
  c.temperature_c = count_at (o, "temperature_c");
  c.throttle = o.at ("throttle").count (1ull << 53);
  c.others = count_at (o, "others");
  return c;
}

Row
row_from (const Json &o)
{
  Row row { o.at ("group").text (), o.at ("name").text (), o.at ("shape").text (), o.at ("dtype").text () };
  row.bytes = o.at ("bytes").number ();
  row.flops = o.at ("flops").number ();
  row.time = { o.at ("time_us").number (), o.at ("spread_pct").number () };
  row.note = o.at ("note").text ();
  row.implementation = o.at ("implementation").text ();
  row.conditions = conditions_from (o);
  if (const Json *disturbed = o.find ("disturbed"))
    row.disturbance = disturbed->text ();
  return row;
}

}
