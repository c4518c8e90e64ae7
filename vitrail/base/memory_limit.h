// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail {

// The memory in bytes that this process may have: that of the machine, or less by the limit of its cgroup, as of a
// container.  More would end the process.
int64_t memory_limit();

}  // namespace vitrail
