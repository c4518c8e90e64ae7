// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace vitrail::app {
namespace {

// The files of models, which a reload opens beside those of the models before, the socket that listens, a connection
// that is refused, and what the runtime opens.
constexpr rlim_t kOwnFiles = 128;

}  // namespace

size_t fit_connections(size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  const rlim_t needed = connections + kOwnFiles;
  if (limit.rlim_cur < needed) {
    rlimit raised = limit;
    raised.rlim_cur = std::min(needed, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t own = std::min(kOwnFiles, limit.rlim_cur / 2);
  return std::min<size_t>(connections, std::max<rlim_t>(1, limit.rlim_cur - own));
}

}  // namespace vitrail::app
