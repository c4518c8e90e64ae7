// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order in which people, and timm, sort names with numbers in them.
#include <string_view>

namespace vitrail::data {

// Whether `a` comes before `b`.  Runs of digits compare by their value ("2" before "10"), other characters bytewise and
// without regard to ASCII case.  Names that are equal so far compare bytewise, so that the order is total.
bool natural_less(std::string_view a, std::string_view b);

struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const { return natural_less(a, b); }
};

}  // namespace vitrail::data
