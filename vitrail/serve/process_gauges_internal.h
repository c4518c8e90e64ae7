// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "vitrail/serve/metrics_internal.h"

namespace vitrail::serve {

// Memory, processor time, start and open files of the process, under the names that Prometheus' clients give them.
// What the system does not tell is left out.
std::vector<Metrics::Gauge> process_gauges();

}  // namespace vitrail::serve
