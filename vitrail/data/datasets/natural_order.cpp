// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/natural_order_internal.h"

#include <algorithm>

namespace vitrail::data {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

unsigned char lower(char c) { return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }

// Takes the digits at the beginning of `text`, and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

// Negative, zero or positive, as a − b.
int compare(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a), y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (const int order = x.compare(y); order != 0) return order;
    } else {
      if (lower(a.front()) != lower(b.front())) return lower(a.front()) < lower(b.front()) ? -1 : 1;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return static_cast<int>(!a.empty()) - static_cast<int>(!b.empty());
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  const int order = compare(a, b);
  return order != 0 ? order < 0 : a < b;
}

}  // namespace vitrail::data
