// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <ctime>

#include "vitrail/base/utc_time_internal.h"

namespace vitrail {

std::string utc_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", ::gmtime_r(&seconds, &utc));
  return text.data();
}

}  // namespace vitrail
