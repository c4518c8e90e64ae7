// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interval of an accuracy in JSON.
#include <nlohmann/json.hpp>

#include "vitrail/data/metrics/metrics.h"

namespace vitrail::data {

// [low, high] of wilson_interval().
inline nlohmann::ordered_json interval_json(double fraction, int64_t images) {
  const Interval interval = wilson_interval(fraction, images);
  return {interval.low, interval.high};
}

}  // namespace vitrail::data
