// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/memory_limit.h"

#include <unistd.h>

#include <algorithm>

#include "vitrail/base/cgroup_internal.h"

namespace vitrail {

int64_t memory_limit() {
  static const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  static const int64_t limit = std::min(machine, cgroup_memory().value_or(machine));
  return limit;
}

}  // namespace vitrail
