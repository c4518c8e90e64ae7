// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/filter.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

constexpr std::array kNames{"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
static_assert(kNames.size() == static_cast<size_t>(Filter::hamming) + 1, "one name per filter, in the enum's order");

}  // namespace

Filter filter_from_name(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "linear") return Filter::bilinear;
  if (lower == "cubic") return Filter::bicubic;
  const auto found = std::find(kNames.begin(), kNames.end(), lower);
  if (found == kNames.end()) {
    throw Error("interpolation", "nearest, box, bilinear, hamming, bicubic or lanczos", "'" + name + "'");
  }
  return static_cast<Filter>(found - kNames.begin());
}

const char* name_of(Filter filter) { return kNames[static_cast<size_t>(filter)]; }

}  // namespace vitrail::image
