// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/process_gauges_internal.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace vitrail::serve {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// When this library was loaded, in seconds since 1970.
const double kStart = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();

void add_memory(std::vector<Metrics::Gauge>& gauges) {
  double pages = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages >> resident)) return;
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  gauges.push_back({"process_virtual_memory_bytes", "Virtual memory.", pages * page});
  gauges.push_back({"process_resident_memory_bytes", "Resident memory.", resident * page});
}

void add_files(std::vector<Metrics::Gauge>& gauges) {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error))
    ++count;
  if (!error) gauges.push_back({"process_open_fds", "Open files.", count - 1});  // less that of the folder
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    gauges.push_back({"process_max_fds", "Limit of open files.", static_cast<double>(limit.rlim_cur)});
}

}  // namespace

std::vector<Metrics::Gauge> process_gauges() {
  std::vector<Metrics::Gauge> gauges;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    gauges.push_back({"process_cpu_seconds_total", "Processor time.",
                      seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), "", "counter"});
  }
  gauges.push_back({"process_start_time_seconds", "Start, in seconds since 1970.", kStart});
  add_memory(gauges);
  add_files(gauges);
  return gauges;
}

}  // namespace vitrail::serve
